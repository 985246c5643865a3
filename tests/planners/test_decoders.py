import numpy as np
import pytest

from worldmodel.envs import make
from worldmodel.measures.circle import on_circle
from worldmodel.planners.decoders import NearestDecoder, circle_decoder, linear_decoder


def latents(n: int = 500, dimensions: int = 2, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((n, dimensions))


def test_a_linear_image_is_read_exactly_and_says_how_well_it_is_conditioned() -> None:
    z, image = latents(), np.array([[2.0, 0.0], [0.0, 0.5]])
    decode = linear_decoder(z @ image + 3, z)
    np.testing.assert_allclose(decode(latents(7, seed=1) @ image + 3), latents(7, seed=1), atol=1e-12)
    assert decode.rank == 2 and decode.condition == pytest.approx(4, rel=0.1)


def test_a_collapsed_embedding_is_refused() -> None:
    z = latents()
    for collapsed in (np.repeat(z[:, :1], 2, axis=1), np.zeros_like(z)):
        with pytest.raises(ValueError, match="collapsed"):
            linear_decoder(collapsed, z)


def test_a_wide_embedding_may_lie_in_a_subspace() -> None:
    z = latents()
    wide = z @ np.random.default_rng(1).standard_normal((2, 5))
    np.testing.assert_allclose(linear_decoder(wide, z)(wide), z, atol=1e-9)


def test_a_plan_is_read_step_by_step() -> None:
    z = latents(24).reshape(4, 6, 2)
    for decode in (linear_decoder(latents(), latents()), NearestDecoder(latents(5000, seed=2), latents(5000, seed=2))):
        assert decode(z).shape == z.shape
        np.testing.assert_allclose(decode(z)[2], decode(z[2]))
        assert np.abs(decode(z) - z).mean() < 0.1


def test_the_nearest_frame_alone_gives_its_own_latents() -> None:
    z = latents()
    np.testing.assert_allclose(NearestDecoder(z * 3 + 1, z, neighbours=1)(z * 3 + 1.001), z)


def test_a_gallery_that_cannot_answer_is_refused() -> None:
    with pytest.raises(ValueError, match="1 up to all"):
        NearestDecoder(latents(3), latents(3))
    with pytest.raises(ValueError, match="pairs them"):
        NearestDecoder(latents(30), latents(29))


def test_circles_are_decoded_by_atan2_and_the_rest_by_the_affine_map() -> None:
    spec = make("reacher").unwrapped.latent_spec
    rng = np.random.default_rng(0)
    z = spec.wrap(rng.uniform(-4, 4, (600, 2)))
    h = np.hstack([on_circle(spec.angles(z)), z[:, 1:]]) @ rng.standard_normal((3, 3))
    decode = circle_decoder(h[:300], z[:300], spec)
    assert np.allclose(decode(h[300:]), z[300:])
