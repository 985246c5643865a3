"""Experiment bound: the true error against D + (ε + D)², over weights λ and correlations ρ, every run kept."""

from dataclasses import dataclass, field, replace

import numpy as np
from matplotlib.figure import Figure

from worldmodel.encoders.objectives import LeJEPA
from worldmodel.report.figures import FAINT
from worldmodel.report.tables import new_table
from worldmodel.scripts import cli
from worldmodel.scripts.laboratory.cells import Cell, CellResult, run_cells
from worldmodel.scripts.laboratory.common import Common, leave, r2_text
from worldmodel.synthetic.pair_laws import Views
from worldmodel.synthetic.report import VectorReport
from worldmodel.synthetic.training import VectorTraining
from worldmodel.synthetic.worlds import World


@dataclass(frozen=True)
class BoundGrid(Common):
    """Train at every weight and correlation, well and badly, and hold the true error against the bound.

    Attributes:
        weights: λ of SIGReg, with the embedding not whitened, so that small ones let it collapse.
        rhos: correlations of a latent with its parent, or with its successor.
        views: parent, as in the paper's training, where the views' correlation is ρ²; or successor, where it is ρ.
        training: how.
    """

    weights: tuple[float, ...] = (1e-6, 1e-5, 1e-4, 1e-3, 5e-3, 1e-2, 5e-2, 1e-1, 5e-1)
    rhos: tuple[float, ...] = (0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 0.99)
    views: Views = "parent"
    training: VectorTraining = field(
        default_factory=lambda: VectorTraining(steps=2000, lr=6e-3, copies=1, hidden=128, hold=0.3)
    )


def bound(options: BoundGrid) -> list[CellResult]:
    """Run the experiment, and leave the table, the figure and ``result.json``."""
    folder = cli.run_folder(options.out, "identify-bound")
    base = LeJEPA(whiten=False, slices=64)
    cells = [
        Cell(
            "lejepa",
            World(rho=rho, views=options.views),
            2,
            replace(base, weight=weight),
            options.training,
            seed,
            options.count,
        )
        for rho in options.rhos
        for weight in options.weights
        for seed in options.all_seeds
    ]
    results = run_cells(folder / "cells", cells, options.device, options.workers, lambda r: f"{r.report.bound:.3g}")
    table = new_table(
        f"true error and bound on the spiral, by ρ (weights: {len(options.weights)}, seeds: {options.seeds})",
        "ρ",
        ("of the views", "runs", "error below bound", "median error / bound", "least error", "best R²"),
    )
    for rho in options.rhos:
        ours = [result.report for result in results if result.cell.world.rho == rho]
        ratio = [report.true_error / report.bound for report in ours]
        below = sum(map(_holds, ours))
        table.add_row(
            f"{rho:g}",
            f"{World(rho=rho, views=options.views).correlation:.4g}",
            str(len(ours)),
            f"{below} of {len(ours)}",
            f"{np.median(ratio):.2g}",
            f"{min(report.true_error for report in ours):.2g}",
            r2_text(max(report.r2_hz for report in ours)),
        )
    below = sum(_holds(result.report) for result in results)
    leave(folder, "bound", options, results, {"runs": len(results), "below_bound": below}, _figure(results), table)
    return results


def _holds(report: VectorReport) -> bool:
    """Say whether the error lies below the bound; at full collapse they are equal, but for rounding."""
    return report.true_error <= report.bound * (1 + 1e-6)


def _figure(results: list[CellResult]) -> Figure:
    figure = Figure(figsize=(9.6, 4), layout="constrained")
    left, right = figure.subplots(1, 2)
    errors = np.array([max(result.report.true_error, 1e-12) for result in results])
    bounds = np.array([result.report.bound for result in results])
    ends = np.array([0.5 * min(errors.min(), bounds.min()), 2 * max(errors.max(), bounds.max())])
    for axis, values, label in (
        (left, np.array([result.cell.world.correlation for result in results]), "correlation of the views"),
        (right, np.log10([result.cell.objective.weight for result in results]), "log₁₀ of the weight λ"),  # type: ignore[union-attr]
    ):
        drawn = axis.scatter(bounds, errors, c=values, s=16, cmap="viridis", lw=0)
        axis.plot(ends, ends, color=FAINT, ls="--", lw=1)
        axis.set(xscale="log", yscale="log", xlim=ends, ylim=ends, aspect="equal")
        axis.set(xlabel="bound D + (ε + D)²", ylabel="true error E‖h - Qz‖²")
        axis.spines[["top", "right"]].set_visible(False)
        figure.colorbar(drawn, ax=axis, label=label)
    return figure
