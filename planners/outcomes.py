"""Judge plans by what they do to the true latents, beside the oracle on the same tasks."""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from worldmodel.envs.goals import GoalTasks, Tolerance, reached
from worldmodel.envs.latents import LatentSpec
from worldmodel.stats.intervals import Equivalence, Interval, bootstrap, equivalence, wilson

EFFORT_MARGIN = 0.05
"""Efforts within 5% of the oracle's are called equivalent."""
STEP_WEIGHT = 1.0
"""Weight r of the steps in the quadratic cost."""

State = Literal["embedding", "oracle", "none"]


@dataclass(frozen=True)
class PlanOutcome:
    """What one planner reached, means over tasks with 95% intervals.

    Attributes:
        planner: its name.
        state: what it planned in: the embedding, the true latents (oracle), or nothing (the random baseline).
        execution: kinematic (the simulator is posed along the plan) or closed-loop (it is driven).
        tasks: number of tasks.
        success: share of tasks that end within the tolerance of the goal (Wilson).
        cost: quadratic cost on the true latents (bootstrap over tasks).
        cost_ratio: cost divided by the oracle's on the same task.
        plan_ms: milliseconds of planning per task.
        effort_ratio: Σ‖Δq‖² over the oracle's, per task; rad or m.
        path_rms: root mean square distance to the oracle's path, over steps; rad or m.
        goal_error: distance to the goal at the end; rad or m.
        equivalence: two one-sided tests of the effort ratio against 1.
    """

    planner: str
    state: State
    execution: Literal["kinematic", "closed-loop"]
    tasks: int
    success: Interval
    cost: Interval
    cost_ratio: Interval
    plan_ms: float
    effort_ratio: Interval | None = None
    path_rms: Interval | None = None
    goal_error: Interval | None = None
    equivalence: Equivalence | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the fields as JSON values, intervals as ``{mean, ci95}``; what was not measured is ``None``."""
        row = {key: value.to_json() if isinstance(value, Interval) else value for key, value in vars(self).items()}
        if self.equivalence is not None:
            test = self.equivalence
            row["equivalence"] = {"margin": test.margin, "p": test.p, "equivalent": test.equivalent}
        return row


def effort(spec: LatentSpec, path: np.ndarray) -> np.ndarray:
    """Control effort Σ‖Δq‖² of paths (N, K + 1, n) of latents: (N,), rad² or m² (their sum where a task has both).

    The uniform straight line is the least of all paths with its ends. A decoded path has ends of its own, which may lie
    nearer to each other than the true ones: its ratio to the oracle's is at least 1 only where the ends agree.
    """
    return (np.diff(path * spec.scales, axis=1) ** 2).sum((1, 2))


def quadratic_cost(path: np.ndarray, goal: np.ndarray, step_weight: float = STEP_WEIGHT) -> np.ndarray:
    """Σ‖z - z*‖² + r Σ‖Δz‖² of paths (N, K + 1, n) of latents: (N,), dimensionless.

    Angles count as they were turned, a full turn included, since that is what the straight line goes through.
    """
    distance = ((path - goal[:, None]) ** 2).sum((1, 2))
    return distance + step_weight * (np.diff(path, axis=1) ** 2).sum((1, 2))


def judge_path(
    planner: str,
    state: State,
    spec: LatentSpec,
    tasks: GoalTasks,
    path: np.ndarray,
    oracle: np.ndarray,
    plan_ms: float,
    *,
    tolerance: Tolerance = Tolerance(),  # noqa: B008 (frozen)
    seed: int = 0,
) -> PlanOutcome:
    """Judge kinematic plans by the true latents that they pose the simulator at.

    Distances between poses (goal error, path RMS) go the short way round a free hinge.

    Args:
        planner: name.
        state: what was planned in.
        spec: latents of the task.
        tasks: N start-goal pairs.
        path: latents along the plan (N, K + 1, n), its ends as decoded, never replaced by the truth.
        oracle: the same for the oracle.
        plan_ms: milliseconds of planning per task.
        tolerance: how near counts as there.
        seed: of the bootstrap.

    Raises:
        ValueError: paths that do not fit the tasks, or are not finite.
    """
    if path.shape != oracle.shape or path.shape[::2] != tasks.goal.shape or not np.isfinite(path).all():
        raise ValueError(f"{len(tasks)} tasks need finite paths of shape {oracle.shape}, not {path.shape}")
    to_oracle = np.linalg.norm(spec.wrap(path - oracle) * spec.scales, axis=-1)
    to_goal = np.linalg.norm(spec.wrap(path[:, -1] - tasks.goal) * spec.scales, axis=-1)
    ratio = effort(spec, path) / effort(spec, oracle)
    cost = quadratic_cost(path, tasks.goal)
    done = reached(spec, path[:, -1], tasks.goal, tolerance)
    return PlanOutcome(
        planner=planner,
        state=state,
        execution="kinematic",
        tasks=len(tasks),
        success=wilson(int(done.sum()), len(done)),
        cost=bootstrap(cost, seed=seed),
        cost_ratio=bootstrap(cost / quadratic_cost(oracle, tasks.goal), seed=seed),
        plan_ms=plan_ms,
        effort_ratio=bootstrap(ratio, seed=seed),
        path_rms=bootstrap(np.sqrt((to_oracle**2).mean(-1)), seed=seed),
        goal_error=bootstrap(to_goal, seed=seed),
        equivalence=equivalence(ratio - 1, EFFORT_MARGIN),
    )
