"""Cross-entropy method (Rubinstein & Kroese 2004): fit a Gaussian to the elites, draw again."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from worldmodel.planners.optimisers.sampling import candidates, check_population, noise_table, updated
from worldmodel.planners.problem import Problem, Solution, best_of, finite_costs


@dataclass(frozen=True)
class CEM:
    """Cross-entropy method with a diagonal Gaussian over action sequences.

    Attributes:
        samples: N, candidates per iteration.
        iterations: how often the Gaussian is fitted.
        elite_fraction: share of the candidates that it is fitted to.
        spread: standard deviation at the start, in half ranges of the action.
        floor: least standard deviation, in half ranges of the action.
        momentum: share of mean and spread kept in an iteration.
    """

    samples: int = 300
    iterations: int = 10
    elite_fraction: float = 0.05
    spread: float = 0.5
    floor: float = 1e-3
    momentum: float = 0.0

    def __post_init__(self) -> None:
        check_population(self.samples, self.iterations, self.elites, self.spread, self.floor)

    @property
    def elites(self) -> int:
        """K, candidates that the Gaussian is fitted to."""
        return max(2, round(self.samples * self.elite_fraction))

    def solve(self, problem: Problem, start: Solution, rngs: Sequence[np.random.Generator]) -> Solution:
        """Return plans inside the unit box: the final mean, or the best elite where that is cheaper."""
        B, H, a = start.u.shape
        mean = best = start.u.reshape(B, -1)
        std = np.full((B, H * a), self.spread)
        for _ in range(self.iterations):
            u = candidates(mean, std, best, noise_table(H, a), self.samples, rngs)
            costs = finite_costs(problem, u.reshape(B, -1, H, a))
            elite = np.argpartition(costs, self.elites - 1, axis=1)[:, : self.elites]
            weights = np.isfinite(np.take_along_axis(costs, elite, axis=1)).astype(float)
            best = u[np.arange(B), costs.argmin(axis=1)]
            u = u[np.arange(B)[:, None], elite]
            mean, std = updated(mean, std, u, weights, self.momentum, self.floor)
        return Solution.of(best_of(problem, np.stack([mean, best], axis=1).reshape(B, 2, H, a)))
