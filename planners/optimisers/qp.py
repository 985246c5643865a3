"""Quadratic programme: the exact optimum of linear dynamics and a quadratic cost within action bounds."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import lsq_linear

from worldmodel.planners.costs import CondensedCost
from worldmodel.planners.problem import Problem, Solution


@dataclass(frozen=True)
class QP:
    """Minimises uᵀ H u + 2 fᵀ u in the unit box by primal-dual active sets (Hintermüller, Ito & Kunisch 2002).

    It guesses which entries of u lie at a bound, solves for the others, and corrects the whole guess by what that
    shows; 3 to 6 guesses do as a rule. All environments are solved together.

    Attributes:
        max_iterations: guesses. Plans beyond the tolerance are solved again by a method that moves one bound at a time.
        tolerance: how far an entry may lie from where its own gradient sends it within the bounds, in half ranges.
    """

    max_iterations: int = 30
    tolerance: float = 1e-8

    def solve(self, problem: Problem, start: Solution, rngs: Sequence[np.random.Generator]) -> Solution:
        """Return the optimal plans.

        Raises:
            TypeError: the problem is no quadratic form (a model that is not linear, or another cost).
        """
        if not isinstance(problem, CondensedCost):
            raise TypeError("a quadratic programme needs a linear model and a quadratic cost: take CEM or Gradient")
        H, f = problem.hessian, problem.linear
        plans = -np.linalg.solve(H, f.T).T  # where no bound is active, that is it
        sides = self._sides(plans)
        rows = np.flatnonzero(sides.any(axis=1))
        for _ in range(self.max_iterations):
            if not len(rows):
                break
            plans[rows] = held(H, f[rows], sides[rows])
            corrected = self._sides(pulled(H, f[rows], plans[rows]))
            wrong = (corrected != sides[rows]).any(axis=1)
            sides[rows] = corrected
            rows = rows[wrong]
        away = np.abs(plans - np.clip(pulled(H, f, plans), -1.0, 1.0)).max(axis=1)
        for row in np.flatnonzero(away > self.tolerance):
            plans[row] = active_set(H, f[row])
        return Solution.of(np.clip(plans, -1.0, 1.0).reshape(start.u.shape))

    def _sides(self, u: np.ndarray) -> np.ndarray:
        """Return -1 or 1 where u (B, D) is beyond that bound, else 0."""
        return np.sign(u) * (np.abs(u) > 1 + self.tolerance)


def held(H: np.ndarray, f: np.ndarray, sides: np.ndarray) -> np.ndarray:
    """Return the optima (B, D) with some entries held at a bound: -1 or 1 in sides (B, D), which is 0 elsewhere."""
    free = sides == 0
    among_free = np.where(free[:, :, None] & free[:, None], H, np.eye(len(H)))
    return np.linalg.solve(among_free, np.where(free, -f - sides @ H, sides)[:, :, None])[:, :, 0]


def pulled(H: np.ndarray, f: np.ndarray, u: np.ndarray) -> np.ndarray:
    """Return where each entry of u (B, D) would go if the others stayed and there were no bounds."""
    return u - (u @ H + f) / H.diagonal()


def active_set(H: np.ndarray, f: np.ndarray) -> np.ndarray:
    """Minimise uᵀ H u + 2 fᵀ u in the unit box by bounded least squares: ‖Lᵀ u + L⁻¹ f‖² with H = L Lᵀ."""
    L = np.linalg.cholesky(H)
    return lsq_linear(L.T, -np.linalg.solve(L, f), (-1.0, 1.0), method="bvls").x
