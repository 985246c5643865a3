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
        return np.all(reached(spec, last, goal[:, None], self.tolerance), axis=1)


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
        return np.all(lean <= self.tilt, axis=(1, 2))


@dataclass(frozen=True)
class ControlSetting:
    """How a domain is controlled.

    Attributes:
        success: what counts as solved.
        seconds: length of an episode.
        period: seconds that an action lasts, about.
        within: latents that control stays in: driven data is confined to them.
        action_weight: r in the cost Σ‖h - h*‖² + r Σ‖a‖²; a pole that is pushed to the bounds falls.
        foresight: seconds that a receding horizon has to cover; a falling pole needs more than an arm.
    """

    success: Success
    seconds: float
    period: float
    within: float
    foresight: float
    action_weight: float

    def frame_skip(self, dt: float) -> int:
        """Return how many of the task's own steps, dt seconds each, an action lasts."""
        return max(1, round(self.period / dt))


def control_setting(spec: LatentSpec) -> ControlSetting:
    """Return how a task's domain is controlled: reach a pose within 4 s, or stay upright for 10 s."""
    if spec.domain in BALANCED:
        return ControlSetting(Upright(), seconds=10.0, period=0.02, within=1.5, foresight=1.0, action_weight=1.0)
    return ControlSetting(Held(), seconds=4.0, period=0.04, within=2.5, foresight=0.4, action_weight=0.1)


def control_goals(spec: LatentSpec, count: int, rng: np.random.Generator, lean: float = 0.2) -> GoalTasks:
    """Draw starts, at rest, and goals: from the latent law; of the domains in ``BALANCED``, from a lean to upright.

    Args:
        spec: latents of the task.
        count: number of tasks.
        rng: source of randomness.
        lean: a balanced hinge starts within this of upright, in rad; everything else starts in its middle.
    """
    if spec.domain not in BALANCED:
        return sample_tasks(spec, count, rng)
    if count < 1:
        raise ValueError(f"{count} tasks asked for; it must be at least 1")
    upright = -spec.means / spec.scales  # all these models stand at qpos = 0
    hinges = np.array([c.unit == "rad" for c in spec.coordinates])
    start = upright + np.where(hinges, rng.uniform(-lean, lean, (count, spec.n)) / spec.scales, 0.0)
    return GoalTasks(start, np.tile(upright, (count, 1)), 0)
