"""Experiment scaling: from 2 latents to 1024, beside the published numbers."""

from dataclasses import dataclass, replace

import numpy as np
from matplotlib.figure import Figure

from worldmodel.encoders.objectives import InfoNCE, LeJEPA, Objective
from worldmodel.report.figures import EMBEDDING, ORACLE
from worldmodel.report.tables import new_table
from worldmodel.scripts import cli
from worldmodel.scripts.laboratory.cells import Cell, CellResult, run_cells
from worldmodel.scripts.laboratory.common import Common, interval_text, leave, r2_text, summary
from worldmodel.stats.intervals import Interval
from worldmodel.synthetic.objectives import ObjectiveName, synthetic_objective
from worldmodel.synthetic.training import COUPLING, VectorTraining
from worldmodel.synthetic.worlds import World

PUBLISHED = {
    "lejepa": (0.999998, 0.999996, 0.999993, 0.999988, 0.999981, 0.999966, 0.999938, 0.999884, 0.999775, 0.999561),
    "whitening": (0.999996, 0.999987, 0.999988, 0.999987, 0.999981, 0.999968, 0.999942, 0.999889, 0.999785, 0.999582),
    "infonce": (0.950961, 0.910871, 0.886818, 0.999880, 0.907809, 0.648496, 0.566955, 0.696587, 0.704393, 0.720241),
}
"""R² h → z for N = 2, 4, ..., 1024, mean of 5 seeds (arXiv 2605.26379); its tables call whitening VICReg."""
_COLOURS = {
    "lejepa": EMBEDDING,
    "whitening": ORACLE,
    "infonce": "#55a868",
    "infonce-matched": "#dd8452",
    "vicreg": "#8172b3",
}


@dataclass(frozen=True)
class Scaling(Common):
    """Learn a coupling's inverse for more and more latents.

    infonce has the paper's kernel of width 1, which is too wide for an encoder that keeps volumes; infonce-matched has
    the width that suits the pairs.

    Attributes:
        latents: N, each at least 2, odd ones too.
        objectives: which.
        rho: correlation of a latent with the parent of its views.
        many: from this N on one initialisation is enough, and the embedding is not whitened: the encoder keeps volumes,
            and no local optimum was seen.
        training: how; above 512 latents the learning rate falls as 1/N.
    """

    latents: tuple[int, ...] = (2, 8, 32, 128, 512)
    objectives: tuple[ObjectiveName, ...] = ("lejepa", "whitening", "infonce")
    rho: float = 0.95
    many: int = 64
    training: VectorTraining = COUPLING


def scaling(options: Scaling) -> list[CellResult]:
    """Run the experiment, and leave the table, the figure and ``result.json``."""
    folder = cli.run_folder(options.out, "identify-scaling")
    cells = [
        _cell(options, N, name, seed)
        for N in options.latents
        for name in options.objectives
        for seed in options.all_seeds
    ]
    results = run_cells(folder / "cells", cells, options.device, options.workers, lambda r: r2_text(r.report.r2_hz))

    def by(result: CellResult) -> tuple[int, str]:
        return result.cell.world.latents, result.cell.name

    r2 = summary(results, by, lambda r: r.report.r2_hz)
    error = summary(results, by, lambda r: r.report.orthogonality_error / np.sqrt(r.cell.outputs))
    mixed = summary(results, by, lambda r: r.report.r2_xz)
    above = summary(results, by, lambda r: r.loss_above_latents)
    seconds = summary(results, by, lambda r: r.seconds)
    table = new_table(
        f"R² h → z of a coupling of N latents, {options.over_seeds}",
        "N",
        ("objective", "R² x → z", "R² h → z", "published", "‖AᵀA - I‖ / √N", "loss above z's", "seconds"),
    )
    for (N, name), interval in r2.items():
        known = published(name, N)
        table.add_row(
            str(N),
            name,
            f"{mixed[N, name].mean:.3f}",
            interval_text(interval),
            f"{known:.6f}" if known else "",
            f"{error[N, name].mean:.4f}",
            f"{above[N, name].mean:+.1e}" if (N, name) in above else "",
            f"{seconds[N, name].mean:.0f}",
        )
    measured = {"published_r2_hz": {name: dict(zip(_SIZES, values, strict=True)) for name, values in PUBLISHED.items()}}
    leave(folder, "scaling", options, results, measured, _figure(r2), table)
    return results


_SIZES = tuple(2**k for k in range(1, 11))


def published(name: str, latents: int) -> float | None:
    """Return the published R² of an objective for N latents, where there is one."""
    return PUBLISHED[name][_SIZES.index(latents)] if name in PUBLISHED and latents in _SIZES else None


def rate(lr: float, latents: int) -> float:
    """Return the learning rate for N latents: from 512 on it falls as 1/N, as Adam wants it for wider layers.

    (Yang et al., arXiv 2203.03466.) With 0.01 at 1024 latents LeJEPA ended at R² 0.60.

    >>> rate(0.01, 128), rate(0.01, 1024)
    (0.01, 0.005)
    """
    return lr * min(1.0, 512 / latents)


def _cell(options: Scaling, latents: int, name: ObjectiveName, seed: int) -> Cell:
    world = World(latents=latents, mixing="coupling", rho=options.rho, seed=seed)
    training, objective = options.training, synthetic_objective(name, world.correlation, keeps_volumes=True)
    if latents >= options.many:
        training, objective = replace(training, copies=1), _unwhitened(objective)
    training = replace(training, lr=rate(training.lr, latents))
    if isinstance(objective, InfoNCE):  # its optimum depends on how many others a pair is told from
        training = replace(training, late_batch=training.batch_size)
    return Cell(name, world, latents, objective, training, seed, max(options.count, 20 * latents))


def _unwhitened(objective: Objective | None) -> Objective | None:
    return replace(objective, whiten=False) if isinstance(objective, LeJEPA) else objective


def _figure(r2: dict[tuple[int, str], Interval]) -> Figure:
    figure = Figure(figsize=(6, 4), layout="constrained")
    axis = figure.subplots()
    for name in dict.fromkeys(name for _, name in r2):
        sizes = [N for N, other in r2 if other == name]
        intervals = [r2[N, name] for N in sizes]
        colour = _COLOURS.get(name, "black")
        lost = np.array([1 - interval.mean for interval in intervals])
        axis.plot(sizes, np.maximum(lost, 1e-9), "o-", color=colour, label=name)
        if name in PUBLISHED:
            axis.plot(_SIZES, 1 - np.array(PUBLISHED[name]), "x:", color=colour, alpha=0.6, label=f"{name}, published")
    axis.set_xscale("log", base=2)
    axis.set(yscale="log", xlabel="latents N", ylabel="1 - R² (h → z)", title="What linear maps of h miss of z")
    axis.legend(frameon=False, fontsize=8)
    axis.spines[["top", "right"]].set_visible(False)
    return figure
