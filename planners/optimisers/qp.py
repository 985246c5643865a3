"""Quadratic programme: the exact optimum of linear dynamics and a quadratic cost within action bounds."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import osqp
import scipy.sparse
from scipy.optimize import lsq_linear

from worldmodel.planners.costs import CondensedCost
from worldmodel.planners.optimisers.problem import Problem, Solution


@dataclass(frozen=True)
class QP:
    """Minimises uᵀ H u + 2 fᵀ u in the unit box by OSQP (Stellato et al. 2020); H is factorised once.

    Attributes:
        tolerance: absolute and relative tolerance of the operator splitting, before the active bounds are polished.
        max_iterations: of the splitting; a problem that needs more is solved by an active-set method instead.
    """

    tolerance: float = 1e-5
    max_iterations: int = 4000
    _solvers: dict[bytes, osqp.OSQP] = field(default_factory=dict, init=False, repr=False, compare=False)

    def solve(self, problem: Problem, start: Solution, rngs: Sequence[np.random.Generator]) -> Solution:
        """Return the optimal plans.

        Raises:
            TypeError: the problem is no quadratic form (a model that is not linear, or another cost).
        """
        if not isinstance(problem, CondensedCost):
            raise TypeError("a quadratic programme needs a linear model and a quadratic cost: take CEM or Gradient")
        H = problem.hessian
        plans = -np.linalg.solve(H, problem.linear.T).T  # where no bound is active, that is it
        solver = self._solver(H)
        for row in np.flatnonzero(np.abs(plans).max(axis=1) > 1):
            solver.update(q=2 * problem.linear[row])
            solver.warm_start(x=np.clip(plans[row], -1, 1), y=np.zeros(len(H)))
            result = solver.solve(raise_error=False)
            plans[row] = result.x if result.info.status_val == 1 else active_set(H, problem.linear[row])
        return Solution.of(np.clip(plans, -1.0, 1.0).reshape(start.u.shape))

    def _solver(self, H: np.ndarray) -> osqp.OSQP:
        key = H.tobytes()
        if key not in self._solvers:
            solver, ones = osqp.OSQP(), np.ones(len(H))
            solver.setup(
                P=scipy.sparse.csc_matrix(np.triu(2 * H)),
                q=np.zeros(len(H)),
                A=scipy.sparse.identity(len(H), format="csc"),
                l=-ones,
                u=ones,
                eps_abs=self.tolerance,
                eps_rel=self.tolerance,
                max_iter=self.max_iterations,
                polishing=True,
                verbose=False,
            )
            self._solvers.clear()  # one problem at a time
            self._solvers[key] = solver
        return self._solvers[key]


def active_set(H: np.ndarray, f: np.ndarray) -> np.ndarray:
    """Minimise uᵀ H u + 2 fᵀ u in the unit box by bounded least squares: ‖Lᵀ u + L⁻¹ f‖² with H = L Lᵀ."""
    L = np.linalg.cholesky(H)
    return lsq_linear(L.T, -np.linalg.solve(L, f), (-1.0, 1.0), method="bvls").x
