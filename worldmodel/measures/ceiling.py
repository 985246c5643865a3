"""The ceiling: the best R² that any encoder could reach where different latents give the same picture."""

import math

import numpy as np

_NODES = 4096  # the integrand is smooth and periodic, so equispaced nodes converge faster than any power
_CERTAIN = 1 / 40  # below this sigma / period a draw beyond half a period lies past 20 sigma: R² is 1 in float64


def aliased_r2(sigma: float, period: float) -> float:
    """R² of the best guess of an angle drawn from N(0, sigma²) and seen only modulo `period`.

    What is seen is x = θ mod period; the turn k (θ = x + k · period) is not. The best guess is the posterior mean
    m(x) = E[θ | x], and R² = E[m(x)²] / sigma², since θ has mean 0 (law of total variance).

    >>> [round(aliased_r2(sigma, 2 * math.pi), 4) for sigma in (1.0, 0.9, 0.8, 0.7)]
    [0.9489, 0.9819, 0.9959, 0.9995]

    Args:
        sigma: Standard deviation of the angle, in the unit of `period`.
        period: Poses this far apart look the same.

    Returns:
        R² in (0, 1].

    Raises:
        ValueError: If either is not a positive finite number.
    """
    for name, value in (("sigma", sigma), ("period", period)):
        if not (math.isfinite(value) and value > 0):
            raise ValueError(f"{name} is {value}: it has to be a positive finite number")
    if sigma / period < _CERTAIN:
        return 1.0
    seen = np.arange(_NODES) / _NODES * period - period / 2
    turns = np.arange(-math.ceil(12 * sigma / period) - 1, math.ceil(12 * sigma / period) + 2)
    angle = seen[:, None] + turns * period  # (nodes, turns): what the angle may have been
    exponent = -0.5 * (angle / sigma) ** 2
    top = exponent.max(axis=1, keepdims=True)
    weight = np.exp(exponent - top)  # shifted, so that far from the mean 0 / 0 cannot happen
    guess = (angle * weight).sum(axis=1) / weight.sum(axis=1)
    density = np.exp(top[:, 0]) * weight.sum(axis=1) / (sigma * math.sqrt(2 * math.pi))
    return float((guess**2 * density).mean() * period / sigma**2)


def sampled_r2(angles: np.ndarray, period: float, bins: int = 512) -> float:
    """R² of the best guess of angles (N,) of any law that are seen only modulo `period`, estimated from draws.

    The best guess is the mean of the draws that look alike, here those within 1/512 of a period. `aliased_r2` is exact,
    and knows the Gaussian law alone.

    >>> draws = np.random.default_rng(0).normal(size=200_000)
    >>> round(sampled_r2(draws, 2 * math.pi), 2)
    0.95

    Raises:
        ValueError: If there are too few draws for the bins.
    """
    angles = np.asarray(angles, np.float64)
    if len(angles) < 20 * bins:
        raise ValueError(f"{len(angles)} draws are too few: it takes {20 * bins}")
    turns = np.round(angles / period)
    seen = ((angles / period - turns + 0.5) * bins).astype(int).clip(0, bins - 1)
    counts = np.maximum(np.bincount(seen, minlength=bins), 1)
    guess = np.bincount(seen, turns, bins) / counts  # of the turn: what lies within a bin is seen
    return float(1 - ((turns - guess[seen]) ** 2).mean() * period**2 / angles.var())
