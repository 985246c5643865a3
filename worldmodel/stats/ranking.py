"""Which is best, and which cannot be told apart from it: paired comparisons over seeds."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from worldmodel.stats.intervals import Interval, t_interval

_LEVEL = 0.05


@dataclass(frozen=True)
class Place:
    """One competitor's place.

    Attributes:
        name: who.
        score: mean over seeds with its t interval.
        behind: how far behind the best, mean of the paired differences with its t interval; None for the best itself.
        p: of the paired t test against the best, corrected for as many tests as there are (Holm); 1 for the best, and
            where a single seed tells nothing.
        tied: it cannot be told apart from the best, at the 5% level.
    """

    name: str
    score: Interval
    behind: Interval | None
    p: float
    tied: bool


def rank(scores: Mapping[str, Sequence[float]], *, larger_is_better: bool = True) -> list[Place]:
    """Rank competitors by their scores, each a sequence over the same seeds (s,), best mean first.

    Raises:
        ValueError: no competitor, different numbers of seeds, or scores that are not finite.
    """
    values = {name: np.asarray(row, np.float64) for name, row in scores.items()}
    if len({row.shape for row in values.values()}) != 1:
        raise ValueError("competitors are compared seed by seed: every one needs a score for each of the same seeds")
    sign = 1 if larger_is_better else -1
    order = sorted(values, key=lambda name: -sign * values[name].mean())
    best = values[order[0]]
    behind = {name: sign * (best - values[name]) for name in order[1:]}
    p = _holm({name: _paired_p(row) for name, row in behind.items()})
    places = [Place(order[0], t_interval(best), None, 1.0, True)]
    for name, row in behind.items():
        places.append(Place(name, t_interval(values[name]), t_interval(row), p[name], p[name] > _LEVEL))
    return places


def _paired_p(differences: np.ndarray) -> float:
    """Two-sided p of paired differences (s,) having mean 0; 1 for a single one."""
    if len(differences) < 2:
        return 1.0
    if np.ptp(differences) <= 1e-12 * np.abs(differences).max():  # alike but for rounding
        return 0.0 if differences[0] else 1.0
    return float(stats.ttest_1samp(differences, 0.0).pvalue)


def _holm(p: Mapping[str, float]) -> dict[str, float]:
    """Correct p values for the number of tests (Holm's step-down method)."""
    corrected, largest = {}, 0.0
    for done, name in enumerate(sorted(p, key=lambda name: p[name])):
        largest = max(largest, min(1.0, (len(p) - done) * p[name]))
        corrected[name] = largest
    return corrected
