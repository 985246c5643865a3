"""The Hermite expansion of an encoder: how much of it is linear in Gaussian latents, and what the rest costs.

Any h of Gaussian latents z is a sum of Hermite modes, h(z) = Σ_k c_k He_k(z) over multi-indices k. Across a pair with
correlation ρ a mode of degree d keeps the correlation ρ^d (Mehler), so with the energy W_d = Σ_{|k| = d} ‖c_k‖²

    E⟨h(z'), h(z)⟩ = Σ_d ρ^d W_d,      δ = E‖h' - h‖² - 2(1-ρ) Σ_{d≥1} W_d = 2 Σ_{d≥2} (ρ - ρ^d) W_d,

and alignment prefers degree 1 to every other (Klindt, LeCun, Balestriero, arXiv 2605.26379, theorems 1 and 3).
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product

import numpy as np

from worldmodel.stats.linear import fit_affine

Function = Callable[[np.ndarray], np.ndarray]

NODES = 64
"""Nodes per latent of Gauss-Hermite quadrature: polynomials are exact up to degree 127."""


@dataclass(frozen=True)
class HermiteSpectrum:
    """How the energy E‖h‖² spreads over the degrees of a Hermite expansion.

    Attributes:
        energy: W_d for d = 0, 1, ..., the highest degree of the expansion.
        beyond: the energy of all higher degrees together.
    """

    energy: tuple[float, ...]
    beyond: float

    @property
    def nonlinear(self) -> float:
        """W_nl, the energy of all degrees from 2 on: E‖h - its best affine fit‖²."""
        return sum(self.energy[2:]) + self.beyond

    @property
    def linear_share(self) -> float:
        """Share of the variance of h that is linear in z; 1 for h = A z + b."""
        variance = sum(self.energy[1:]) + self.beyond
        return self.energy[1] / variance if variance > 0 else 0.0

    def correlation(self, rho: float) -> float:
        """Return Σ_d ρ^d W_d = E⟨h(z'), h(z)⟩; what lies beyond the expansion counts with the next degree."""
        weights = [*self.energy, self.beyond]
        return sum(weight * rho**degree for degree, weight in enumerate(weights))

    def alignment_gap(self, rho: float) -> float:
        """Return δ = 2 Σ_{d≥2} (ρ - ρ^d) W_d; what lies beyond the expansion counts with the next degree."""
        weights = [*self.energy, self.beyond]
        return sum(2 * weight * (rho - rho**degree) for degree, weight in enumerate(weights) if degree > 1)


def hermite(z: np.ndarray, degree: int) -> np.ndarray:
    """Evaluate He_k(z) / √k! for k = 0..degree: z (...,) to (..., degree + 1).

    They are orthonormal under N(0, 1): He_{k+1} = z He_k - k He_{k-1}, divided by the norms.
    """
    z = np.asarray(z, np.float64)
    values = np.empty((*z.shape, degree + 1))
    values[..., 0] = 1.0
    if degree:
        values[..., 1] = z
    for k in range(1, degree):
        values[..., k + 1] = (z * values[..., k] - np.sqrt(k) * values[..., k - 1]) / np.sqrt(k + 1)
    return values


def gauss_hermite(nodes: int = NODES) -> tuple[np.ndarray, np.ndarray]:
    """Return nodes (K,) and weights (K,) with Σ w f(x) = E f(x) under N(0, 1) for polynomials up to degree 2K - 1."""
    x, weights = np.polynomial.hermite_e.hermegauss(nodes)
    return x, weights / weights.sum()


def multi_indices(latents: int, degree: int) -> np.ndarray:
    """Return all k (count, latents) with k_1 + ... + k_n ≤ degree, by rising degree."""
    indices = [k for k in product(range(degree + 1), repeat=latents) if sum(k) <= degree]
    return np.array(sorted(indices, key=lambda k: (sum(k), k)))


def hermite_spectrum(encode: Function, latents: int, degree: int = 8, nodes: int = NODES) -> HermiteSpectrum:
    """Expand a function of few Gaussian latents, by quadrature on all nodesⁿ points.

    Args:
        encode: maps z (N, n) to h (N, m).
        latents: n, at most 3.
        degree: highest degree of the expansion.
        nodes: of the quadrature, per latent.

    Raises:
        ValueError: so many latents that the grid would not fit in memory: see :func:`sampled_spectrum`.
    """
    if not 1 <= latents <= 3:
        raise ValueError(f"quadrature over {latents} latents takes {nodes}^{latents} points; up to 3 latents are fine")
    x, weights = gauss_hermite(nodes)
    z = np.stack(np.meshgrid(*[x] * latents, indexing="ij"), axis=-1).reshape(-1, latents)
    mass = np.prod(np.stack(np.meshgrid(*[weights] * latents, indexing="ij"), axis=-1).reshape(-1, latents), axis=-1)
    h = np.asarray(encode(z), np.float64)
    indices = multi_indices(latents, degree)
    coefficients = (hermite_modes(z, indices) * mass[:, None]).T @ h
    return _spectrum(coefficients, indices, float(mass @ (h**2).sum(1)))


def sampled_spectrum(h: np.ndarray, z: np.ndarray, degree: int = 4) -> HermiteSpectrum:
    """Expand embeddings h (N, m) of sampled Gaussian latents z (N, n), by least squares.

    Raises:
        ValueError: fewer than ten samples per mode.
    """
    h, z = np.asarray(h, np.float64), np.asarray(z, np.float64)
    indices = multi_indices(z.shape[1], degree)
    if len(z) < 10 * len(indices):
        raise ValueError(f"{len(z)} samples are too few for {len(indices)} modes: take ten per mode, or a lower degree")
    coefficients, *_ = np.linalg.lstsq(hermite_modes(z, indices), h, rcond=None)
    return _spectrum(coefficients, indices, float((h**2).sum(1).mean()))


def nonlinear_energy(h: np.ndarray, z: np.ndarray) -> float:
    """Return W_nl = E‖h - (A z + b)‖² of the best affine map, for any number of latents: h (N, m), z (N, n)."""
    residual = h - fit_affine(z, h)(np.asarray(z, np.float64))
    return float((residual**2).sum(1).mean()) * len(z) / (len(z) - z.shape[1] - 1)


def pair_correlation(first: Function, second: Function, rho: float, nodes: int = NODES) -> float:
    """Return E f(z) g(z') for z' = ρz + √(1-ρ²) η and functions of one latent, by quadrature over (z, η).

    >>> square = lambda z: (z**2 - 1) / np.sqrt(2)
    >>> round(pair_correlation(square, square, 0.9), 6)
    0.81
    """
    x, weights = gauss_hermite(nodes)
    after = rho * x[:, None] + np.sqrt(1 - rho**2) * x[None, :]
    return float(weights * first(x) @ (second(after) @ weights))


def hermite_modes(z: np.ndarray, indices: np.ndarray) -> np.ndarray:
    """Evaluate the product of Hermite polynomials of every multi-index: z (N, n), indices (count, n) to (N, count)."""
    table = hermite(z, int(indices.max()))
    modes = np.ones((len(z), len(indices)))
    for latent in range(z.shape[1]):
        modes *= table[:, latent, indices[:, latent]]
    return modes


def _spectrum(coefficients: np.ndarray, indices: np.ndarray, total: float) -> HermiteSpectrum:
    energy = np.bincount(indices.sum(1), weights=(coefficients**2).sum(1))
    return HermiteSpectrum(tuple(energy.tolist()), max(0.0, total - float(energy.sum())))
