"""Experiment gennorm: latents of generalised-normal law, beside what the slowest functions of their world predict."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from worldmodel.report.figures import EMBEDDING, FAINT, ORACLE
from worldmodel.report.tables import new_table
from worldmodel.scripts import cli
from worldmodel.scripts.laboratory.cells import CellResult, run_cells
from worldmodel.scripts.laboratory.common import Common, interval_text, leave, mlp_cell, r2_text, summary
from worldmodel.stats.intervals import Interval
from worldmodel.synthetic.eigenfunctions import additive_modes, gaussianised_r2, langevin_modes
from worldmodel.synthetic.mixings import MixingName
from worldmodel.synthetic.objectives import ObjectiveName
from worldmodel.synthetic.pair_laws import PairKind
from worldmodel.synthetic.training import MLP, VectorTraining
from worldmodel.synthetic.worlds import World

_GRID = np.linspace(-3.0, 3.0, 100)
_MARKS = {"lejepa": ("o", EMBEDDING), "whitening": ("s", ORACLE), "infonce": ("^", "#55a868")}


@dataclass(frozen=True)
class GenNorm(Common):
    """Learn latents of density ∝ exp(-|z / s|^α), from heavy tails through the Gaussian (2) to nearly uniform.

    Attributes:
        alphas: shapes α, from 1/8 to 100.
        objectives: which.
        mixing: which.
        pairs: additive, with noise of the same law as in the paper, or langevin, the stationary diffusion of the law.
        rho: correlation of a latent with the parent of its views.
        tail: probability that is cut off where the curves are computed. Below α = 1 they depend on it.
        training: how.
    """

    alphas: tuple[float, ...] = (0.125, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0)
    objectives: tuple[ObjectiveName, ...] = ("lejepa", "whitening")
    mixing: MixingName = "spiral"
    pairs: tuple[PairKind, ...] = ("additive", "langevin")
    rho: float = 0.95
    tail: float = 1e-4
    training: VectorTraining = MLP


def gennorm(options: GenNorm) -> list[CellResult]:
    """Run the experiment, and leave the table, the figure and ``result.json``."""
    folder = cli.run_folder(options.out, "identify-gennorm")
    predicted = {kind: {alpha: predict(kind, alpha, options) for alpha in options.alphas} for kind in options.pairs}
    cells = [
        mlp_cell(options, name, _world(options, kind, alpha, seed), 2, options.training)
        for kind in options.pairs
        for alpha in options.alphas
        for name in options.objectives
        for seed in options.all_seeds
    ]
    results = run_cells(folder / "cells", cells, options.device, options.workers, lambda r: r2_text(r.report.r2_hz))

    def by(result: CellResult) -> tuple[str, float, str]:
        return result.cell.world.pairs, float(result.cell.world.law.split(":")[1]), result.cell.name

    r2 = summary(results, by, lambda r: r.report.r2_hz)
    grid = summary(results, by, lambda r: r.report.r2_grid)
    table = new_table(
        f"R² h → z of generalised-normal latents, {options.mixing}, {options.over_seeds}",
        "pairs",
        ("α", "objective", "R² h → z", "slowest functions", "Gaussianised", "R² on [-3, 3]²", "predicted there"),
    )
    for (kind, alpha, name), interval in r2.items():
        theory, key = predicted[kind][alpha], (kind, alpha, name)
        table.add_row(
            kind,
            f"{alpha:g}",
            name,
            interval_text(interval),
            r2_text(theory["slowest"]),
            r2_text(theory["gaussianised"]),
            interval_text(grid[key]) if key in grid else "",
            r2_text(theory["grid"]),
        )
    curves = {kind: _curves(kind, options) for kind in options.pairs}
    leave(folder, "gennorm", options, results, {"predicted": predicted, "curves": curves}, _figure(r2, curves), table)
    return results


def _world(options: GenNorm, kind: PairKind, alpha: float, seed: int) -> World:
    return World(mixing=options.mixing, law=f"gennorm:{alpha:g}", rho=options.rho, pairs=kind, seed=seed)


def predict(kind: PairKind, alpha: float, options: GenNorm) -> dict[str, float]:
    """Return the best linear R² that theory allows: of the slowest functions, of latents made Gaussian, on the grid."""
    law = f"gennorm:{alpha:g}"
    additive = kind == "additive"
    modes = additive_modes(law, options.rho, tail=options.tail) if additive else langevin_modes(law, tail=options.tail)
    on_grid = float(np.corrcoef(_GRID, modes.slowest(_GRID))[0, 1] ** 2)
    return {"slowest": modes.linear_r2, "gaussianised": gaussianised_r2(law), "grid": on_grid}


def _curves(kind: PairKind, options: GenNorm) -> dict[str, list[float]]:
    alphas = np.unique(np.concatenate([np.geomspace(min(options.alphas), max(options.alphas), 25), [2.0]]))
    points = [predict(kind, float(alpha), options) for alpha in alphas]
    return {"alpha": alphas.tolist()} | {
        name: [point[name] for point in points] for name in ("slowest", "gaussianised")
    }


def _figure(r2: dict[tuple[Any, ...], Interval], curves: dict[PairKind, dict[str, list[float]]]) -> Figure:
    figure = Figure(figsize=(5.2 * len(curves), 3.8), layout="constrained")
    for axis, (kind, curve) in zip(figure.subplots(1, len(curves), squeeze=False)[0], curves.items(), strict=True):
        axis.plot(curve["alpha"], curve["slowest"], color="black", lw=1.2, label="slowest functions")
        axis.plot(curve["alpha"], curve["gaussianised"], color=FAINT, lw=1.2, ls="--", label="latents made Gaussian")
        for name in dict.fromkeys(key[2] for key in r2):
            keys = [key for key in r2 if key[0] == kind and key[2] == name]
            mark, colour = _MARKS.get(name, ("D", "#8172b3"))
            axis.plot([key[1] for key in keys], [r2[key].mean for key in keys], mark, color=colour, label=name)
            for key in keys:
                if np.isfinite(r2[key].low):
                    axis.plot([key[1]] * 2, [r2[key].low, r2[key].high], color=colour, lw=1)
        axis.axvline(2.0, color=FAINT, lw=0.8, ls=":")
        axis.set_xscale("log", base=2)
        axis.set(xlabel="shape α (1 Laplace, 2 Gaussian, ∞ uniform)", ylabel="R² (h → z)", ylim=(-0.05, 1.05))
        axis.set_title(f"{kind} pairs", fontsize=10)
        axis.legend(frameon=False, fontsize=8)
        axis.spines[["top", "right"]].set_visible(False)
    return figure
