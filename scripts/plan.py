"""The main job: from pixels to a plan, with proof.

Collects frames, trains the pixel encoder, measures how linearly it identifies the true state, plans in its embedding,
and judges the plans against the same planner on the true state (the oracle).

    python scripts/plan.py --env reacher
"""

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import tyro

from worldmodel.scripts import cli, plan_report
from worldmodel.scripts.cli import console

Budget = Literal["smoke", "quick", "default", "thorough"]


@dataclass(frozen=True)
class Sizes:
    """How much data and training a budget buys."""

    frames: int
    steps: int
    chain: int = 100


BUDGETS: dict[Budget, Sizes] = {
    "smoke": Sizes(frames=2_000, steps=40),
    "quick": Sizes(frames=10_000, steps=300),
    "default": Sizes(frames=20_000, steps=800),
    "thorough": Sizes(frames=40_000, steps=2_400),
}


@dataclass(frozen=True)
class PlanOptions:
    """Options of the main job.

    Attributes:
        env: a DeepMind Control task: reacher, point_mass, cartpole, reacher-easy, ...
        budget: smoke (does it run?), quick (a first look), default, thorough (the best numbers).
        encoder: folder of a trained encoder to use instead of training one.
        rho: correlation of every latent across one control step of the Ornstein-Uhlenbeck data.
        latents: dimensions of the embedding (default: as many as the task's latents).
        tasks: start-goal pairs that are planned and judged.
        plan_steps: steps of a plan.
        decoder: how an embedding is read as joint angles: by a fitted linear map, or by its nearest frames.
        size: height and width of a frame, pixels.
        camera: the camera's number or name.
        processes: processes that collect; 0 means one per core.
        seed: decides data, training and tasks.
        device: where the encoder is trained.
        out: output folder (default: runs/plan-<env>).
    """

    env: str = "reacher"
    budget: Budget = "default"
    encoder: Path | None = None
    rho: float = 0.9
    latents: int | None = None
    tasks: int = 100
    plan_steps: int = 20
    decoder: Literal["linear", "nearest"] = "linear"
    size: int = 64
    camera: int | str = 0
    processes: int = 0
    seed: int = 0
    device: Literal["auto", "cpu", "cuda"] = "auto"
    out: Path | None = None
