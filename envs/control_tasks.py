"""What a controller is asked to do: reach a pose and stay there, or keep a pole upright."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from worldmodel.envs.goals import GoalTasks, Tolerance, reached, sample_tasks
from worldmodel.envs.latents import LatentSpec

BALANCED = ("cartpole", "pendulum", "acrobot")
"""Domains whose weak actuators hold no pose but the upright one: they balance; all others reach."""


class Success(Protocol):
    """Says which episodes did what was asked."""

    def solved(self, spec: LatentSpec, path: np.ndarray, goal: np.ndarray, dt: float) -> np.ndarray:
        """Judge latents (N, T + 1, n), dt seconds apart, by goals (N, n): (N,) bool."""


@dataclass(frozen=True)
class Held:
    """Every joint is within the tolerance of the goal, all through the last moments.

    Attributes:
        tolerance: how near counts as there.
        seconds: how long it has to be there, at the end of the episode.
    """

    tolerance: Tolerance = Tolerance()  # noqa: RUF009 (frozen)
    seconds: float = 0.2

    def solved(self, spec: LatentSpec, path: np.ndarray, goal: np.ndarray, dt: float) -> np.ndarray:
        """Judge latents (N, T + 1, n) by goals (N, n): (N,) bool."""
        last = path[:, -(round(self.seconds / dt) + 1) :]
        return reached(spec, last, goal[:, None], self.tolerance).all(1)


@dataclass(frozen=True)
class Upright:
    """No hinge ever leans further from the goal than ``tilt``.

    Attributes:
        tilt: rad.
    """

    tilt: float = 0.5

    def solved(self, spec: LatentSpec, path: np.ndarray, goal: np.ndarray, dt: float) -> np.ndarray:
        """Judge latents (N, T + 1, n) by goals (N, n): (N,) bool."""
        hinges = np.array([c.unit == "rad" for c in spec.coordinates])
        lean = np.abs(spec.wrap(path - goal[:, None]) * spec.scales)[..., hinges]
        return (lean <= self.tilt).all((1, 2))


@dataclass(frozen=True)
class ControlTasks:
    """Start-goal pairs, and what is asked between them.

    Attributes:
        goals: starts, at rest, and goals.
        seconds: length of an episode.
        success: what counts as solved.
    """

    goals: GoalTasks
    seconds: float
    success: Success

    def __len__(self) -> int:
        """Return the number of tasks."""
        return len(self.goals)


def control_tasks(spec: LatentSpec, count: int, rng: np.random.Generator, lean: float = 0.2) -> ControlTasks:
    """Draw tasks: 4 s from pose to pose; of the domains in ``BALANCED``, 10 s upright from a lean.

    Args:
        spec: latents of the task.
        count: number of tasks.
        rng: source of randomness.
        lean: a balanced hinge starts within this of upright, in rad; everything else starts in its middle.
    """
    if spec.domain not in BALANCED:
        return ControlTasks(sample_tasks(spec, count, rng), 4.0, Held())
    if count < 1:
        raise ValueError(f"{count} tasks asked for; it must be at least 1")
    upright = -spec.means / spec.scales  # all these models stand at qpos = 0
    hinges = np.array([c.unit == "rad" for c in spec.coordinates])
    start = upright + np.where(hinges, rng.uniform(-lean, lean, (count, spec.n)) / spec.scales, 0.0)
    return ControlTasks(GoalTasks(start, np.tile(upright, (count, 1)), 0), 10.0, Upright())
