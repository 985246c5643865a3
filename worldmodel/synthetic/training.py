"""Train encoders of vectors on a synthetic world: fresh pairs at every step, several copies, chosen by their loss."""

import copy
import math
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from worldmodel.encoders.objectives import Objective
from worldmodel.synthetic.encoders import CouplingEncoder, MLPEncoder, VectorEncoder, one_copy
from worldmodel.synthetic.worlds import World
from worldmodel.utils.devices import one_core_spared
from worldmodel.utils.progress import progress_bar

_JUDGED = 64  # batches that the loss of a copy is averaged over


@dataclass(frozen=True)
class VectorTraining:
    """How an encoder of vectors is trained.

    Attributes:
        steps: optimiser steps.
        batch_size: pairs per step, drawn afresh.
        late_batch: pairs per step while the learning rate falls, where only the gradient's noise is left to fight.
        lr: learning rate (Adam), constant and then falling along a cosine to 0.
        hold: share of the steps that it is held for. At its end the copy with the least loss is kept and goes on alone.
        copies: initialisations that start side by side.
        encoder: ``mlp``, or ``coupling``, which has the shape of a coupling mixing's inverse.
        hidden: width of the MLP.
        layers: hidden layers of the MLP; a coupling has as many as the world's.
        reports: how often a run is looked at by its caller.
    """

    steps: int = 4000
    batch_size: int = 256
    late_batch: int = 256
    lr: float = 3e-3
    hold: float = 0.5
    copies: int = 3
    encoder: str = "mlp"
    hidden: int = 256
    layers: int = 4
    reports: int = 50

    def __post_init__(self) -> None:
        for name in ("steps", "batch_size", "late_batch", "copies", "hidden", "layers", "reports"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} is {getattr(self, name)}; it must be at least 1")
        if self.encoder not in ("mlp", "coupling"):
            raise ValueError(f"unknown encoder {self.encoder!r}: take mlp or coupling")
        if not 0 <= self.hold < 1:
            raise ValueError(f"hold is {self.hold}; it is a share of the steps, below 1")

    def rate(self, step: int) -> float:
        """Return the learning rate of a step."""
        falling = max(0.0, (step / self.steps - self.hold) / (1 - self.hold))
        return self.lr * (1 + math.cos(math.pi * falling)) / 2


MLP = VectorTraining(steps=3000, late_batch=1024, lr=6e-3, hold=0.3, copies=2, hidden=128)
"""How an MLP is trained. Covariances of small batches favour embeddings of thin tails (whitening on the spiral: R²
0.992 with batches of 256 to the end, 0.997 with 512, 0.9987 with 1024), and a width of 256 gains nothing."""

COUPLING = VectorTraining(steps=5000, late_batch=2048, lr=1e-2, hold=0.4, copies=4, encoder="coupling")
"""How the inverse of a coupling is learnt by an encoder of its own shape."""


@dataclass(frozen=True)
class VectorRun:
    """A finished training.

    Attributes:
        encoder: the chosen copy, (B, d) to (1, B, m).
        losses: of every copy when one was chosen, averaged over fresh batches.
        chosen: which copy it is: the one with the least loss.
        seconds: of training.
    """

    encoder: nn.Module
    losses: tuple[float, ...]
    chosen: int
    seconds: float

    def encode(self, x: np.ndarray, block: int = 8192) -> np.ndarray:
        """Encode x (N, d) to h (N, m), computed in float64 on the CPU, some rows at a time."""
        precise = copy.deepcopy(self.encoder).cpu().double()
        with torch.no_grad():
            return torch.cat([precise(part)[0] for part in torch.from_numpy(x).double().split(block)]).numpy()


