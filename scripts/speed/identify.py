"""Training steps per second on synthetic worlds, beside a straightforward implementation of the published loop."""

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from worldmodel.encoders.objectives import LeJEPA
from worldmodel.encoders.sigreg import random_slices, sigreg_direct
from worldmodel.report.tables import new_table, spread
from worldmodel.scripts import cli
from worldmodel.scripts.speed.result import write_result
from worldmodel.scripts.speed.turns import by_turns, milliseconds, times_faster, torch_threads
from worldmodel.synthetic.training import VectorTraining, losses_of, new_encoder
from worldmodel.synthetic.worlds import World


@dataclass(frozen=True)
class Identify:
    """Take by turns training steps of ours and of the published loop, with the same encoder, batch, knots and slices.

    Attributes:
        latents: N; two are a spiral and an MLP of 4 hidden layers of 256, more a coupling and its own shape.
        batch_size: pairs per step.
        steps: per repeat.
        repeats: how often each is timed, after one round that is not.
        threads: of either side.
        seed: of weights and data.
        out: output folder.
    """

    latents: tuple[int, ...] = (2, 128)
    batch_size: int = 256
    steps: int = 20
    repeats: int = 9
    threads: int = 1
    seed: int = 0
    out: Path = Path("runs/bench/identify")


@dataclass(frozen=True)
class StepRate:
    """Steps per second of both loops at one N, one entry per repeat.

    Attributes:
        latents: N.
        ours: steps per second.
        published: the same of the published loop.
        faster: their ratio within each repeat.
    """

    latents: int
    ours: list[float]
    published: list[float]
    faster: list[float]


def identify(options: Identify) -> list[StepRate]:
    """Time both loops, and leave the table in ``result.json``."""
    if options.repeats < 2 or options.steps < 1 or options.threads < 1:
        raise ValueError("--steps and --threads must be at least 1, and --repeats at least 2")
    folder = cli.run_folder(options.out, "bench/identify")
    with torch_threads(options.threads):
        rates = [_rates(latents, options) for latents in options.latents]
    table = new_table(
        f"training steps per second: {options.batch_size} pairs, 17 knots, 256 slices, threads: {options.threads}",
        "N",
        ("published loop", "range", "ours", "range", "x faster", "range"),
    )
    for rate in rates:
        table.add_row(str(rate.latents), *spread(rate.published, 1), *spread(rate.ours, 1), *spread(rate.faster, 1))
    cli.console.print(table)
    write_result(folder, options, {"steps_per_second": [asdict(rate) for rate in rates]}, {})
    return rates


def _rates(latents: int, options: Identify) -> StepRate:
    world = World(latents=latents, mixing="spiral" if latents == 2 else "coupling", seed=options.seed)
    loops = {"ours": our_loop(world, options), "published": published_loop(world, options)}
    ways = {name: partial(milliseconds, step, options.steps) for name, step in loops.items()}
    ms = by_turns(ways, options.repeats, f"N = {latents}")
    ours, published = ((1e3 / np.array(ms[name])).tolist() for name in ("ours", "published"))
    return StepRate(latents, ours, published, times_faster(ms["ours"], ms["published"]))


def our_loop(world: World, options: Identify) -> Callable[[], Tensor]:
    """Return a step of this library's loop, with one copy and the objective of the paper."""
    generator = torch.Generator().manual_seed(options.seed)
    training = VectorTraining(copies=1, encoder="mlp" if world.latents == 2 else "coupling")
    encoder = new_encoder(world, world.latents, training, generator)
    optimiser = torch.optim.Adam(encoder.parameters(), lr=training.lr, fused=True)
    objective = LeJEPA(weight=4e-3, whiten=False)

    def step() -> Tensor:
        loss = losses_of(encoder, world, objective, options.batch_size, generator).sum()
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        optimiser.step()
        return loss

    return step


def published_loop(world: World, options: Identify) -> Callable[[], Tensor]:
    """Return a step of the published loop, written down plainly: torch.nn layers, SIGReg by its formula, AdamW.

    As published, both views are one sample of SIGReg, and the whitening loss is computed at every step for the record.
    """
    generator = torch.Generator().manual_seed(options.seed)
    encoder: nn.Module = _published_mlp() if world.latents == 2 else _PublishedCoupling(world.latents, world.layers)
    optimiser = torch.optim.AdamW(encoder.parameters(), lr=3e-3)
    noise = math.sqrt(1 - world.rho**2)

    def step() -> Tensor:
        z = torch.randn(options.batch_size, world.latents, generator=generator)
        eta = torch.randn(2, options.batch_size, world.latents, generator=generator)
        x = world.observe(world.rho * z + noise * eta)
        h = encoder(x.flatten(0, 1)).reshape(2, options.batch_size, -1)
        alignment = (h.mean(0) - h).square().mean()
        regulariser = sigreg_direct(h.flatten(0, 1)[None], random_slices(h.shape[-1], 256, generator), knots=17)
        _published_whitening(h.detach().flatten(0, 1))
        loss = 1e-3 * regulariser + (1 - 1e-3) * alignment
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        return loss

    return step


def _published_whitening(h: Tensor) -> Tensor:
    return (torch.cov(h.T) - torch.eye(h.shape[1])).square().mean()


def _published_mlp() -> nn.Sequential:
    layers: list[nn.Module] = [nn.Linear(2, 256), nn.GELU()]
    for _ in range(3):
        layers += [nn.Linear(256, 256), nn.GELU()]
    return nn.Sequential(*layers, nn.Linear(256, 2))


class _PublishedCoupling(nn.Module):
    def __init__(self, latents: int, layers: int) -> None:
        super().__init__()
        self.part = latents // 2
        weights = [nn.Parameter(torch.randn(self.part, self.part) / math.sqrt(self.part)) for _ in range(layers)]
        self.weights = nn.ParameterList(weights)

    def forward(self, x: Tensor) -> Tensor:
        for layer in reversed(range(len(self.weights))):
            a, b = x[..., : self.part], x[..., self.part :]
            if layer % 2 == 0:
                b = b - torch.tanh(a @ self.weights[layer])
            else:
                a = a - torch.tanh(b @ self.weights[layer])
            x = torch.cat([a, b], dim=-1)
        return x
