import numpy as np
import pytest
import scipy.stats

from worldmodel.agents import LatentLaw, LatentOU
from worldmodel.stats.laws import from_gaussian, gaussian_correlation, law_name, mapped_correlation

LAWS = ("uniform", "laplace", "gennorm:0.5", "gennorm:4", "gaussian")


def pairs(rho: float, n: int) -> np.ndarray:
    z = np.random.default_rng(0).standard_normal((2, n))
    return np.stack([z[0], rho * z[0] + np.sqrt(1 - rho**2) * z[1]])


@pytest.mark.parametrize(
    "law, distribution",
    [
        ("uniform", scipy.stats.uniform(-np.sqrt(3), 2 * np.sqrt(3))),
        ("laplace", scipy.stats.laplace(scale=np.sqrt(0.5))),
        ("gennorm:4", scipy.stats.gennorm(4, scale=1 / scipy.stats.gennorm(4).std())),
        ("gaussian", scipy.stats.norm()),
    ],
)
def test_a_mapped_gaussian_has_the_law_with_mean_0_and_variance_1(law: str, distribution) -> None:  # type: ignore[no-untyped-def]
    x = from_gaussian(law, pairs(0.0, 50_000)[0])
    assert scipy.stats.kstest(x, distribution.cdf).pvalue > 0.01
    assert (distribution.mean(), distribution.std()) == pytest.approx((0, 1))


@pytest.mark.parametrize("law", LAWS)
def test_the_map_is_odd_increasing_and_finite_far_out(law: str) -> None:
    z = np.linspace(-20, 20, 401)
    x = from_gaussian(law, z)
    assert (np.diff(x) >= 0).all() and np.isfinite(x).all()
    np.testing.assert_allclose(x, -x[::-1], atol=1e-12)


def test_a_generalised_normal_law_has_the_gaussian_and_the_laplace_law_among_it() -> None:
    z = np.linspace(-6, 6, 49)
    np.testing.assert_allclose(from_gaussian("gennorm:2", z), z, atol=1e-9)
    np.testing.assert_allclose(from_gaussian("gennorm:1", z), from_gaussian("laplace", z), atol=1e-9)


def test_the_uniform_law_bends_correlations_by_the_known_formula() -> None:
    for rho in (-0.9, 0.0, 0.3, 0.99):
        assert mapped_correlation("uniform", rho) == pytest.approx(6 / np.pi * np.arcsin(rho / 2), abs=1e-9)
        assert gaussian_correlation("uniform", rho) == pytest.approx(2 * np.sin(np.pi * rho / 6), abs=1e-9)


@pytest.mark.parametrize("law", LAWS)
def test_mapped_pairs_have_the_correlation_asked_for(law: str) -> None:
    x = from_gaussian(law, pairs(gaussian_correlation(law, 0.8), 50_000))
    assert np.corrcoef(x)[0, 1] == pytest.approx(0.8, abs=0.02)


def test_chains_of_a_law_are_stationary_with_a_correlation_per_latent() -> None:
    chains = LatentLaw("laplace", (0.3, 0.9)).chains(20_000, 3, 2, np.random.default_rng(0))
    assert chains.shape == (20_000, 3, 2) and chains.dtype == np.float32
    np.testing.assert_allclose(chains.std(0), 1.0, atol=0.04)
    np.testing.assert_allclose((chains[:, 1] * chains[:, 2]).mean(0), (0.3, 0.9), atol=0.04)


def test_gaussian_chains_are_those_of_the_ou_explorer() -> None:
    one, two = (
        explorer.chains(3, 5, 2, np.random.default_rng(1)) for explorer in (LatentOU(0.7), LatentLaw("gaussian", 0.7))
    )
    np.testing.assert_allclose(one, two, rtol=1e-5)


def test_a_law_has_one_name() -> None:
    assert LatentLaw("gennorm:4.0") == LatentLaw("gennorm:4") and law_name("gennorm:1.50") == "gennorm:1.5"


@pytest.mark.parametrize("law", ["cauchy", "gennorm", "gennorm:0", "gennorm:wide", "gennorm:inf", "uniform:1", ""])
def test_a_law_that_there_is_not_is_refused(law: str) -> None:
    with pytest.raises(ValueError, match="unknown law"):
        LatentLaw(law)
