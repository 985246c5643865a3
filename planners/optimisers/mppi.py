"""Model-predictive path integral (Williams et al. 2017), with the spread adapted as in TD-MPC (Hansen et al. 2022)."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from worldmodel.planners.optimisers.sampling import candidates, check_population, noise_table, updated
from worldmodel.planners.problem import Problem, Solution, best_of, finite_costs


@dataclass(frozen=True)
class MPPI:
    """Every candidate counts, by exp(-(J - min J) / λ).

    Attributes:
        samples: N, candidates per iteration.
        iterations: how often the mean moves.
        temperature: λ over the mean of J - min J, so that the scale of the cost does not matter.
        spread: standard deviation at the start, in half ranges of the action.
        floor: least standard deviation, in half ranges of the action.
        momentum: share of mean and spread kept in an iteration.
    """

    samples: int = 300
    iterations: int = 10
    temperature: float = 0.05
    spread: float = 0.5
    floor: float = 1e-3
    momentum: float = 0.1

    def __post_init__(self) -> None:
        check_population(self.samples, self.iterations, 2, self.spread, self.floor)
        if not self.temperature > 0:
            raise ValueError(f"temperature is {self.temperature}; it must be positive")

    def solve(self, problem: Problem, start: Solution, rngs: Sequence[np.random.Generator]) -> Solution:
        """Return plans inside the unit box: the final mean, or the best candidate where that is cheaper."""
        B, H, a = start.u.shape
        mean = best = start.u.reshape(B, -1)
        std = np.full((B, H * a), self.spread)
        for _ in range(self.iterations):
            u = candidates(mean, std, best, noise_table(H, a), self.samples, rngs)
            costs = finite_costs(problem, u.reshape(B, -1, H, a))
            weights = path_weights(costs, self.temperature)
            best = u[np.arange(B), costs.argmin(axis=1)]
            mean, std = updated(mean, std, u, weights, self.momentum, self.floor)
        return Solution.of(best_of(problem, np.stack([mean, best], axis=1).reshape(B, 2, H, a)))


def path_weights(costs: np.ndarray, temperature: float) -> np.ndarray:
    """Return weights (B, N) of costs above the least (B, N): they sum to 1, or are all 0 where none is finite.

    >>> path_weights(np.array([[0.0, 0.0], [0.0, np.inf]]), temperature=0.2)
    array([[0.5, 0.5],
           [1. , 0. ]])
    """
    finite = np.isfinite(costs)
    above = np.where(finite, costs, 0.0)
    count = np.maximum(finite.sum(axis=1, keepdims=True), 1)
    scale = temperature * above.sum(axis=1, keepdims=True) / count
    weights = np.where(finite, np.exp(-above / np.where(scale > 0, scale, 1.0)), 0.0)
    return weights / np.maximum(weights.sum(axis=1, keepdims=True), 1e-300)
