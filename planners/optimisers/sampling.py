"""What the sampling optimisers share: noise, candidates in the unit box, moments that ignore failed candidates."""

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

TABLE_ROWS = 2**14  # far more than the candidates of one iteration


@lru_cache(maxsize=8)
def noise_table(horizon: int, actions: int, beta: float = 0.0) -> np.ndarray:
    """Return sequences of unit Gaussian noise (rows, horizon * actions), with power spectrum 1 / f^beta along the time.

    Drawing normal numbers costs more than costing the candidates, so they are drawn once; a plan takes slices at
    places that its own generator chooses (Salimans et al. 2017, "Evolution Strategies", section 2.1). Coloured noise
    is made in the frequency domain (Timmer & König 1995).
    """
    rng = np.random.default_rng(0)
    table = rng.standard_normal((TABLE_ROWS, actions, horizon))
    if beta > 0 and horizon > 1:
        frequency = np.fft.rfftfreq(horizon)
        frequency[0] = frequency[1]  # the mean of a plan is as strong as its slowest wave
        table = np.fft.irfft(np.fft.rfft(table) * frequency ** (-beta / 2), n=horizon)
    table = table - table.mean(axis=0)
    table /= table.std(axis=0)
    table = np.ascontiguousarray(table.swapaxes(1, 2)).reshape(TABLE_ROWS, horizon * actions)
    table.setflags(write=False)
    return table


def candidates(
    mean: np.ndarray,
    std: np.ndarray,
    best: np.ndarray,
    table: np.ndarray,
    samples: int,
    rngs: Sequence[np.random.Generator],
) -> np.ndarray:
    """Return candidates (B, samples, D) around means (B, D), all inside the unit box.

    The first two are the mean itself and the best so far (B, D): a plan never gets worse than what it started from.
    """
    u = np.empty((len(mean), samples, mean.shape[1]))
    for row, rng in enumerate(rngs):
        first = int(rng.integers(2 * (len(table) - samples)))
        sign = 1.0 if first % 2 else -1.0  # the table and its mirror image
        np.multiply(table[first // 2 : first // 2 + samples], sign * std[row], out=u[row])
    u += mean[:, None]
    u[:, 0], u[:, 1] = mean, best
    return np.clip(u, -1.0, 1.0, out=u)


def weighted_moments(u: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return mean and standard deviation (B, D) of candidates (B, N, D) under weights (B, N) that sum to 1."""
    mean = np.matmul(weights[:, None], u)[:, 0]
    away = u - mean[:, None]
    return mean, np.sqrt(np.matmul(weights[:, None], away * away)[:, 0])


def updated(
    mean: np.ndarray, std: np.ndarray, u: np.ndarray, weights: np.ndarray, momentum: float, floor: float
) -> tuple[np.ndarray, np.ndarray]:
    """Move mean and spread (B, D) to those of the weighted candidates; stay where every one failed (weights 0)."""
    total = weights.sum(axis=1, keepdims=True)
    new_mean, new_std = weighted_moments(u, weights / np.maximum(total, 1e-300))
    keep = np.where(total > 0, momentum, 1.0)
    return keep * mean + (1 - keep) * new_mean, np.maximum(keep * std + (1 - keep) * new_std, floor)


def check_population(samples: int, iterations: int, elites: int, spread: float, floor: float) -> None:
    """Refuse options that make no search.

    Raises:
        ValueError: a count is too small, or a spread is not positive.
    """
    if not 2 <= elites <= samples <= TABLE_ROWS // 2:
        raise ValueError(
            f"{samples} samples with {elites} elites: there must be 2 <= elites <= samples <= {TABLE_ROWS // 2}"
        )
    if iterations < 1 or not spread > 0 or not 0 <= floor <= spread:
        raise ValueError(
            f"iterations {iterations}, spread {spread}, floor {floor}: need >= 1, > 0 and 0 <= floor <= spread"
        )
