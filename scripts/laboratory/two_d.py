"""Experiment two-d: four mixings of two latents, unrolled."""

from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure

from worldmodel.report.figures import latent_colours
from worldmodel.report.tables import new_table
from worldmodel.scripts import cli
from worldmodel.scripts.laboratory.cells import Cell, CellResult, run_cells
from worldmodel.scripts.laboratory.common import Common, interval_text, leave, r2_text, summary
from worldmodel.synthetic.mixings import MixingName
from worldmodel.synthetic.objectives import ObjectiveName, synthetic_objective
from worldmodel.synthetic.training import COUPLING, MLP, VectorTraining
from worldmodel.synthetic.worlds import World


@dataclass(frozen=True)
class TwoD(Common):
    """Learn and unroll two latents, with each mixing and each objective.

    Attributes:
        mixings: which.
        objectives: which; slow-features is the closed-form baseline, on polynomials of degree 5.
        rho: correlation of a latent with the parent of its views.
        training: of an MLP.
        coupling: of the encoder that has the shape of the coupling's inverse, and learns that mixing.
    """

    mixings: tuple[MixingName, ...] = ("spiral", "banana", "sinusoid", "coupling")
    objectives: tuple[ObjectiveName, ...] = ("lejepa", "whitening", "slow-features")
    rho: float = 0.95
    training: VectorTraining = MLP
    coupling: VectorTraining = COUPLING


def two_d(options: TwoD) -> list[CellResult]:
    """Run the experiment, and leave the table, the figure and ``result.json``."""
    folder = cli.run_folder(options.out, "identify-two-d")
    cells = [
        _cell(options, mixing, name, seed)
        for mixing in options.mixings
        for name in options.objectives
        for seed in options.all_seeds
    ]
    results = run_cells(folder / "cells", cells, options.device, options.workers, lambda r: r2_text(r.report.r2_hz))

    def by(result: CellResult) -> tuple[str, str]:
        return result.cell.world.mixing, result.cell.name

    r2 = summary(results, by, lambda r: r.report.r2_hz)
    back = summary(results, by, lambda r: r.report.r2_zh)
    error = summary(results, by, lambda r: r.report.orthogonality_error)
    seconds = summary(results, by, lambda r: r.seconds)
    mixed = summary(results, by, lambda r: r.report.r2_xz)
    table = new_table(
        f"linear identifiability of two latents, {options.over_seeds}",
        "mixing",
        ("objective", "R² x → z", "R² h → z", "R² z → h", "‖AᵀA - I‖", "seconds"),
    )
    for key in r2:
        table.add_row(
            key[0],
            key[1],
            f"{mixed[key].mean:.3f}",
            interval_text(r2[key]),
            interval_text(back[key]),
            f"{error[key].mean:.4f}",
            f"{seconds[key].mean:.0f}",
        )
    leave(folder, "two-d", options, results, {}, unrolled(results, options), table)
    return results


def _cell(options: TwoD, mixing: MixingName, name: ObjectiveName, seed: int) -> Cell:
    world = World(mixing=mixing, rho=options.rho, seed=seed)
    training = options.coupling if mixing == "coupling" else options.training
    objective = synthetic_objective(name, world.correlation, keeps_volumes=training.encoder == "coupling")
    points = 4000 if seed == options.seed else 0
    return Cell(name, world, 2, objective, training, seed, options.count, points)


def unrolled(results: list[CellResult], options: TwoD) -> Figure:
    """Draw latents, observations and embeddings of the first seed, coloured by the latents' angle and radius."""
    shown = [result for result in results if result.cell.points]
    columns = ["latents z", "observations x", *(f"h by {name}" for name in options.objectives)]
    rows = len(options.mixings)
    figure = Figure(figsize=(1.7 * len(columns), 1.8 * rows + 0.3), layout="constrained")
    axes = figure.subplots(rows, len(columns), squeeze=False)
    for row, mixing in zip(axes, options.mixings, strict=True):
        ours = [result for result in shown if result.cell.world.mixing == mixing]
        points = [result.points() for result in ours]
        clouds = [points[0]["z"], points[0]["x"], *(kept["h"] for kept in points)]
        titles = ["", "", *(f"R² {r2_text(result.report.r2_hz)}" for result in ours)]
        colours = latent_colours(points[0]["z"])
        for axis, cloud, title in zip(row, clouds, titles, strict=True):
            reach = 1.05 * np.quantile(np.abs(cloud), 0.999)
            axis.scatter(cloud[:, 0], cloud[:, 1], s=2, c=colours, lw=0)
            axis.set(xlim=(-reach, reach), ylim=(-reach, reach), xticks=[], yticks=[], aspect="equal")
            axis.set_xlabel(title, fontsize=8)
        row[0].set_ylabel(mixing)
    for axis, title in zip(axes[0], columns, strict=True):
        axis.set_title(title, fontsize=9)
    return figure
