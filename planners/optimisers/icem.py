"""iCEM (Pinneri et al. 2020): CEM with coloured noise, a shrinking population, and elites that are kept."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from worldmodel.planners.optimisers.sampling import candidates, check_population, noise_table, updated
from worldmodel.planners.problem import Problem, Solution, best_of, finite_costs


@dataclass(frozen=True)
class ICEM:
    """Sample-efficient cross-entropy method for real-time planning.

    Attributes:
        samples: N, candidates of the first iteration.
        iterations: how often the Gaussian is fitted.
        elites: K, candidates that it is fitted to.
        kept: share of the elites that join the next iteration, and the first one of the next plan.
        beta: colour of the noise: 0 is white; larger is smoother along the plan.
        decay: the population shrinks by this factor per iteration, to 2 K at least.
        spread: standard deviation at the start, in half ranges of the action.
        floor: least standard deviation, in half ranges of the action.
        momentum: share of mean and spread kept in an iteration.
    """

    samples: int = 300
    iterations: int = 10
    elites: int = 15
    kept: float = 0.3
    beta: float = 1.0
    decay: float = 1.1
    spread: float = 0.5
    floor: float = 1e-3
    momentum: float = 0.1

    def __post_init__(self) -> None:
        check_population(self.samples, self.iterations, self.elites, self.spread, self.floor)
        if not 0 <= self.kept <= 1 or self.decay < 1 or self.beta < 0:
            raise ValueError(f"kept {self.kept}, decay {self.decay}, beta {self.beta}: need 0..1, >= 1 and >= 0")

    def solve(self, problem: Problem, start: Solution, rngs: Sequence[np.random.Generator]) -> Solution:
        """Return plans inside the unit box and the elites that the next plan starts from."""
        B, H, a = start.u.shape
        kept = round(self.kept * self.elites)
        mean = best = start.u.reshape(B, -1)
        std = np.full((B, H * a), self.spread)
        elites = start.elites.reshape(B, -1, H * a)
        for iteration in range(self.iterations):
            samples = min(self.samples, max(round(self.samples * self.decay**-iteration), 2 * self.elites))
            u = candidates(mean, std, best, noise_table(H, a, self.beta), samples, rngs)
            u = np.concatenate([u, elites[:, :kept]], axis=1)
            costs = finite_costs(problem, u.reshape(B, -1, H, a))
            order = np.argsort(costs, axis=1, kind="stable")[:, : self.elites]
            weights = np.isfinite(np.take_along_axis(costs, order, axis=1)).astype(float)
            elites = u[np.arange(B)[:, None], order]
            best = elites[:, 0]
            mean, std = updated(mean, std, elites, weights, self.momentum, self.floor)
        plans = best_of(problem, np.stack([mean, best], axis=1).reshape(B, 2, H, a))
        return Solution(plans, elites[:, :kept].reshape(B, kept, H, a))
