import math

import numpy as np
import pytest

from worldmodel.stats.spectrum import (
    HermiteSpectrum,
    gauss_hermite,
    hermite,
    hermite_spectrum,
    multi_indices,
    nonlinear_energy,
    pair_correlation,
    sampled_spectrum,
)


def mode(z: np.ndarray, degree: int) -> np.ndarray:
    return hermite(z, degree)[..., degree]


def test_hermite_polynomials_are_orthonormal_under_the_gaussian() -> None:
    x, weights = gauss_hermite(40)
    table = hermite(x, 20)
    np.testing.assert_allclose((table.T * weights) @ table, np.eye(21), atol=1e-9)
    np.testing.assert_allclose(hermite(np.array(2.0), 3) * np.sqrt([1, 1, 2, 6]), [1, 2, 3, 2])


@pytest.mark.parametrize("rho", [0.3, 0.9, -0.5])
def test_mehler_a_mode_of_degree_d_keeps_the_correlation_rho_to_the_d(rho: float) -> None:
    for first in range(5):
        for second in range(5):
            kept = pair_correlation(lambda z, d=first: mode(z, d), lambda z, d=second: mode(z, d), rho)
            assert kept == pytest.approx(rho**first if first == second else 0.0, abs=1e-9)


def test_the_energies_of_an_exponential_are_those_of_its_series() -> None:
    spectrum = hermite_spectrum(lambda z: np.exp(0.5 * z), latents=1, degree=6)
    expected = [math.exp(0.25) * 0.25**d / math.factorial(d) for d in range(7)]  # c_d = e^(a²/2) a^d / √d!
    np.testing.assert_allclose(spectrum.energy, expected, rtol=1e-9)
    assert spectrum.beyond == pytest.approx(math.exp(0.5) - sum(expected), rel=1e-6)


def test_a_banana_has_its_square_in_degree_two() -> None:
    def banana(z: np.ndarray) -> np.ndarray:
        return np.stack([z[:, 0], z[:, 1] + z[:, 0] ** 2], axis=1)

    spectrum = hermite_spectrum(banana, latents=2)
    np.testing.assert_allclose(spectrum.energy[:4], [1, 2, 2, 0], atol=1e-9)  # z² = He_2 + 1, and ‖He_2‖² = 2
    assert spectrum.nonlinear == pytest.approx(2) and spectrum.linear_share == pytest.approx(0.5)
    assert spectrum.correlation(0.9) == pytest.approx(1 + 0.9 * 2 + 0.81 * 2)
    assert spectrum.alignment_gap(0.9) == pytest.approx(2 * (0.9 - 0.81) * 2)


def test_the_alignment_gap_of_samples_is_that_of_the_spectrum() -> None:
    rng = np.random.default_rng(0)
    z, noise = rng.standard_normal((2, 200_000, 2))
    rho = 0.8
    after = rho * z + math.sqrt(1 - rho**2) * noise
    h, h_after = (np.stack([x[:, 0] + 0.3 * x[:, 1] ** 3, x[:, 1] * x[:, 0]], axis=1) for x in (z, after))
    gap = ((h_after - h) ** 2).sum(1).mean() - 2 * (1 - rho) * np.trace(np.cov(h.T))
    assert sampled_spectrum(h, z).alignment_gap(rho) == pytest.approx(gap, rel=0.03)


def test_samples_and_quadrature_agree() -> None:
    z = np.random.default_rng(0).standard_normal((100_000, 2))

    def encode(z: np.ndarray) -> np.ndarray:
        return np.stack([z[:, 0] + z[:, 1] ** 2 / 2, z[:, 0] * z[:, 1]], axis=1)

    exact, sampled = hermite_spectrum(encode, 2, degree=3), sampled_spectrum(encode(z), z, degree=3)
    np.testing.assert_allclose(sampled.energy, exact.energy, atol=0.03)
    assert nonlinear_energy(encode(z), z) == pytest.approx(exact.nonlinear, rel=0.03)


def test_a_linear_map_has_no_nonlinear_energy_in_any_dimension() -> None:
    rng = np.random.default_rng(0)
    z = rng.standard_normal((500, 20))
    assert nonlinear_energy(z @ rng.standard_normal((20, 5)) + 3, z) == pytest.approx(0, abs=1e-20)


def test_multi_indices_count_the_polynomials() -> None:
    assert len(multi_indices(3, 4)) == math.comb(7, 4) and multi_indices(2, 1).tolist() == [[0, 0], [0, 1], [1, 0]]


def test_what_cannot_be_expanded_is_refused() -> None:
    with pytest.raises(ValueError, match="up to 3 latents"):
        hermite_spectrum(lambda z: z, latents=4)
    with pytest.raises(ValueError, match="too few"):
        sampled_spectrum(np.zeros((50, 1)), np.zeros((50, 2)), degree=4)
    assert HermiteSpectrum((1.0, 0.0), 0.0).linear_share == 0.0
