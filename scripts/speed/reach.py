"""Seconds from nothing to an encoder that identifies the state: frames, training and the proof on held-out episodes."""

import shutil
import time
import warnings
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path

from worldmodel.agents import LatentOU, collect
from worldmodel.encoders.history import LocalOptimumWarning
from worldmodel.encoders.objectives import LeJEPA
from worldmodel.encoders.training import TrainingOptions, fit_encoder
from worldmodel.measures.identifiability import identifiability
from worldmodel.report.tables import new_table
from worldmodel.scripts import cli
from worldmodel.scripts.planning.job import CHAIN, COARSE
from worldmodel.scripts.speed.result import write_result
from worldmodel.utils.devices import resolve_device


@dataclass(frozen=True)
class Reach:
    """Collect frames, train an encoder as scripts/plan.py does, only shorter, and measure it on held-out episodes.

    Attributes:
        env: a DeepMind Control task.
        rho: correlation of every latent across one step of the data.
        frames: to collect.
        steps: of training, one cycle of the learning rate.
        target: held-out R² that every latent has to reach.
        seeds: of data and training, one run each; the figure is that of all of them.
        processes: that collect; 0 means one per core.
        device: auto, cpu or cuda.
        out: output folder; frames that lie there from an earlier run are drawn anew.
    """

    env: str = "reacher"
    rho: float = 0.8
    frames: int = 15_000
    steps: int = 600
    target: float = 0.95
    seeds: tuple[int, ...] = (0, 1, 2)
    processes: int = 0
    device: str = "auto"
    out: Path = Path("runs/bench/reach")


@dataclass(frozen=True)
class Reached:
    """One run from nothing.

    Attributes:
        seed: of data and training.
        collect_seconds: of drawing and storing the frames, the start of the processes included.
        train_seconds: of training.
        measure_seconds: of embedding all frames, the fit on training episodes and the score on held-out ones.
        seconds: of all three.
        r2_per_latent: held-out R² of each latent.
        reached: whether every latent reaches the target.
    """

    seed: int
    collect_seconds: float
    train_seconds: float
    measure_seconds: float
    seconds: float
    r2_per_latent: tuple[float, ...]
    reached: bool


def reach(options: Reach) -> list[Reached]:
    """Do all runs, and leave the table in ``result.json``."""
    if not options.seeds:
        raise ValueError("--seeds needs at least one")
    resolve_device(options.device)
    folder = cli.run_folder(options.out, "bench/reach")
    runs = [_run(options, seed, folder / "data") for seed in options.seeds]
    table = new_table(
        f"{options.env}: seconds to a held-out R² of {options.target}, {options.frames} frames, {options.steps} steps",
        "seed",
        ("collect", "train", "measure", "all", "held-out R²", "reached"),
    )
    for run in runs:
        seconds = (run.collect_seconds, run.train_seconds, run.measure_seconds, run.seconds)
        r2 = ", ".join(f"{value:.3f}" for value in run.r2_per_latent)
        table.add_row(str(run.seed), *(f"{one:.1f}" for one in seconds), r2, "yes" if run.reached else "no")
    cli.console.print(table)
    write_result(folder, options, {"reach": [asdict(run) for run in runs]}, {})
    return runs


def _run(options: Reach, seed: int, data: Path) -> Reached:
    shutil.rmtree(data, ignore_errors=True)
    explorer = LatentOU(options.rho)
    training = TrainingOptions(options.steps, coarse_lag=COARSE, coarse_share=0.7)
    times = [time.perf_counter()]
    episodes = collect(
        options.env, explorer, options.frames, data, length=CHAIN, seed=seed, processes=options.processes
    )
    times.append(time.perf_counter())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LocalOptimumWarning)  # so short a training may end above the optimum
        latents = episodes.train.latents.shape[1]
        encoder = fit_encoder(episodes, latents, LeJEPA(), training, device=options.device, seed=seed)
    times.append(time.perf_counter())
    r2 = identifiability(encoder, episodes).r2_per_latent
    times.append(time.perf_counter())
    collecting, fitting, measuring = (end - begin for begin, end in pairwise(times))
    return Reached(seed, collecting, fitting, measuring, times[-1] - times[0], r2, min(r2) >= options.target)
