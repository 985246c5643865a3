"""The learning curve of an agent, and its figure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from worldmodel.report.figures import FAINT
from worldmodel.stats.intervals import t_interval

_COLOURS = ("#c44e52", "#4c72b0", "#55a868", "#8172b2", "#ccb974")
_GRID = 100  # points of a mean curve along the time axis


@dataclass(frozen=True)
class LearningCurve:
    """Evaluations of one agent while it trains, on episodes apart from training.

    Attributes:
        steps: environment steps of training at each evaluation (E,).
        seconds: wall-clock seconds of training until then, evaluations and checkpoints left out (E,).
        returns: return of each evaluation episode (E, episodes).
    """

    steps: np.ndarray
    seconds: np.ndarray
    returns: np.ndarray

    @property
    def mean(self) -> np.ndarray:
        """Mean return of each evaluation (E,)."""
        return self.returns.mean(1)

    @classmethod
    def empty(cls) -> "LearningCurve":
        """Return the curve before the first evaluation."""
        return cls(np.zeros(0), np.zeros(0), np.zeros((0, 1)))

    def extended(self, steps: int, seconds: float, returns: np.ndarray) -> "LearningCurve":
        """Return the curve with one evaluation more."""
        return LearningCurve(
            np.append(self.steps, steps), np.append(self.seconds, seconds), np.array([*self.returns, returns])
        )

    def to_json(self) -> dict[str, Any]:
        """Return plain lists."""
        return {name: getattr(self, name).tolist() for name in ("steps", "seconds", "returns")}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> "LearningCurve":
        """Read what :meth:`to_json` returned."""
        if not value["steps"]:
            return cls.empty()
        return cls(*(np.array(value[name], np.float64) for name in ("steps", "seconds", "returns")))


def return_at(curve: LearningCurve, steps: float = np.inf, seconds: float = np.inf) -> float | None:
    """Return of the last evaluation until then; None before the first one. Where training has ended, the last stays."""
    done = int(np.sum((curve.steps <= steps) & (curve.seconds <= seconds)))
    return float(curve.mean[done - 1]) if done else None


def draw_curves(agents: Mapping[str, Sequence[LearningCurve]], random: float | None = None) -> Figure:
    """Draw return against steps and against minutes: every seed faint, the mean over seeds with its 95% interval.

    Args:
        agents: curves of the seeds of each agent, by its label.
        random: mean return of a random policy.
    """
    figure = Figure(figsize=(10, 3.6), layout="constrained")
    by_step, by_time = figure.subplots(1, 2, sharey=True)
    for (label, curves), colour in zip(agents.items(), _COLOURS * len(agents), strict=False):
        _draw(by_step, [(curve.steps / 1000, curve.mean) for curve in curves], label, colour)
        _draw(by_time, [(curve.seconds / 60, curve.mean) for curve in curves], label, colour)
    highest = max(curve.mean.max() for curves in agents.values() for curve in curves)
    for axis, name in ((by_step, "thousand environment steps"), (by_time, "minutes of training")):
        if random is not None:
            axis.axhline(random, color=FAINT, ls="--", label="random policy")
        axis.set(xlabel=name, xlim=(0, None), ylim=(0, 1.1 * highest or None))
        axis.spines[["top", "right"]].set_visible(False)
    by_step.set_ylabel("return of evaluation episodes")
    by_time.legend(frameon=False, fontsize=8, loc="lower right", bbox_to_anchor=(1, 0.25))
    return figure


def _draw(axis: Axes, curves: Sequence[tuple[np.ndarray, np.ndarray]], label: str, colour: str) -> None:
    for x, y in curves:
        axis.plot(x, y, color=colour, lw=0.8, alpha=0.35)
    grid = np.linspace(max(x[0] for x, _ in curves), min(x[-1] for x, _ in curves), _GRID)
    values = [t_interval([np.interp(point, x, y) for x, y in curves]) for point in grid]
    count = f"{len(curves)} seeds" if len(curves) > 1 else "1 seed"
    mark = "o" if max(len(x) for x, _ in curves) == 1 else None  # a single evaluation makes no line
    axis.plot(grid, [value.mean for value in values], marker=mark, color=colour, lw=2, label=f"{label} ({count})")
    if len(curves) > 1:
        low, high = ([getattr(value, end) for value in values] for end in ("low", "high"))
        axis.fill_between(grid, low, high, color=colour, alpha=0.15, lw=0)
