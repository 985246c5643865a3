import numpy as np
import pytest
from scipy import stats

from worldmodel.data.gaussianity import coverage, gaussianity


def test_gaussian_latents_are_called_gaussian_and_isotropic() -> None:
    shape = gaussianity(np.random.default_rng(0).standard_normal((50_000, 2)))
    assert max(shape.distance) < 0.01 and shape.anisotropy == pytest.approx(1, abs=0.05)
    assert shape.skewness == pytest.approx((0, 0), abs=0.05) and shape.coverage == 1


@pytest.mark.parametrize("law", [stats.uniform(), stats.expon(), stats.laplace()], ids=lambda law: law.dist.name)
def test_every_law_has_its_own_moments_whatever_its_place_and_scale(law: "stats.rv_frozen") -> None:
    shape = gaussianity(7 + 3 * law.rvs((200_000, 1), random_state=0))
    skewness, kurtosis = law.stats("sk")
    assert shape.skewness == pytest.approx((skewness,), abs=0.1) and shape.distance[0] > 0.05
    assert shape.excess_kurtosis == pytest.approx((kurtosis,), rel=0.1)


def test_the_distance_is_that_of_kolmogorov_and_smirnov() -> None:
    edge = 1 / np.sqrt(3)  # a coin of ±1 has std 1: the largest gap to the Gaussian is where it jumps
    coin = np.repeat([-1.0, 1.0], 500)[:, None]
    assert gaussianity(coin).distance[0] == pytest.approx(0.5 - stats.norm.cdf(-1), abs=1e-3)
    uniform = np.linspace(-np.sqrt(3), np.sqrt(3), 10_001)
    gap = np.abs((uniform * edge + 1) / 2 - stats.norm.cdf(uniform)).max()
    assert gaussianity(uniform[:, None]).distance[0] == pytest.approx(gap, abs=1e-3)


def test_anisotropy_sees_correlation_as_well_as_scale() -> None:
    z = np.random.default_rng(0).standard_normal((100_000, 2))
    assert gaussianity(z * [1, 3]).anisotropy == pytest.approx(9, rel=0.05)
    mixed = np.stack([z[:, 0], 0.8 * z[:, 0] + 0.6 * z[:, 1]], axis=1)  # correlation 0.8: eigenvalues 1.8 and 0.2
    assert gaussianity(mixed).anisotropy == pytest.approx(9, rel=0.05)


def test_a_latent_that_never_moves_is_reported_not_divided_by() -> None:
    assert gaussianity(np.random.default_rng(0).standard_normal((100, 2)) * [1, 0]).anisotropy == float("inf")


def test_coverage_counts_cells_of_the_cube() -> None:
    grid = np.linspace(-1.9, 1.9, 50)
    assert coverage(np.stack(np.meshgrid(grid, grid), -1).reshape(-1, 2)) == 1
    assert coverage(np.stack([grid, grid], 1)) == 5 / 25  # a diagonal
    assert coverage(np.full((10, 2), 5.0)) == 0
