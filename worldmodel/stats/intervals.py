"""Means with 95% intervals: the unit is the seed or the independent task, never the frame."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats


@dataclass(frozen=True)
class Interval:
    """A mean and its 95% interval.

    Attributes:
        mean: the estimate.
        low: lower end; minus infinity where a single unit leaves the spread unknown.
        high: upper end; infinity there.
    """

    mean: float
    low: float
    high: float

    def to_json(self) -> dict[str, Any]:
        """Return ``{"mean": ..., "ci95": [low, high]}``; an end that is not known is ``None``."""
        return {"mean": self.mean, "ci95": [end if np.isfinite(end) else None for end in (self.low, self.high)]}

    def exp(self) -> "Interval":
        """Return the interval of the exponential: of a ratio, from that of its logarithm."""
        return Interval(*(float(np.exp(end)) for end in (self.mean, self.low, self.high)))

    def text(self, digits: int) -> str:
        """Return it for people, ``mean [low, high]``; the mean alone where the spread is not known."""
        mean = f"{self.mean:.{digits}f}"
        return f"{mean} [{self.low:.{digits}f}, {self.high:.{digits}f}]" if np.isfinite(self.low) else mean

    def __str__(self) -> str:
        return f"{self.mean:.3g} [{self.low:.3g}, {self.high:.3g}]"


def t_interval(values: Sequence[float] | np.ndarray) -> Interval:
    """Student's t interval of the mean of independent values (n,), for few seeds.

    One value says nothing about its spread: its interval is the whole line.

    Raises:
        ValueError: no values, or values that are not finite.

    >>> print(t_interval([1, 2, 3, 4, 5]))
    3 [1.04, 4.96]
    """
    values = _finite(values)
    mean = float(values.mean())
    if len(values) < 2:
        return Interval(mean, -np.inf, np.inf)
    if np.ptp(values) == 0:
        return Interval(mean, mean, mean)
    low, high = stats.t.interval(0.95, len(values) - 1, mean, stats.sem(values))
    return Interval(mean, float(low), float(high))


def ratio_interval(values: Sequence[float] | np.ndarray) -> Interval:
    """Geometric mean of independent positive ratios (n,), with Student's t interval of their logarithms.

    Ratios that span orders of magnitude have means that one of them decides, and intervals that reach below 0.

    Raises:
        ValueError: no values, or values that are not positive and finite.

    >>> print(ratio_interval([0.1, 1.0, 10.0]))
    1 [0.00328, 305]
    """
    values = _finite(values)
    if values.min() <= 0:
        raise ValueError(f"a ratio of {values.min()} has no logarithm: ratios are positive")
    return t_interval(np.log(values)).exp()


def wilson(successes: int, trials: int) -> Interval:
    """Wilson's interval of a success rate.

    Raises:
        ValueError: no trials, or more successes than trials.

    >>> print(wilson(7, 10))
    0.7 [0.397, 0.892]
    """
    if not 0 <= successes <= trials or trials < 1:
        raise ValueError(f"{successes} successes of {trials} trials make no rate: it takes at least one trial")
    interval = stats.binomtest(successes, trials).proportion_ci(0.95, method="wilson")
    return Interval(successes / trials, float(interval.low), float(interval.high))


def bootstrap(
    values: np.ndarray,
    statistic: Callable[[np.ndarray], float | np.ndarray] = np.mean,
    *,
    seed: int = 0,
    resamples: int = 2_000,
) -> Interval:
    """Percentile bootstrap over independent units: the rows of ``values`` (units, ...) are drawn with replacement.

    Args:
        values: one row per task, chain or seed.
        statistic: of resampled rows.
        seed: of the resampling.
        resamples: how often.

    Raises:
        ValueError: no rows, or values that are not finite.
    """
    values = _finite(values)
    (interval,) = resample(lambda chosen: [statistic(values[chosen])], len(values), seed=seed, resamples=resamples)
    return interval


def resample(
    statistics: Callable[[np.ndarray], Sequence[float | np.ndarray] | np.ndarray],
    units: int,
    *,
    seed: int = 0,
    resamples: int = 2_000,
) -> list[Interval]:
    """Percentile bootstrap of several statistics at once, by the indices of the units that are drawn.

    Args:
        statistics: maps indices (units,) to k numbers; all units in order give the estimates.
        units: number of independent units: tasks, chains, seeds.
        seed: of the resampling.
        resamples: how often.

    Returns:
        k intervals; with a single unit, whose spread nobody knows, each is the whole line.
    """
    estimates = np.asarray(statistics(np.arange(units)), np.float64)
    low, high = np.full((2, len(estimates)), [[-np.inf], [np.inf]])
    if units > 1:
        rng = np.random.default_rng(seed)
        drawn = np.array([statistics(rng.integers(0, units, units)) for _ in range(resamples)], np.float64)
        low, high = np.quantile(drawn, [0.025, 0.975], axis=0)
    return [Interval(float(e), float(a), float(b)) for e, a, b in zip(estimates, low, high, strict=True)]


@dataclass(frozen=True)
class Equivalence:
    """Outcome of two one-sided tests (TOST).

    Attributes:
        margin: differences up to this are called equivalent.
        p: the larger of the two one-sided p values; equivalent at the 5% level when below 0.05.
    """

    margin: float
    p: float

    @property
    def equivalent(self) -> bool:
        """Whether the mean lies within the margin, at the 5% level."""
        return self.p < 0.05


def equivalence(differences: Sequence[float] | np.ndarray, margin: float) -> Equivalence:
    """Test whether the mean of paired differences (n,) lies within ±margin (two one-sided t tests).

    A difference that is "not significant" shows nothing; this shows equivalence, for the margin that is stated. One
    difference shows nothing either (p = 1).

    Raises:
        ValueError: no differences, differences that are not finite, or a margin that is not positive.
    """
    values = _finite(differences)
    if not margin > 0:
        raise ValueError(f"the margin of equivalence is {margin}; it must be positive")
    if len(values) < 2:
        return Equivalence(margin, 1.0)
    if np.ptp(values) == 0:
        return Equivalence(margin, 0.0 if abs(values[0]) < margin else 1.0)
    lower = stats.ttest_1samp(values, -margin, alternative="greater").pvalue
    upper = stats.ttest_1samp(values, margin, alternative="less").pvalue
    return Equivalence(margin, float(max(lower, upper)))


def _finite(values: Sequence[float] | np.ndarray) -> np.ndarray:
    array = np.asarray(values, np.float64)
    if not len(array) or not np.isfinite(array).all():
        raise ValueError("an interval needs at least one value, all of them finite")
    return array
