import numpy as np
import pytest
import torch

from worldmodel.stats.linear import fit_affine, r2_score
from worldmodel.synthetic.slow_features import fit_slow_features
from worldmodel.synthetic.worlds import World


def views_of(world: World, count: int = 20_000) -> tuple[np.ndarray, np.ndarray]:
    z = world.draw_pairs(count, torch.Generator().manual_seed(0), torch.float64)
    return z.numpy(), world.observe(z).numpy()


def test_a_banana_is_straightened_exactly_by_features_of_degree_two() -> None:
    z, x = views_of(World(mixing="banana"))
    slow = fit_slow_features(x[0], x[1], dim=2, degree=2)
    h = slow.encode(x[0])
    assert r2_score(z[0], fit_affine(h, z[0])(h)).min() > 0.999
    np.testing.assert_allclose(slow.deltas, 2 * (1 - 0.95**2), rtol=0.05)
    np.testing.assert_allclose(np.cov(np.concatenate([h, slow.encode(x[1])]).T), np.eye(2), atol=1e-2)


def test_of_gaussian_latents_themselves_it_keeps_the_linear_ones_before_their_squares() -> None:
    z, _ = views_of(World(rho=0.9, views="successor"))
    slow = fit_slow_features(z[0], z[1], dim=5, degree=2)
    np.testing.assert_allclose(slow.deltas, 2 * (1 - 0.9 ** np.array([1, 1, 2, 2, 2])), rtol=0.05)
    h = slow.encode(z[0])[:, :2]
    assert r2_score(h, fit_affine(z[0], h)(z[0])).min() > 0.999


def test_a_constant_coordinate_is_left_out() -> None:
    z, _ = views_of(World(), count=500)
    padded = [np.hstack([view, np.ones((500, 1))]) for view in z]
    assert np.isfinite(fit_slow_features(padded[0], padded[1], dim=2, degree=2).encode(padded[0])).all()


@pytest.mark.parametrize("bad", [np.full((50, 2), np.nan), np.ones((50, 2)), np.zeros((3, 2))])
def test_data_that_say_nothing_are_refused(bad: np.ndarray) -> None:
    with pytest.raises(ValueError, match=r"finite|too few|excite"):
        fit_slow_features(bad, bad, dim=2, degree=3)
