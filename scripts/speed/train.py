"""Training steps of the pixel encoder, beside those of the published encoder run as published."""

import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from worldmodel.encoders.encoder import Encoder
from worldmodel.encoders.objectives import LeJEPA
from worldmodel.encoders.training import TrainingOptions, TrainingRun, compiled
from worldmodel.report.tables import new_table, spread
from worldmodel.scripts import cli
from worldmodel.scripts.speed.result import write_result
from worldmodel.scripts.speed.train_baseline import published_encoder, published_step
from worldmodel.scripts.speed.turns import by_turns, milliseconds, times_faster, torch_threads
from worldmodel.utils.devices import one_core_spared, resolve_device

OURS = "fit_encoder"
_PATIENCE = 2.0  # where a number of threads makes a step take so many times as long as at best, it is not tried again


@dataclass(frozen=True)
class Train:
    """Take training steps of fit_encoder and of the published encoder by turns, on the same pairs in memory.

    Attributes:
        dim: dimensions m of the embedding.
        size: height and width of a frame in pixels; frames are noise, as time does not depend on what they show.
        frames: in memory.
        batch_size: pairs per step.
        steps: per repeat.
        repeats: how often each is timed, after one round that is not.
        threads: that the published step tries on a CPU, the fastest counts; none means one thread, and one per core.
            Ours takes those that fit_encoder takes, and one per core, which WORLDMODEL_THREADS allows.
        compile: time a compiled fit_encoder, too.
        device: auto, cpu or cuda.
        seed: of weights and data.
        out: output folder.
    """

    dim: int = 2
    size: int = 64
    frames: int = 2_048
    batch_size: int = 128
    steps: int = 4
    repeats: int = 9
    threads: tuple[int, ...] = ()
    compile: bool = False
    device: str = "auto"
    seed: int = 0
    out: Path = Path("runs/bench/train")


@dataclass(frozen=True)
class TrainTime:
    """Time of one way to train.

    Attributes:
        way: what trains.
        ms: milliseconds per step, one entry per repeat.
        faster: how many times faster than the published step, one entry per repeat, each over the same round's.
    """

    way: str
    ms: list[float]
    faster: list[float]


def train(options: Train) -> list[TrainTime]:
    """Time both steps, and leave the table in ``result.json``."""
    if options.repeats < 2 or min(options.steps, *options.threads, 1) < 1 or options.frames <= options.batch_size:
        raise ValueError(
            "--steps and --threads must be at least 1, --repeats at least 2, and --frames more than --batch-size"
        )
    device = resolve_device(options.device)
    folder = cli.run_folder(options.out, "bench/train")
    pairs = Pairs(options, device)
    published, ours = published_ways(options, device, pairs), our_ways(options, device, pairs)
    looks = {way: min(measure(), measure()) for way, measure in (published | ours).items()}
    kept = _promising(list(published), looks)
    ways = {way: ours[way] for way in dict.fromkeys([OURS, *_promising(list(ours), looks)])}
    ways |= {way: published[way] for way in kept}
    ms = by_turns(ways, options.repeats, "training")
    best = min(kept, key=lambda way: float(np.median(ms[way])))
    times = [TrainTime(name, each, times_faster(each, ms[best])) for name, each in ms.items()]
    table = new_table(
        f"milliseconds per step: {options.batch_size} pairs of {options.size}x{options.size}, {device.type}",
        "way",
        ("median", "range", "times faster than published", "range"),
    )
    for one in times:
        table.add_row(one.way, *spread(one.ms, 1), *spread(one.faster, 2))
    cli.console.print(table)
    measured = {"published_best": best, "first_look_ms": looks, "train": [asdict(one) for one in times]}
    write_result(folder, options, measured | {"device_type": device.type}, {})
    return times


def _promising(ways: list[str], looks: dict[str, float]) -> list[str]:
    """Return the ways that took less than twice as long as the fastest of them at first."""
    return [way for way in ways if looks[way] < _PATIENCE * min(looks[one] for one in ways)]


class Pairs:
    """Pairs of neighbouring frames, drawn from frames in memory."""

    def __init__(self, options: Train, device: torch.device) -> None:
        rng = np.random.default_rng(options.seed)
        shape = (options.frames, options.size, options.size, 3)
        self.frames = torch.from_numpy(rng.integers(0, 256, shape, np.uint8)).to(device)
        self._generator = torch.Generator().manual_seed(options.seed)
        self._size = options.batch_size

    def draw(self) -> Tensor:
        """Return the first frames of the pairs of a batch and then the second, (2 B, H, W, 3) uint8."""
        first = torch.randint(len(self.frames) - 1, (self._size,), generator=self._generator)
        return self.frames[torch.cat([first, first + 1]).to(self.frames.device)]


def our_ways(options: Train, device: torch.device, pairs: Pairs) -> dict[str, Callable[[], float]]:
    """Return what takes some steps of fit_encoder, and returns milliseconds per step, by name."""
    with torch.random.fork_rng():
        torch.manual_seed(options.seed)
        encoder = Encoder(options.dim, (options.size, options.size))
    encoder.fit_normalisation(pairs.frames[:256].cpu().numpy())
    training = TrainingOptions(steps=1_000_000, batch_size=options.batch_size)
    run = TrainingRun(encoder, LeJEPA(), training, 0.97, options.seed, device, "bench")
    run.encoder.train()

    def measure(threads: AbstractContextManager[None], compile: bool = False) -> float:
        with threads, compiled(run.encoder, compile):
            return milliseconds(lambda: run.update(pairs.draw(), options.batch_size)[1], options.steps)

    ways = {OURS: lambda: measure(one_core_spared())}
    cores = os.cpu_count() or 1
    if device.type == "cpu" and cores > 1:
        ways[f"{OURS}, {cores} threads"] = lambda: measure(torch_threads(cores))
    if options.compile:
        ways[f"{OURS}, compiled"] = lambda: measure(one_core_spared(), compile=True)
    return ways


def published_ways(options: Train, device: torch.device, pairs: Pairs) -> dict[str, Callable[[], float]]:
    """Return what takes some published steps, and returns milliseconds per step, by name."""
    with torch.random.fork_rng():
        torch.manual_seed(options.seed)
        encoder = published_encoder(options.dim, options.size).to(device)
    step = published_step(encoder, options.seed)

    def measure(threads: int) -> float:
        with torch_threads(threads):
            return milliseconds(lambda: step(*pairs.draw().chunk(2)), options.steps)

    counts = sorted(options.threads or {1, os.cpu_count() or 1}) if device.type == "cpu" else [torch.get_num_threads()]
    return {f"published, {n} thread{'s' * (n > 1)}": partial(measure, n) for n in counts}
