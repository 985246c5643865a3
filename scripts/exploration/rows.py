"""Rows of the benchmark's tables: numbers over seeds."""

from dataclasses import dataclass

import numpy as np

from worldmodel.stats.intervals import Interval, ratio_interval, t_interval

LAWS = ("own", "gaussian", "uniform", "transfer", "selection")


@dataclass(frozen=True)
class Row:
    """An explorer, a training and a lag, over seeds.

    Attributes:
        explorer: what moved.
        training: how the encoder was trained.
        lag: control steps of a pair.
        values: of each number, one per seed.
        skipped: why there are no scores; empty where there are.
    """

    explorer: str
    training: str
    lag: int
    values: dict[str, np.ndarray]
    skipped: str = ""

    @property
    def name(self) -> str:
        """Of the explorer, with its training where that is not plain."""
        return self.explorer if self.training == "plain" else f"{self.explorer}, {self.training}"

    def mean(self, number: str) -> float:
        """Over seeds; NaN where a seed has no such number."""
        interval = self.interval(number)
        return float("nan") if interval is None else interval.mean

    def interval(self, number: str) -> Interval | None:
        """Over seeds, of costs the geometric mean; None where a seed has no such number."""
        values = self.values.get(number)
        if values is None or not np.isfinite(values).all():
            return None
        return ratio_interval(values) if number.endswith("cost_ratio") else t_interval(values)
