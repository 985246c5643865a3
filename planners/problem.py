"""What optimisers share: bounds on actions, a problem to solve, a solution to start the next one from.

Optimisers search the unit box: u = -1 is the least and u = 1 the largest action (:class:`Bounds` converts). So their
spreads and steps have one unit, whatever the actuators.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True, eq=False)
class Bounds:
    """Least and largest action, in the units of the action space (a,).

    >>> Bounds.of([-1.0, -1.0], [1.0, 1.0]).half
    array([1., 1.])
    """

    low: np.ndarray
    high: np.ndarray

    @classmethod
    def of(cls, low: Any, high: Any) -> "Bounds":
        """Take bounds from sequences, or from the ``low`` and ``high`` of a Gymnasium box.

        Raises:
            ValueError: a bound is infinite, or not below its counterpart.
        """
        low, high = np.asarray(low, np.float64), np.asarray(high, np.float64)
        if low.ndim != 1 or low.shape != high.shape or not np.isfinite(high - low).all() or not (low < high).all():
            raise ValueError(f"action bounds must be finite with low < high, not {low} and {high}")
        return cls(low, high)

    @property
    def half(self) -> np.ndarray:
        """Half of the range (a,)."""
        return (self.high - self.low) / 2

    @property
    def centre(self) -> np.ndarray:
        """Middle of the range (a,)."""
        return (self.high + self.low) / 2

    def clip(self, actions: np.ndarray) -> np.ndarray:
        """Return actions (..., a) inside the bounds."""
        return np.clip(actions, self.low, self.high)

    def actions(self, u: np.ndarray) -> np.ndarray:
        """Return the actions (..., a) of points (..., a) of the unit box, inside the bounds to the last bit."""
        return self.clip(self.centre + self.half * u)

    def unit(self, actions: np.ndarray) -> np.ndarray:
        """Return the points (..., a) of the unit box that stand for actions (..., a); those outside are clipped."""
        return np.clip((actions - self.centre) / self.half, -1.0, 1.0)


@dataclass(frozen=True, eq=False)
class Solution:
    """Plans of B environments over H steps in the unit box, and what the next search starts from.

    Attributes:
        u: (B, H, a).
        elites: other good plans (B, E, H, a); E = 0 for optimisers that keep none.
    """

    u: np.ndarray
    elites: np.ndarray

    @classmethod
    def of(cls, u: np.ndarray) -> "Solution":
        """Hold plans (B, H, a) alone."""
        return cls(u, u[:, None][:, :0])

    def shifted(self, steps: int) -> "Solution":
        """Return what is left of the plans after ``steps`` actions were executed, the last action repeated."""
        later = np.minimum(np.arange(self.u.shape[1]) + steps, self.u.shape[1] - 1)
        return Solution(self.u[:, later], self.elites[:, :, later])


class Problem(Protocol):
    """Plans of B environments, to be made cheap."""

    def cost(self, u: np.ndarray) -> np.ndarray:
        """Return the costs (B, N) of candidates (B, N, H, a) of the unit box, in float64."""

    def torch_cost(self, u: "Tensor") -> "Tensor":
        """Return the costs (B,) of plans (B, H, a) of the unit box, differentiable."""

    def rows(self, chosen: np.ndarray) -> "Problem":
        """Return the problem of some of the environments."""


class Optimiser(Protocol):
    """Improves plans; draws what is random in environment b from ``rngs[b]`` alone, so that batches change no plan."""

    def solve(self, problem: Problem, start: Solution, rngs: Sequence[np.random.Generator]) -> Solution:
        """Return plans inside the unit box."""


def best_of(problem: Problem, candidates: np.ndarray) -> np.ndarray:
    """Return the cheapest (B, H, a) of candidates (B, N, H, a); of those without a finite cost, the first."""
    cheapest = finite_costs(problem, candidates).argmin(axis=1)
    return candidates[np.arange(len(candidates)), cheapest]


def finite_costs(problem: Problem, candidates: np.ndarray) -> np.ndarray:
    """Return the costs (B, N) above the least of their environment; infinite where a cost is not finite."""
    costs = problem.cost(candidates)
    costs = np.where(np.isfinite(costs), costs, np.inf)
    least = costs.min(axis=1, keepdims=True)
    return costs - np.where(np.isfinite(least), least, 0.0)
