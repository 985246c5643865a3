import numpy as np
import pytest

from worldmodel.measures.identifiability import measure, procrustes
from worldmodel.stats.linear import fit_affine, r2_score


def latents(n: int = 4000, dimensions: int = 2, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((n, dimensions))


def rotation(m: int, n: int | None = None) -> np.ndarray:
    return np.linalg.qr(np.random.default_rng(9).standard_normal((m, n or m)))[0]


def test_an_orthogonal_image_is_identified_perfectly() -> None:
    z, q = latents(), rotation(2)
    report = measure(z @ q.T + 3, z, latents(seed=1) @ q.T + 3, latents(seed=1))
    assert report.r2_hz == pytest.approx(1) and report.r2_zh == pytest.approx(1)
    assert report.orthogonality_error == pytest.approx(0, abs=1e-9) and report.true_error == pytest.approx(0, abs=1e-9)


def test_scaling_is_an_orthogonality_error_that_r2_does_not_see() -> None:
    z = latents()
    report = measure(2 * z, z, 2 * latents(seed=1), latents(seed=1))
    assert report.r2_hz == pytest.approx(1)
    assert report.orthogonality_error == pytest.approx(np.linalg.norm(3 * np.eye(2)))
    assert report.true_error == pytest.approx((latents(seed=1) ** 2).sum(1).mean(), rel=0.05)


def test_maps_are_fitted_and_scored_on_different_samples() -> None:
    noise = np.random.default_rng(2).standard_normal((2, 30, 20))
    report = measure(noise[0], latents(30), noise[1], latents(30, seed=1))
    assert report.r2_hz < 0  # on the same samples it would be near 0.7


def test_a_latent_that_is_lost_scores_zero_and_the_other_one() -> None:
    z, other = latents(), latents(seed=1)
    report = measure(z[:, :1], z, other[:, :1], other)
    assert report.r2_per_latent == (pytest.approx(1), pytest.approx(0, abs=0.01))


@pytest.mark.parametrize("m", [1, 3])
def test_a_wider_or_narrower_embedding_is_measured_too(m: int) -> None:
    q = rotation(3, 2) if m == 3 else rotation(2)[:1]
    report = measure(latents() @ q.T, latents(), latents(seed=1) @ q.T, latents(seed=1))
    assert report.r2_zh == pytest.approx(1) and report.true_error == pytest.approx(0, abs=1e-3)


def test_procrustes_finds_the_rotation() -> None:
    z, q = latents(), rotation(2)
    np.testing.assert_allclose(procrustes(z @ q.T + 1, z), q, atol=1e-9)


def test_a_constant_embedding_scores_zero_without_complaint() -> None:
    report = measure(np.ones((100, 2)), latents(100), np.ones((100, 2)), latents(100, seed=1))
    assert report.r2_hz == pytest.approx(0, abs=0.05) and report.r2_zh == 0


def test_intervals_come_from_whole_episodes() -> None:
    rng = np.random.default_rng(3)
    z, noise = latents(4000), rng.standard_normal((40, 1, 2)).repeat(100, 1).reshape(-1, 2)  # one error per episode
    h, offsets = z + 0.3 * noise, np.arange(0, 4001, 100)
    by_episode = measure(h, z, h, z, offsets=offsets).r2_per_latent_ci95
    by_frame = measure(h, z, h, z, offsets=np.arange(4001)).r2_per_latent_ci95
    assert by_episode is not None and by_frame is not None
    for (low, high), (frame_low, frame_high) in zip(by_episode, by_frame, strict=True):
        assert high - low > 2 * (frame_high - frame_low)


def test_the_interval_holds_the_estimate() -> None:
    z = latents()
    h = z + 0.2 * latents(seed=5)
    report = measure(h, z, h, z, offsets=np.arange(0, 4001, 100))
    assert report.r2_hz_ci95 is not None
    assert report.r2_hz_ci95[0] < report.r2_hz < report.r2_hz_ci95[1]


def test_nan_and_too_few_samples_are_refused() -> None:
    with pytest.raises(ValueError, match="not finite"):
        measure(np.full((100, 2), np.nan), latents(100), latents(100), latents(100))
    with pytest.raises(ValueError, match="too few"):
        measure(latents(2), latents(2), latents(2), latents(2))
    with pytest.raises(ValueError, match="held-out"):
        measure(latents(9), latents(9), np.full((9, 2), np.inf), latents(9))
    with pytest.raises(ValueError, match="do not match"):
        measure(latents(9), latents(9), latents(8), latents(9))


def test_an_affine_map_reports_what_does_not_excite_it() -> None:
    x = latents(100, 3)
    x[:, 2] = x[:, 0]
    fitted = fit_affine(x, x)
    assert fitted.rank == 2 and fitted.condition > 1e6
    np.testing.assert_allclose(fitted(x), x, atol=1e-9)


def test_r2_of_the_mean_is_zero() -> None:
    y = latents(100)
    np.testing.assert_allclose(r2_score(y, np.broadcast_to(y.mean(0), y.shape)), 0)
