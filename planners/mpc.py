"""Model-predictive control: plan over a receding horizon, act, shift the plan, plan again."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np

from worldmodel.dynamics.states import LinearModel
from worldmodel.planners.costs import Condensation, Cost, QuadraticCost, RolloutCost, Transition
from worldmodel.planners.holding import Hold, hold_terms
from worldmodel.planners.optimisers.cem import CEM
from worldmodel.planners.problem import Bounds, Optimiser, Problem, Solution


@dataclass(frozen=True)
class MPCOptions:
    """How far and in what portions to plan.

    Attributes:
        horizon: H, control steps. Sampling optimisers search H times a dimensions: long horizons need more samples.
        warm_start: start from what is left of the last plan; the spread of the search always starts anew.
        hold: what holds the goal; None is "still" for a linear model, which all but "cost" need, and "cost" for others.
        batch: environments that are searched together; small batches stay in the processor's cache.
    """

    horizon: int = 10
    warm_start: bool = True
    hold: Hold | None = None
    batch: int = 8

    def __post_init__(self) -> None:
        if self.horizon < 1 or self.batch < 1:
            raise ValueError(f"horizon {self.horizon}, batch {self.batch}: each must be at least 1")


class MPC:
    """Plans for many environments at once, with the same plans as one by one.

    Args:
        model: a linear model, or any transition (states, actions) -> next states.
        cost: quadratic, or any function (states (..., H, S), actions (..., H, a), references (..., H, m)) -> costs.
            A linear model with a quadratic cost is condensed: the horizon is never unrolled.
        bounds: of the actions.
        optimiser: how plans are improved.
        options: how far to plan.
        seed: environment number i draws from the generator of (seed, i).
    """

    def __init__(
        self,
        model: LinearModel | Transition,
        cost: QuadraticCost | Cost,
        bounds: Bounds,
        optimiser: Optimiser = CEM(),  # noqa: B008 (frozen)
        options: MPCOptions = MPCOptions(),
        *,
        seed: int = 0,
    ) -> None:
        self.bounds, self.optimiser, self.options, self.seed = bounds, optimiser, options, seed
        self._transition, self.cost = model, cost
        self._condensation: Condensation | None = None
        if not callable(model) and isinstance(cost, QuadraticCost):
            self._condensation = Condensation(model, cost, options.horizon, bounds)
        elif options.hold not in (None, "cost"):
            raise ValueError(f"hold={options.hold!r} needs a linear model and a quadratic cost: use hold='cost'")
        still = self.bounds.unit(np.zeros(len(bounds.low)))
        self._still = Solution.of(np.tile(still, (1, options.horizon, 1)))
        self._plans: dict[int, Solution] = {}
        self._rngs: dict[int, np.random.Generator] = {}

    def reset(self, environments: Sequence[int] | None = None) -> None:
        """Forget the plans and start the generators again, of some environments or of all."""
        for number in list(self._rngs) if environments is None else environments:
            self._plans.pop(number, None)
            self._rngs.pop(number, None)

    def act(
        self,
        s: np.ndarray,
        references: np.ndarray,
        *,
        environments: Sequence[int] | None = None,
        executed: int = 1,
    ) -> np.ndarray:
        """Return the first actions (B, a) of :meth:`plan`."""
        return self.plan(s, references, environments=environments, executed=executed)[:, 0]

    def plan(
        self,
        s: np.ndarray,
        references: np.ndarray,
        *,
        environments: Sequence[int] | None = None,
        executed: int = 1,
    ) -> np.ndarray:
        """Return plans (B, H, a) inside the bounds.

        Args:
            s: states now (B, S).
            references: goals (B, m), or embeddings to be at after 1..L steps (B, L, m); the last one is held.
            environments: the number of each row's environment; None numbers the rows.
            executed: actions of the last plan that were executed since.

        Raises:
            ValueError: states or references are not finite, or their numbers differ.
        """
        numbers = list(range(len(s)) if environments is None else environments)
        if not len(s) == len(references) == len(numbers):
            raise ValueError(
                f"{len(s)} states, {len(references)} references, {len(numbers)} environments: must be as many"
            )
        if not (np.isfinite(s).all() and np.isfinite(references).all()):
            raise ValueError("states and references must be finite")
        problem = self._problem(s, references)
        starts = [self._start(number, executed) for number in numbers]
        for rows in self._batches(starts):
            solution = self._solve(problem.rows(rows), [starts[row] for row in rows], [numbers[row] for row in rows])
            for row, u, elites in zip(rows, solution.u, solution.elites, strict=True):
                self._plans[numbers[row]] = Solution(u[None], elites[None])
        return self.bounds.actions(np.concatenate([self._plans[number].u for number in numbers]))

    def _problem(self, s: np.ndarray, references: np.ndarray) -> Problem:
        path = references[:, None] if references.ndim == 2 else references
        path = path[:, np.minimum(np.arange(self.options.horizon), path.shape[1] - 1)]
        if self._condensation is None:
            return RolloutCost(cast(Transition, self._transition), self.cost, s, path, self.bounds)
        bias, free = hold_terms(self._condensation.model, path[:, -1], self.options.hold or "still")
        return self._condensation.at(s, path, bias, free)

    def _start(self, number: int, executed: int) -> Solution:
        if number not in self._rngs:
            self._rngs[number] = np.random.default_rng([self.seed, number])
        if self.options.warm_start and number in self._plans:
            return self._plans[number].shifted(executed)
        return self._still

    def _batches(self, starts: Sequence[Solution]) -> list[np.ndarray]:
        """Group rows that start from as many elites, so that nobody's plan depends on the company."""
        elites = np.array([start.elites.shape[1] for start in starts])
        groups = [np.flatnonzero(elites == count) for count in np.unique(elites)]
        return [rows[i : i + self.options.batch] for rows in groups for i in range(0, len(rows), self.options.batch)]

    def _solve(self, problem: Problem, starts: Sequence[Solution], numbers: Sequence[int]) -> Solution:
        start = Solution(np.concatenate([s.u for s in starts]), np.concatenate([s.elites for s in starts]))
        return self.optimiser.solve(problem, start, [self._rngs[number] for number in numbers])