def fit_vectors(
    world: World,
    outputs: int,
    objective: Objective,
    options: VectorTraining = VectorTraining(),
    *,
    seed: int = 0,
    device: torch.device | str = "cpu",
    progress: bool = False,
    report: Callable[[int, nn.Module], None] | None = None,
) -> VectorRun:
    """Train encoders of a world's observations.

    Args:
        world: draws pairs of latents and mixes them; nothing else of it is seen.
        outputs: m; a coupling has as many as the world has latents.
        objective: scores the two views (2, B, m) of a batch.
        options: how.
        seed: of initial weights, data and slices.
        device: where.
        progress: draw a progress bar.
        report: called with the step and the encoder of all copies, ``options.reports`` times.

    Raises:
        ValueError: a coupling encoder of another size than the world.
        RuntimeError: a loss that is not finite.
    """
    generator = torch.Generator(device).manual_seed(seed)
    encoder = new_encoder(world, outputs, options, generator)
    optimiser = torch.optim.Adam(encoder.parameters(), lr=options.lr, fused=True)
    every, held = max(1, options.steps // options.reports), min(round(options.hold * options.steps), options.steps - 1)
    losses: tuple[float, ...] = ()
    start = time.perf_counter()
    with one_core_spared(), progress_bar("training", options.steps, progress) as advance:
        for step in range(options.steps):
            if step == held:
                losses = judge(encoder, world, objective, options.batch_size, seed, device)
                encoder, optimiser = one_copy(encoder, optimiser, _least(losses))
            optimiser.param_groups[0]["lr"] = options.rate(step)
            batch = options.batch_size if step < held else options.late_batch
            loss = losses_of(encoder, world, objective, batch, generator).sum()
            optimiser.zero_grad(set_to_none=True)
            loss.backward()
            optimiser.step()
            if (step + 1) % every == 0:
                advance(every)
                if report is not None:
                    report(step + 1, encoder)
    if not all(parameter.isfinite().all() for parameter in encoder.parameters()):
        raise RuntimeError("training met values that are not finite: lower the learning rate")
    return VectorRun(encoder, losses, _least(losses), time.perf_counter() - start)


def new_encoder(world: World, outputs: int, options: VectorTraining, generator: torch.Generator) -> nn.Module:
    """Return an untrained encoder with all its copies, on the generator's device."""
    if options.encoder == "mlp":
        return MLPEncoder(world.latents, outputs, options.copies, options.hidden, options.layers, generator)
    if outputs != world.latents:
        raise ValueError(f"a coupling keeps dimensions: {outputs} outputs of {world.latents} latents need the MLP")
    return CouplingEncoder(outputs, options.copies, world.layers, generator)


def losses_of(
    encoder: VectorEncoder, world: World, objective: Objective, batch: int, generator: torch.Generator
) -> Tensor:
    """Score every copy on one fresh batch: losses (K,)."""
    views = world.observe(world.draw_pairs(batch, generator))
    h = encoder(views.reshape(2 * batch, -1))
    return torch.stack([objective(one.reshape(2, batch, -1), generator).loss for one in h])


@torch.no_grad()
def judge(
    encoder: VectorEncoder,
    world: World,
    objective: Objective,
    batch: int,
    seed: int,
    device: torch.device | str = "cpu",
    batches: int = _JUDGED,
) -> tuple[float, ...]:
    """Average the loss of every copy over fresh batches, which are the same for all."""
    generator = torch.Generator(device).manual_seed(seed + 1_000_003)
    losses = [losses_of(encoder, world, objective, batch, generator) for _ in range(batches)]
    return tuple(torch.stack(losses).double().mean(0).tolist())


def judge_latents(
    world: World, objective: Objective, batch: int, seed: int, device: torch.device | str = "cpu"
) -> float:
    """Average the loss of the latents themselves over the batches that :func:`judge` takes.

    An encoder with a lower loss shows that the objective wants something else than z, one with a higher loss that
    training has not reached what it wants.
    """
    return judge(lambda x: world.mix.inverse(x)[None], world, objective, batch, seed, device)[0]


def _least(losses: tuple[float, ...]) -> int:
    """Return the index of the least loss; one that is not finite is never chosen where another is."""
    return min(range(len(losses)), key=lambda copy: losses[copy] if math.isfinite(losses[copy]) else math.inf)
