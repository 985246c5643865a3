"""Laws of standardised latents: symmetric, with mean 0 and variance 1, and what makes a Gaussian follow one of them.

A monotone map x = F⁻¹(Φ(z)) takes z ~ N(0, 1) exactly to the law with distribution function F. It bends the line on
which pairs of correlation r lie, so that the correlation of what comes out is smaller in size; with the Hermite
expansion x = Σ c_k He_k(z) / √k! it is Σ c_k² r^k, which is inverted here.
"""

from functools import lru_cache
from typing import Any

import numpy as np
import scipy.optimize
import scipy.stats

from worldmodel.stats.spectrum import gauss_hermite, hermite

LAWS = ("gaussian", "uniform", "laplace", "gennorm:ALPHA")
_ALPHAS = (0.125, 100.0)  # beyond, nearly all mass is at 0, or nothing sets the law apart from the uniform one
_NODES = 128  # correlations are right to 1e-5


def law_name(text: str) -> str:
    """Return the one way to write a law: uniform, laplace, gaussian or gennorm:ALPHA, of density ∝ exp(-|x / s|^ALPHA).

    >>> law_name("gennorm:4.0")
    'gennorm:4'

    Raises:
        ValueError: there is no such law.
    """
    name, _, alpha = text.partition(":")
    if text in LAWS[:3]:
        return text
    try:
        if name == "gennorm" and _ALPHAS[0] <= float(alpha) <= _ALPHAS[1]:
            return f"gennorm:{float(alpha):.12g}"
    except ValueError:
        pass
    raise ValueError(f"unknown law {text!r}: take one of {', '.join(LAWS)}, ALPHA from {_ALPHAS[0]} to {_ALPHAS[1]}")


def from_gaussian(law: str, z: np.ndarray) -> np.ndarray:
    """Map standard Gaussian values to the law, one by one: the same shape, float64.

    The tails are computed from the tails, so that no far value is rounded to infinity.
    """
    return np.sign(z) * distribution(law).isf(scipy.stats.norm.sf(np.abs(z)))


def mapped_correlation(law: str, rho: float) -> float:
    """Return the correlation that Gaussian pairs of correlation ``rho`` have once both are mapped to the law.

    >>> round(mapped_correlation("uniform", 0.9), 4)  # 6 / π asin(ρ / 2)
    0.8915
    """
    weights = _squared_coefficients(law_name(law))
    return float(np.polynomial.polynomial.polyval(rho, weights) / weights.sum())


@lru_cache(maxsize=256)
def gaussian_correlation(law: str, rho: float) -> float:
    """Return the correlation of Gaussian pairs that have correlation ``rho`` in (-1, 1) once mapped to the law.

    >>> round(gaussian_correlation("uniform", 0.9), 4)  # 2 sin(π ρ / 6)
    0.908
    """
    if law_name(law) == "gaussian":
        return float(rho)
    return float(scipy.optimize.brentq(lambda r: mapped_correlation(law, r) - rho, -1.0, 1.0, xtol=1e-12))


@lru_cache(maxsize=16)
def _squared_coefficients(law: str) -> np.ndarray:
    """Return c_k² of the law's map for k = 0..127, by Gauss-Hermite quadrature."""
    nodes, weights = gauss_hermite(_NODES)
    squares = (hermite(nodes, _NODES - 1).T @ (weights * from_gaussian(law, nodes))) ** 2
    squares[::2] = 0.0  # the map is odd
    return squares


def shape_of(law: str) -> float:
    """Return α of the law, of density ∝ exp(-|x / s|^α); infinite for the uniform one."""
    name, _, alpha = law_name(law).partition(":")
    return float(alpha) if alpha else {"gaussian": 2.0, "laplace": 1.0, "uniform": np.inf}[name]


def distribution(law: str) -> Any:
    """Return SciPy's frozen distribution, standardised."""
    name, _, alpha = law_name(law).partition(":")
    match name:
        case "gaussian":
            return scipy.stats.norm()
        case "uniform":
            return scipy.stats.uniform(-np.sqrt(3), 2 * np.sqrt(3))
        case "laplace":
            return scipy.stats.laplace(scale=np.sqrt(0.5))
        case _:
            shape = float(alpha)
            return scipy.stats.gennorm(shape, scale=1 / scipy.stats.gennorm.std(shape))
