"""Value equivalence: the optimal cost to go, by the dynamics of embeddings and by those of the true latents."""

from dataclasses import dataclass

import numpy as np

from worldmodel.dynamics.world_model import WorldModel
from worldmodel.envs.goals import GoalTasks
from worldmodel.planners.costs import QuadraticCost
from worldmodel.planners.lqr import LQR
from worldmodel.planners.oracle import linear_of
from worldmodel.stats.intervals import Interval, bootstrap


@dataclass(frozen=True)
class ValueEquivalence:
    """LQR's value of tasks by the fitted dynamics of embeddings, against those of the true latents.

    If h = Q z with Q orthogonal, both are one number: Σ‖h - h*‖² is invariant under rotations, and so is its optimum
    (Klindt, LeCun, Balestriero, arXiv 2605.26379).

    Attributes:
        ratio: V*(h) over V*(z), mean over tasks.
        r2: share of the variance of V*(z) over tasks that V*(h) has, as it is.
    """

    ratio: Interval
    r2: float


def value_equivalence(
    embedding: WorldModel,
    oracle: WorldModel,
    tasks: GoalTasks,
    frames: tuple[np.ndarray, np.ndarray],
    cost: QuadraticCost,
    *,
    seed: int = 0,
) -> ValueEquivalence:
    """Compare the values of tasks.

    Args:
        embedding: the world that frames show.
        oracle: its twin.
        tasks: N starts and goals.
        frames: of starts and of goals, (N, H, W, 3) each.
        cost: of latents; of embeddings as it is.
        seed: of the bootstrap.
    """
    seen = _values(embedding, *frames, cost)
    true = _values(oracle, tasks.start, tasks.goal, cost)
    missed = float(((seen - true) ** 2).sum() / ((true - true.mean()) ** 2).sum())
    return ValueEquivalence(bootstrap(seen / true, seed=seed), 1 - missed)


def _values(world: WorldModel, start: np.ndarray, goal: np.ndarray, cost: QuadraticCost) -> np.ndarray:
    linear = linear_of(world, "lqr")
    lqr = LQR(linear, cost)
    s, there = (world.dynamics.start(world.see(observation).astype(np.float64)) for observation in (start, goal))
    return lqr.value(s, there[:, : linear.dim])
