"""Cells of an experiment on synthetic worlds: one training each, kept on disk, so that a stopped run goes on."""

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import torch

from worldmodel.encoders.objectives import Objective
from worldmodel.synthetic.encoders import VectorEncoder
from worldmodel.synthetic.report import Encode, VectorReport, examine
from worldmodel.synthetic.slow_features import fit_slow_features
from worldmodel.synthetic.training import VectorTraining, fit_vectors, judge, judge_latents
from worldmodel.synthetic.worlds import World
from worldmodel.utils.devices import resolve_device
from worldmodel.utils.files import to_plain, write_json, write_whole
from worldmodel.utils.progress import progress_bar
from worldmodel.utils.stages import run_stage
from worldmodel.utils.workers import HOURS, in_parallel


@dataclass(frozen=True)
class Cell:
    """What decides the result of one training.

    Attributes:
        name: of the objective, for people.
        world: what is learnt.
        outputs: m, dimensions of the embedding.
        objective: what is minimised; None for slow features, by polynomials of degree ``degree``.
        training: how.
        seed: of initial weights, data and slices.
        count: fresh pairs to fit maps on, and as many to score them on.
        points: how many points z, x, h to keep for a figure.
        degree: of slow features.
    """

    name: str
    world: World
    outputs: int
    objective: Objective | None
    training: VectorTraining
    seed: int
    count: int = 20_000
    points: int = 0
    degree: int = 5


@dataclass(frozen=True)
class CellResult:
    """What a cell gave.

    Attributes:
        cell: what decided it.
        report: how good the encoder is.
        losses: of all copies, when one was chosen; empty for slow features.
        loss_above_latents: the loss of the trained encoder less that of z itself, on the same fresh batches of the
            late size: below 0 the objective wants something else than z, above 0 training fell short. None where h
            has another size than z, and for slow features.
        seconds: of training.
        steps_per_second: of training.
        folder: where ``points.npz`` lies, if points were asked for.
    """

    cell: Cell
    report: VectorReport
    losses: tuple[float, ...]
    loss_above_latents: float | None
    seconds: float
    steps_per_second: float
    folder: Path

    def to_json(self) -> dict[str, Any]:
        """Return JSON values, of the cell what tells cells of an experiment apart."""
        what: dict[str, Any] = {
            "objective": self.cell.name,
            "objective_options": None if self.cell.objective is None else vars(self.cell.objective),
            "world": asdict(self.cell.world),
            "outputs": self.cell.outputs,
            "seed": self.cell.seed,
            "training": asdict(self.cell.training),
        }
        names = ("losses", "loss_above_latents", "seconds", "steps_per_second")
        return dict(to_plain(what | asdict(self.report) | {name: getattr(self, name) for name in names}))

    def points(self) -> dict[str, np.ndarray]:
        """Return ``z``, ``x`` and ``h``, each (points, dimensions)."""
        with np.load(self.folder / "points.npz", allow_pickle=False) as kept:
            return {name: kept[name] for name in ("z", "x", "h")}


def run_cells(
    root: Path, cells: Sequence[Cell], device: str, workers: int = 1, show: Callable[[CellResult], str] | None = None
) -> list[CellResult]:
    """Run what is not on disk yet, and return the results in the order of the cells.

    Args:
        root: where cells are kept.
        cells: what to run.
        device: auto, cpu or cuda.
        workers: processes, each with one thread; 1 runs here.
        show: says in a word how a cell went, for the progress bar.
    """
    if workers < 1:
        raise ValueError(f"{workers} workers: it takes at least one")
    where = str(resolve_device(device))
    results: dict[int, CellResult] = {}
    with progress_bar("cells", len(cells)) as advance:
        for index, result in _each(root, cells, where, workers):
            results[index] = result
            advance(1, show(result) if show else "")
    return [results[index] for index in range(len(cells))]


def _each(root: Path, cells: Sequence[Cell], device: str, workers: int) -> Any:
    if workers == 1:
        return ((index, run_cell(root, cell, device)) for index, cell in enumerate(cells))
    calls = [joblib.delayed(_numbered)(index, root, cell, device) for index, cell in enumerate(cells)]
    return in_parallel(calls, workers, "training on synthetic worlds", patience=HOURS)


def _numbered(index: int, root: Path, cell: Cell, device: str) -> tuple[int, CellResult]:
    torch.set_num_threads(1)
    return index, run_cell(root, cell, device)


def run_cell(root: Path, cell: Cell, device: str) -> CellResult:
    """Run one cell, or read what it gave."""
    key = {"torch": torch.__version__.split("+")[0], "cell": _key(cell)}
    stage = run_stage(root, "cell", key, lambda folder: _build(folder, cell, device), made_by=[run_cell])
    kept = json.loads((stage.folder / "result.json").read_text())
    report: dict[str, Any] = kept["report"]
    report["energy"] = None if report["energy"] is None else tuple(report["energy"])
    rest = {name: kept[name] for name in ("loss_above_latents", "seconds", "steps_per_second")}
    return CellResult(cell, VectorReport(**report), tuple(kept["losses"]), **rest, folder=stage.folder)


def _key(cell: Cell) -> dict[str, Any]:
    plain = asdict(replace(cell, objective=None))
    return dict(to_plain(plain | {"objective": repr(cell.objective)}))


def _build(folder: Path, cell: Cell, device: str) -> None:
    encode, run = _slow(cell) if cell.objective is None else _trained(cell, cell.objective, device)
    report = examine(encode, cell.world, cell.count, cell.seed)
    if cell.points:
        z = cell.world.draw_pairs(cell.points, torch.Generator().manual_seed(cell.seed), torch.float64)[0]
        x = cell.world.observe(z).numpy()
        kept = {"z": z.numpy(), "x": x, "h": encode(x)}
        small = {name: value.astype(np.float32) for name, value in kept.items()}
        write_whole(folder / "points.npz", lambda path: np.savez_compressed(path, **small))  # type: ignore[arg-type]
    write_json(folder / "result.json", to_plain({"report": asdict(report)} | run))


def _trained(cell: Cell, objective: Objective, device: str) -> tuple[Encode, dict[str, Any]]:
    try:
        run = fit_vectors(cell.world, cell.outputs, objective, cell.training, seed=cell.seed, device=device)
    except RuntimeError as error:
        of = cell.world
        where = f"{cell.name}, {of.latents} latents, {of.mixing}, {of.law}, {of.pairs} pairs, seed {cell.seed}"
        raise RuntimeError(f"{where}: {error}") from error
    return run.encode, {
        "losses": run.losses,
        "loss_above_latents": _above_latents(cell, objective, run.encoder, device),
        "seconds": run.seconds,
        "steps_per_second": cell.training.steps / run.seconds,
    }


def _above_latents(cell: Cell, objective: Objective, encoder: VectorEncoder, device: str) -> float | None:
    if cell.outputs != cell.world.latents:
        return None
    batch = cell.training.late_batch
    reached = judge(encoder, cell.world, objective, batch, cell.seed, device)[0]
    return reached - judge_latents(cell.world, objective, batch, cell.seed, device)


def _slow(cell: Cell) -> tuple[Encode, dict[str, Any]]:
    generator = torch.Generator().manual_seed(cell.seed)
    run = {"losses": (), "loss_above_latents": None, "seconds": 0.0, "steps_per_second": 0.0}
    views = cell.world.observe(cell.world.draw_pairs(100_000, generator, torch.float64)).numpy()
    return fit_slow_features(views[0], views[1], cell.outputs, cell.degree).encode, run
