"""Goal tasks: from one pose to another, both from the latent law, at rest."""

from dataclasses import dataclass

import numpy as np

from worldmodel.envs.latents import LatentSpec


@dataclass(frozen=True)
class Tolerance:
    """How near counts as there, for every coordinate.

    Attributes:
        angle: rad, for hinges.
        distance: m, for slides.
    """

    angle: float = 0.05
    distance: float = 0.02

    def of(self, spec: LatentSpec) -> np.ndarray:
        """Return the tolerance of each latent, (n,) in rad or m."""
        return np.array([self.angle if c.unit == "rad" else self.distance for c in spec.coordinates])


@dataclass(frozen=True)
class GoalTasks:
    """Start-goal pairs.

    Attributes:
        start: (N, n) standardised latents, at rest.
        goal: (N, n) standardised latents.
        excluded: draws that were left out, because the start already met the goal.
    """

    start: np.ndarray
    goal: np.ndarray
    excluded: int

    def __len__(self) -> int:
        """Return the number of tasks."""
        return len(self.start)


def reached(
    spec: LatentSpec,
    latents: np.ndarray,
    goal: np.ndarray,
    tolerance: Tolerance = Tolerance(),
) -> np.ndarray:
    """Say where every coordinate of (..., n) lies within the tolerance of the goal, full turns forgotten: (...)."""
    difference = spec.wrap(np.asarray(latents, np.float64) - goal)
    return (np.abs(difference) * spec.scales <= tolerance.of(spec)).all(-1)


def sample_tasks(
    spec: LatentSpec,
    count: int,
    rng: np.random.Generator,
    tolerance: Tolerance = Tolerance(),
) -> GoalTasks:
    """Draw start-goal pairs from the latent law N(0, I), |z| at most 3; starts that meet their goal are left out.

    Raises:
        ValueError: no tasks asked for, or a tolerance so wide that nearly every start meets its goal.
    """
    if count < 1:
        raise ValueError(f"{count} tasks asked for; it must be at least 1")
    starts: list[np.ndarray] = []
    goals: list[np.ndarray] = []
    excluded = 0
    while len(starts) < count:
        start, goal = np.clip(rng.standard_normal((2, spec.n)), -3, 3)
        if reached(spec, start, goal, tolerance):
            excluded += 1
            if excluded > 100 * count + 1_000:
                raise ValueError(f"{excluded} starts already met their goal: the tolerance is too wide for this task")
            continue
        starts.append(start)
        goals.append(goal)
    return GoalTasks(np.array(starts), np.array(goals), excluded)
