"""The certificate: a bound on the distance to an orthogonal image of the latents, estimated without them.

Theorem 3 of Klindt, LeCun, Balestriero (arXiv 2605.26379): for Gaussian latents with correlation ρ across a pair,

    E‖h - Q z‖² ≤ D + (ε + D)²,   D = max(δ, 0) / (2ρ(1-ρ)),
    δ = E‖h' - h‖² - 2(1-ρ) tr Cov(h)   (alignment gap),   ε = ‖Cov(h) - I‖_F   (whitening error).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from worldmodel.data.pairs import pair_indices
from worldmodel.stats.intervals import Interval, resample


@dataclass(frozen=True)
class Certificate:
    """The bound with its parts, each with a 95% interval from a bootstrap over episodes.

    Attributes:
        alignment_gap: δ; sampling can make it negative, and then D counts as 0.
        whitening_error: ε.
        bound: D + (ε + D)².
        rho: ρ across a pair.
    """

    alignment_gap: Interval
    whitening_error: Interval
    bound: Interval
    rho: float

    def to_json(self) -> dict[str, Any]:
        """Return the parts as JSON values."""
        parts = {name: getattr(self, name).to_json() for name in ("alignment_gap", "whitening_error", "bound")}
        return parts | {"rho": self.rho}


def certificate(
    h: np.ndarray, offsets: np.ndarray, *, rho: float, lag: int = 1, seed: int = 0, resamples: int = 1_000
) -> Certificate:
    """Estimate the certificate from embeddings of held-out episodes.

    Args:
        h: embeddings (F, m).
        offsets: frame offsets of the episodes (E + 1,). Pairs of one episode depend on each other, so whole episodes
            are resampled: many short ones give the tighter interval.
        rho: correlation of the latents across a pair, in (0, 1).
        lag: control steps of a pair.
        seed: of the bootstrap.
        resamples: of the bootstrap.

    Raises:
        ValueError: ρ outside (0, 1), embeddings that are not finite or do not fill the episodes, or no pairs.
    """
    if not 0 < rho < 1:
        raise ValueError(f"rho is {rho:.3g}; the theorem needs it between 0 and 1")
    h = np.asarray(h, np.float64)
    if h.ndim != 2 or len(h) != offsets[-1] or not np.isfinite(h).all():
        raise ValueError(f"the certificate needs finite embeddings of shape ({offsets[-1]}, m), not {h.shape}")
    h = h - h.mean(0)
    sums = _episode_sums(h, offsets, lag)
    gap, whitening, bound = resample(
        lambda chosen: _parts([part[chosen].sum(0) for part in sums], rho), len(sums[0]), seed=seed, resamples=resamples
    )
    return Certificate(gap, whitening, bound, rho)


@dataclass(frozen=True)
class Bound:
    """The certificate as plain numbers.

    Attributes:
        alignment_gap: δ.
        whitening_error: ε.
        bound: D + (ε + D)².
    """

    alignment_gap: float
    whitening_error: float
    bound: float

    @classmethod
    def of(cls, steps: float, covariance: np.ndarray, rho: float) -> "Bound":
        """Return the bound of E‖h' - h‖² = ``steps`` and Cov(h) (m, m).

        Raises:
            ValueError: ρ outside (0, 1).
        """
        if not 0 < rho < 1:
            raise ValueError(f"rho is {rho:.3g}; the theorem needs it between 0 and 1")
        gap = float(steps - 2 * (1 - rho) * np.trace(covariance))
        whitening = float(np.linalg.norm(covariance - np.eye(len(covariance))))
        nonlinear = max(gap, 0.0) / (2 * rho * (1 - rho))
        return cls(gap, whitening, nonlinear + (whitening + nonlinear) ** 2)


def bound_of_pairs(first: np.ndarray, second: np.ndarray, rho: float) -> Bound:
    """Compute the certificate from embeddings (N, m) of the two views of independent pairs.

    Args:
        first: embeddings of one view.
        second: embeddings of the other.
        rho: correlation of the latents across the two views, in (0, 1).

    Raises:
        ValueError: ρ outside (0, 1), or embeddings that do not match or are not finite.
    """
    if first.shape != second.shape or first.ndim != 2 or not (np.isfinite(first).all() and np.isfinite(second).all()):
        raise ValueError(f"a pair's embeddings must be finite and alike in shape, not {first.shape} and {second.shape}")
    both = np.concatenate([first, second]).astype(np.float64)
    steps = ((second.astype(np.float64) - first) ** 2).sum(1).mean()
    return Bound.of(steps, np.atleast_2d(np.cov(both.T, bias=True)), rho)


def _episode_sums(h: np.ndarray, offsets: np.ndarray, lag: int) -> tuple[np.ndarray, ...]:
    """Per episode with a pair: Σ‖h' - h‖², pairs, Σh, Σhhᵀ, frames."""
    rows: list[tuple[Any, ...]] = []
    for first, end in pairwise(offsets):
        part = h[first:end]
        pairs = pair_indices(np.array([0, len(part)]), lag)
        if len(pairs):
            steps = ((part[pairs + lag] - part[pairs]) ** 2).sum()
            rows.append((steps, len(pairs), part.sum(0), part.T @ part, len(part)))
    if not rows:
        raise ValueError(f"no pairs {lag} control steps apart: every held-out episode is shorter than that")
    return tuple(np.array(column, np.float64) for column in zip(*rows, strict=True))


def _parts(sums: Sequence[Any], rho: float) -> tuple[float, float, float]:
    """Return δ, ε and the bound from sums over episodes."""
    steps, pairs, total, squares, frames = sums
    mean = total / frames
    found = Bound.of(steps / pairs, squares / frames - np.outer(mean, mean), rho)
    return found.alignment_gap, found.whitening_error, found.bound
