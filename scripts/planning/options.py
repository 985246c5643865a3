"""Options of the main job."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from worldmodel.dynamics.names import DynamicsName
from worldmodel.planners.names import PlannerName

Budget = Literal["smoke", "quick", "default", "thorough"]


@dataclass(frozen=True)
class Sizes:
    """How much data and training a budget buys."""

    frames: int
    steps: int
    driven: int
    batch_size: int = 128


BUDGETS: dict[Budget, Sizes] = {
    "smoke": Sizes(frames=4_000, steps=60, driven=1_500),
    "quick": Sizes(frames=10_000, steps=500, driven=4_000),
    "default": Sizes(frames=60_000, steps=2_000, driven=6_000),
    "thorough": Sizes(frames=120_000, steps=4_000, driven=12_000),
}


@dataclass(frozen=True)
class PlanOptions:
    """Options of the main job.

    Attributes:
        env: a DeepMind Control task: reacher, point_mass, cartpole, reacher-easy, ...
        budget: smoke (does it run?), quick (a first look), default, thorough (the best numbers).
        encoder: folder of a trained encoder, to use instead of training one.
        world_model: folder of a world model, to use instead of training an encoder and fitting dynamics.
        trust: import classes of others that the world model names, which runs the code of their modules.
        rho: correlation of every latent across one step of the Ornstein-Uhlenbeck data; training takes pairs three
            steps apart first, then neighbours.
        dim: dimensions of the embedding (default: as many as the task has latents).
        planner: what drives the simulator from frames: straight-line, lqr, mpc-qp, mpc-cem, mpc-icem, mpc-mppi,
            mpc-gradient; none at all leaves the closed loop out.
        dynamics: what actions do: a Kalman filter's linear model, a linear one of the last frames, or networks.
        action_weight: r in the cost Σ‖h - h*‖² + r Σ‖a‖² that planners and oracles minimise (default: 0.1, poles 1.0).
        tasks: start-goal pairs that are planned and judged.
        plan_steps: steps of a plan.
        decoder: how an embedding is read as joint angles: by a fitted linear map, or by its nearest training frames.
        size: height and width of a frame in pixels, a multiple of 16.
        camera: the camera, by number or name.
        processes: processes that collect and drive; 0 means one per core.
        seed: decides data, training and tasks.
        device: where the encoder is trained.
        keep: use what an earlier run has finished, though the code that made it has changed since; the result says so.
        out: output folder (default: runs/plan-<env>).
    """

    env: str = "reacher"
    budget: Budget = "default"
    encoder: Path | None = None
    world_model: Path | None = None
    trust: bool = False
    rho: float = 0.97
    dim: int | None = None
    planner: tuple[PlannerName, ...] = ("straight-line", "lqr", "mpc-qp")
    dynamics: DynamicsName = "kalman"
    action_weight: float | None = None
    tasks: int = 100
    plan_steps: int = 20
    decoder: Literal["linear", "nearest"] = "linear"
    size: int = 64
    camera: int | str = 0
    processes: int = 0
    seed: int = 0
    device: str = "auto"
    keep: bool = False
    out: Path | None = None
