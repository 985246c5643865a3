import numpy as np
import pytest
from scipy.optimize import brentq

from worldmodel.stats.spectrum import hermite
from worldmodel.synthetic.eigenfunctions import additive_modes, gaussianised_r2, langevin_modes, law_cells, weighted_r2


def test_a_gaussian_world_has_the_hermite_polynomials_at_rates_one_two_three() -> None:
    modes = langevin_modes("gaussian", tail=1e-9)
    np.testing.assert_allclose(modes.values[:4], [1, 2, 3, 4], rtol=2e-3)
    expected = hermite(modes.cells.x, 3)[:, 1:]
    overlap = (modes.cells.mass[:, None] * modes.functions[:, :3] * expected).sum(0)
    np.testing.assert_allclose(np.abs(overlap), 1, atol=3e-4)
    assert modes.linear_r2 == pytest.approx(1, abs=1e-4)


def test_a_uniform_world_has_sines_between_reflecting_walls() -> None:
    modes = langevin_modes("uniform")
    np.testing.assert_allclose(modes.values[:3], np.pi**2 / 12 * np.array([1, 4, 9]), rtol=1e-3)
    sine = np.sqrt(2) * np.sin(np.pi * modes.cells.x / (2 * np.sqrt(3)))
    np.testing.assert_allclose(modes.functions[:, 0], sine, atol=1e-3)
    assert modes.linear_r2 == pytest.approx(96 / np.pi**4, abs=1e-4)


def test_a_laplace_world_cut_at_a_reach_has_the_known_rate() -> None:
    modes = langevin_modes("laplace", tail=1e-4)
    reach, slope = modes.cells.edges[-1], np.sqrt(0.5)  # f = exp(x / √2) sin ωx, f'(reach) = 0, λ = 1/2 + ω²
    omega = brentq(lambda w: slope * np.sin(w * reach) + w * np.cos(w * reach), 0.5 * np.pi / reach, np.pi / reach)
    assert modes.values[0] == pytest.approx(0.5 + omega**2, rel=2e-3)


def test_functions_are_orthonormal_and_rise_with_x() -> None:
    modes = langevin_modes("gennorm:4", cells=100)
    gram = (modes.cells.mass[:, None] * modes.functions).T @ modes.functions
    np.testing.assert_allclose(gram, np.eye(99), atol=1e-6)
    assert (np.diff(modes.functions[:, 0]) > 0).all() and modes.slowest(np.array(99.0)) == modes.functions[-1, 0]


def test_linear_r2_has_its_peak_at_the_gaussian() -> None:
    r2 = {alpha: langevin_modes(f"gennorm:{alpha}", cells=200).linear_r2 for alpha in (0.5, 1, 1.5, 2, 3, 8, 32)}
    assert max(r2, key=r2.get) == 2 and r2[0.5] < r2[1] < r2[1.5] < r2[2] > r2[3]  # type: ignore[arg-type]


def test_the_paper_s_views_have_the_correlation_rho_squared_when_gaussian() -> None:
    modes = additive_modes("gaussian", 0.9)
    np.testing.assert_allclose(modes.values[:3], [0.81, 0.81**2, 0.81**3], rtol=2e-3)
    assert modes.linear_r2 == pytest.approx(1, abs=1e-4)


def test_the_paper_s_views_are_not_linear_for_any_other_law() -> None:
    assert additive_modes("uniform", 0.95).linear_r2 < 0.98 and additive_modes("laplace", 0.95).linear_r2 < 0.7


def test_making_a_latent_gaussian_costs_what_its_map_costs() -> None:
    assert gaussianised_r2("gaussian") == pytest.approx(1, abs=1e-5)
    assert gaussianised_r2("uniform") == pytest.approx(3 / np.pi, abs=3e-4)  # corr(Φ(z), z)² = 12 / 4π


@pytest.mark.parametrize("law", ["gennorm:0.125", "laplace", "uniform"])
def test_cells_hold_the_law(law: str) -> None:
    grid = law_cells(law, 2001, 1e-12)
    assert grid.mass.sum() == pytest.approx(1) and (grid.mass > 0).all()
    assert grid.mass @ grid.x == pytest.approx(0, abs=1e-6)
    assert grid.mass @ grid.x**2 == pytest.approx(1, abs=0.02)


def test_a_straight_line_has_r2_one() -> None:
    assert weighted_r2(np.arange(3.0), 5 - 2 * np.arange(3.0), np.array([0.2, 0.5, 0.3])) == pytest.approx(1)


def test_bad_sizes_are_refused() -> None:
    with pytest.raises(ValueError, match="at least 8 cells"):
        langevin_modes("gaussian", cells=2)
    with pytest.raises(ValueError, match="between 0 and 1"):
        additive_modes("gaussian", 1.0)
