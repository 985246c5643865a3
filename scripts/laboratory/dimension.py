"""Experiment dimension: an embedding of another size than the world, which the theory leaves open."""

from dataclasses import dataclass
from math import comb

import numpy as np
from matplotlib.figure import Figure

from worldmodel.report.figures import EMBEDDING, FAINT, ORACLE
from worldmodel.report.tables import new_table
from worldmodel.scripts import cli
from worldmodel.scripts.laboratory.cells import CellResult, run_cells
from worldmodel.scripts.laboratory.common import Common, interval_text, leave, mlp_cell, r2_text, summary
from worldmodel.synthetic.objectives import ObjectiveName
from worldmodel.synthetic.training import MLP, VectorTraining
from worldmodel.synthetic.worlds import World


@dataclass(frozen=True)
class Dimension(Common):
    """Learn embeddings that are too narrow, right and too wide.

    A white embedding of m coordinates aligns best on the m slowest functions of the world: n of degree 1, then those of
    degree 2, and so on. Too narrow a one should find m directions of z and lose the rest, too wide a one should find z
    and fill up with squares and products, unless it must be Gaussian, which they are not.

    Attributes:
        latents: n of the world, a coupling; odd ones too.
        outputs: m.
        objectives: which.
        rho: correlation of a latent with the parent of its views.
        training: how.
    """

    latents: int = 3
    outputs: tuple[int, ...] = (1, 2, 3, 4, 5, 6)
    objectives: tuple[ObjectiveName, ...] = ("lejepa", "whitening")
    rho: float = 0.95
    training: VectorTraining = MLP


def dimension(options: Dimension) -> list[CellResult]:
    """Run the experiment, and leave the table, the figure and ``result.json``."""
    folder = cli.run_folder(options.out, "identify-dimension")
    cells = [
        mlp_cell(options, name, world, m, options.training)
        for name in options.objectives
        for m in options.outputs
        for world in (World(options.latents, "coupling", rho=options.rho, seed=seed) for seed in options.all_seeds)
    ]
    results = run_cells(folder / "cells", cells, options.device, options.workers, lambda r: r2_text(r.report.r2_hz))

    def by(result: CellResult) -> tuple[str, int]:
        return result.cell.name, result.cell.outputs

    r2 = summary(results, by, lambda r: r.report.r2_hz)
    back = summary(results, by, lambda r: r.report.r2_zh)
    alignment = summary(results, by, lambda r: r.report.alignment)
    nonlinear = summary(results, by, lambda r: r.report.nonlinear_energy)
    correlation = World(rho=options.rho).correlation
    best = {m: slowest_alignment(options.latents, m, correlation) for m in options.outputs}
    table = new_table(
        f"{options.latents} latents, m coordinates of h, {options.over_seeds}",
        "objective",
        ("m", "R² h → z", "m / n", "R² z → h", "W_nl", "alignment", "of the m slowest"),
    )
    for name, m in r2:
        key = name, m
        table.add_row(
            name,
            str(m),
            interval_text(r2[key]),
            f"{min(1.0, m / options.latents):.3f}",
            interval_text(back[key]),
            f"{nonlinear[key].mean:.3f}",
            f"{alignment[key].mean:.4f}",
            f"{best[m]:.4f}",
        )
    leave(folder, "dimension", options, results, {"slowest_alignment": best}, _figure(results, options), table)
    return results


def slowest_alignment(latents: int, outputs: int, correlation: float) -> float:
    """Return E‖h' - h‖² / 2m of the m slowest white functions: the mean of 1 - ρ^d over the least degrees d.

    There are (n + d - 1 choose d) functions of degree d.

    >>> round(slowest_alignment(2, 3, 0.9), 4)  # two of degree 1, one of degree 2
    0.13
    """
    degrees: list[int] = []
    degree = 1
    while len(degrees) < outputs:
        degrees += [degree] * comb(latents + degree - 1, degree)
        degree += 1
    return float(np.mean([1 - correlation**degree for degree in degrees[:outputs]]))


def _figure(results: list[CellResult], options: Dimension) -> Figure:
    figure = Figure(figsize=(5 * len(options.objectives), 3.6), layout="constrained")
    for axis, name in zip(
        figure.subplots(1, len(options.objectives), squeeze=False)[0], options.objectives, strict=True
    ):
        ours = [result for result in results if result.cell.name == name]
        m = np.array([result.cell.outputs for result in ours])
        axis.plot(m, [result.report.r2_hz for result in ours], "o", color=EMBEDDING, label="R² h → z")
        axis.plot(m, [result.report.r2_zh for result in ours], "s", color=ORACLE, label="R² z → h")
        sizes = np.arange(1, max(options.outputs) + 1)
        axis.plot(sizes, np.minimum(1, sizes / options.latents), color=EMBEDDING, ls="--", lw=1, label="m / n")
        axis.plot(sizes, np.minimum(1, options.latents / sizes), color=ORACLE, ls="--", lw=1, label="n / m")
        axis.axvline(options.latents, color=FAINT, lw=0.8, ls=":")
        axis.set(xlabel=f"coordinates m of h, for n = {options.latents}", ylabel="R²", ylim=(-0.05, 1.05), title=name)
        axis.legend(frameon=False, fontsize=8)
        axis.spines[["top", "right"]].set_visible(False)
    return figure
