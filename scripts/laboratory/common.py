"""What the experiments on synthetic worlds share: their options, their summary over seeds, what they leave behind."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from rich.table import Table

from worldmodel.report.figures import save_figure
from worldmodel.report.tables import plain_table
from worldmodel.scripts import cli
from worldmodel.scripts.laboratory.cells import Cell, CellResult
from worldmodel.scripts.speed.result import write_result
from worldmodel.stats.intervals import Interval, t_interval
from worldmodel.synthetic.objectives import ObjectiveName, synthetic_objective
from worldmodel.synthetic.training import VectorTraining
from worldmodel.synthetic.worlds import World


@dataclass(frozen=True)
class Common:
    """Options of every experiment.

    Attributes:
        seeds: how many seeds, from ``seed`` on.
        seed: the first one; it decides worlds, initial weights, data and slices.
        device: where to train: auto, cpu or cuda.
        workers: processes, each with one thread.
        count: fresh pairs to fit maps on, and as many to score them on.
        out: output folder (default: runs/identify-<experiment>); finished cells lie in it and are not done again.
    """

    seeds: int = 3
    seed: int = 0
    device: str = "auto"
    workers: int = 1
    count: int = 20_000
    out: Path | None = None

    def __post_init__(self) -> None:
        if self.seeds < 1 or self.workers < 1 or self.count < 100:
            raise ValueError("--seeds and --workers must be at least 1, and --count at least 100")

    @property
    def all_seeds(self) -> range:
        """The seeds."""
        return range(self.seed, self.seed + self.seeds)

    @property
    def over_seeds(self) -> str:
        """What the numbers of a table are taken over, for its title."""
        return "1 seed" if self.seeds == 1 else f"{self.seeds} seeds, 95% intervals"


def mlp_cell(options: Common, name: ObjectiveName, world: World, outputs: int, training: VectorTraining) -> Cell:
    """Return the cell of an MLP, or of slow features, that learns a world with the world's own seed."""
    objective = synthetic_objective(name, world.correlation)
    return Cell(name, world, outputs, objective, training, world.seed, options.count)


def summary(
    results: Iterable[CellResult], by: Callable[[CellResult], Any], of: Callable[[CellResult], float | None]
) -> dict[Any, Interval]:
    """Return Student's interval over seeds of a number, by group, in the order of the cells."""
    groups: dict[Any, list[float]] = {}
    for result in results:
        value = of(result)
        if value is not None:
            groups.setdefault(by(result), []).append(value)
    return {key: t_interval(values) for key, values in groups.items()}


def leave(
    folder: Path,
    name: str,
    options: Common,
    results: Sequence[CellResult],
    measured: dict[str, Any],
    figure: Figure,
    table: Table,
) -> None:
    """Print the table, and write the figure and ``result.json`` with every cell, none filtered."""
    cli.console.print(table)
    save_figure(figure, folder / f"{name}.png")
    cells = [result.to_json() for result in results]
    write_result(folder, options, measured | {"table": plain_table(table), "cells": cells}, {})


def r2_text(value: float, digits: int | None = None) -> str:
    """Write an R², never rounded up, with as many digits as asked for: by default six where it is high, else three.

    >>> r2_text(0.9999989), r2_text(0.9507)
    ('0.999998', '0.950')
    """
    digits = _digits(value) if digits is None else digits
    return f"{np.floor(value * 10**digits) / 10**digits:.{digits}f}"


def interval_text(interval: Interval) -> str:
    """Write a mean R², with its interval where it is known, in as many digits as suit the mean."""
    if not np.isfinite(interval.low):
        return r2_text(interval.mean)
    mean, low, high = (
        r2_text(value, _digits(interval.mean)) for value in (interval.mean, interval.low, min(interval.high, 1.0))
    )
    return f"{mean} [{low}, {high}]"


def _digits(value: float) -> int:
    return 6 if value > 0.99 else 3
