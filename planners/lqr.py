"""Linear-quadratic regulator: infinite or finite horizon, to a goal or along a path."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.linalg

from worldmodel.dynamics.states import LinearModel
from worldmodel.planners.costs import QuadraticCost, weight_matrix
from worldmodel.planners.holding import Hold, hold_terms
from worldmodel.planners.problem import Bounds


class ControlError(ValueError):
    """The control problem has no solution, or none that can be trusted; the message says why."""


@dataclass(frozen=True, eq=False)
class Riccati:
    """A solution of P = Q + Aᵀ P (A - B K) with K = (R + Bᵀ P B)⁻¹ Bᵀ P A.

    Attributes:
        P: cost to go (S, S).
        K: gain (a, S).
        radius: spectral radius of A - B K.
        residual: ‖right - left‖ over ‖P‖ (Frobenius).
    """

    P: np.ndarray
    K: np.ndarray
    radius: float
    residual: float


def solve_dare(A: np.ndarray, B: np.ndarray, Q: np.ndarray, R: np.ndarray) -> Riccati:
    """Solve the discrete algebraic Riccati equation, and check what it asks for and what it returns.

    SciPy returns P = 0 with a closed loop of radius 1 where (A, Q) is not detectable, without complaint.

    >>> A, B = np.array([[1, 0.1], [0, 1]]), np.array([[0.005], [0.1]])
    >>> solve_dare(A, B, np.eye(2), 0.1 * np.eye(1)).K.round(4)
    array([[2.5857, 3.4434]])

    Raises:
        ControlError: (A, B) is not stabilisable, (A, Q) is not detectable, or the solution fails the checks.
        ValueError: Q is not symmetric and positive semi-definite, or R not symmetric and positive definite.
    """
    size, actions = B.shape
    Q, R = weight_matrix(Q, size, "state weight"), weight_matrix(R, actions, "action weight", definite=True)
    if modes := unseen_modes(A.T, B.T):
        raise ControlError(
            f"not stabilisable: no action reaches the mode with eigenvalue {modes[0]}, and it does not decay"
        )
    if modes := unseen_modes(A, Q):
        raise ControlError(
            f"not detectable: the cost does not see the mode with eigenvalue {modes[0]}, and it does not decay"
        )
    try:
        P = scipy.linalg.solve_discrete_are(A, B, Q, R)
    except np.linalg.LinAlgError as error:
        raise ControlError(f"the Riccati equation was not solved ({error}): check the scale of the weights") from None
    P = (P + P.T) / 2
    K = gain(A, B, P, R)
    residual = float(np.linalg.norm(Q + A.T @ P @ (A - B @ K) - P)) / max(float(np.linalg.norm(P)), 1e-300)
    radius = float(np.abs(np.linalg.eigvals(A - B @ K)).max())
    if not residual < 1e-6 or not radius < 1:
        raise ControlError(
            f"the Riccati solution fails: residual {residual:.1e}, radius of the closed loop {radius:.6f}"
        )
    return Riccati(P, K, radius, residual)


def unseen_modes(A: np.ndarray, C: np.ndarray) -> list[str]:
    """Return the eigenvalues of A that do not decay and that C does not see (Popov-Belevitch-Hautus test), as text.

    Modes of (Aᵀ, Bᵀ) are those of A that B does not reach. The shift of past embeddings and actions is nilpotent: its
    modes decay at once and may be unseen.
    """
    unseen = []
    modes = np.linalg.eigvals(A)
    for mode in modes[np.abs(modes) >= 1 - 1e-9]:
        sigma = np.linalg.svd(np.vstack([mode * np.eye(len(A)) - A, C]), compute_uv=False)
        if sigma[-1] <= 1e-9 * sigma[0]:
            unseen.append(f"{mode.real:.4g}{mode.imag:+.4g}i" if mode.imag else f"{mode.real:.4g}")
    return unseen


def gain(A: np.ndarray, B: np.ndarray, P: np.ndarray, R: np.ndarray) -> np.ndarray:
    """Return K = (R + Bᵀ P B)⁻¹ Bᵀ P A (a, S)."""
    return scipy.linalg.solve(R + B.T @ P @ B, B.T @ P @ A, assume_a="pos")


@dataclass(frozen=True, eq=False)
class LQR:
    """Acts by a = -K s + v, where v leads along the references.

    Attributes:
        model: s' = A s + B a + c, the embedding first in s.
        cost: of embeddings and actions.
        bounds: actions are clipped to them.
        horizon: control steps; None is the infinite horizon, with the constant gain of :func:`solve_dare`.
        hold: what holds the goal.
    """

    model: LinearModel
    cost: QuadraticCost = QuadraticCost()  # noqa: RUF009 (frozen)
    bounds: Bounds | None = None
    horizon: int | None = None
    hold: Hold = "still"

    def __post_init__(self) -> None:
        if self.horizon is None and self.cost.distance == "final":
            raise ValueError("an infinite horizon has no final step: use distance='sum', or give a horizon")
        if self.horizon is not None and self.horizon < 1:
            raise ValueError(f"horizon is {self.horizon}; it must be at least 1 control step")
        _ = self.gains  # a model or a cost that cannot be controlled is reported at once

    @cached_property
    def Q(self) -> np.ndarray:
        """The weight of the whole state (S, S): Q of the embedding, nothing on the past."""
        Q, m = np.zeros_like(self.model.A), self.model.dim
        Q[:m, :m] = self.cost.Q(m)
        return Q

    @cached_property
    def R(self) -> np.ndarray:
        """The weight of actions (a, a)."""
        return self.cost.R(self.model.B.shape[1])

    @cached_property
    def riccati(self) -> Riccati:
        """The solution for the infinite horizon."""
        return solve_dare(self.model.A, self.model.B, self.Q, self.R)

    @cached_property
    def gains(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """(K_t, P_(t+1)) for t = 0..H-1; the one pair of an infinite horizon."""
        if self.horizon is None:
            return [(self.riccati.K, self.riccati.P)]
        A, B, w = self.model.A, self.model.B, self.cost.step_weights(self.horizon)
        P, backward = w[-1] * self.Q, []
        for t in range(self.horizon - 1, -1, -1):
            K = gain(A, B, P, self.R)
            backward.append((K, P))
            P = (w[t - 1] * self.Q if t else 0.0) + A.T @ P @ (A - B @ K)
            P = (P + P.T) / 2
        return backward[::-1]

    def act(self, s: np.ndarray, references: np.ndarray, *, environments: Sequence[int] | None = None) -> np.ndarray:
        """Return the actions (B, a) of states (B, S).

        Args:
            s: states now (B, S).
            references: goals (B, m), or embeddings to be at after 1..L steps (B, L, m); the last one is held.
            environments: of no effect: a gain remembers no plan.
        """
        action = self._feedforward(references)[0] - s @ self.gains[0][0].T
        return action if self.bounds is None else self.bounds.clip(action)

    def reset(self, environments: Sequence[int] | None = None) -> None:
        """Do nothing: a gain remembers no plan."""

    def plan(self, s: np.ndarray, references: np.ndarray, steps: int | None = None) -> np.ndarray:
        """Return the actions (B, steps, a) that the model expects; ``steps`` is the horizon unless it is infinite."""
        steps = steps or self.horizon
        if steps is None or (self.horizon is not None and steps > self.horizon):
            raise ValueError(f"a horizon of {self.horizon} steps gives no plan of {steps}: say how many steps")
        bias = hold_terms(self.model, _path(references)[:, -1], self.hold)[0]
        actions, lead = [], self._feedforward(references, steps)
        for t in range(steps):
            a = lead[t] - s @ self.gains[t if self.horizon else 0][0].T
            actions.append(a if self.bounds is None else self.bounds.clip(a))
            s = s @ self.model.A.T + actions[-1] @ self.model.B.T + bias
        return np.stack(actions, axis=1)

    def value(self, s: np.ndarray, goal: np.ndarray) -> np.ndarray:
        """Return the optimal cost to go (B,) of states (B, S) over the infinite horizon, beyond that of the final rest.

        The distance of s itself counts too.

        Under h = Q z + b with the cost transformed along, it is the same in z and in h.
        """
        P, K = self.riccati.P, self.riccati.K
        loop = self.model.A - self.model.B @ K
        bias = hold_terms(self.model, goal, self.hold)[0]
        p, v = self._fixed_point(goal)
        rest = np.linalg.solve(np.eye(len(loop)) - loop, (bias + v @ self.model.B.T).T).T
        away = s - rest
        return np.einsum("bs,st,bt->b", away, P, away) + 2 * ((rest @ P + p) * away).sum(axis=1)

    def _fixed_point(self, goal: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the linear term p (B, S) of the value sᵀ P s + 2 pᵀ s at a goal held forever, and v (B, a)."""
        K, P = self.riccati.K, self.riccati.P
        bias, free = hold_terms(self.model, goal, self.hold)
        loop, m = self.model.A - self.model.B @ K, self.model.dim
        constant = bias @ P @ loop + free @ self.R @ K - goal @ self.Q[:m]
        p = np.linalg.solve(np.eye(len(loop)) - loop.T, constant.T).T
        return p, self._lead(P, p, bias, free)

    def _feedforward(self, references: np.ndarray, steps: int = 1) -> list[np.ndarray]:
        """Return v_t (B, a) for t = 0..steps-1, by the backward recursion of the value's linear term."""
        path = _path(references)
        bias, free = hold_terms(self.model, path[:, -1], self.hold)
        length = self.horizon or max(path.shape[1], steps)
        path = path[:, np.minimum(np.arange(length), path.shape[1] - 1)]
        weights = self.cost.step_weights(length) if self.horizon else np.ones(length)
        pulls = -weights[:, None] * (path @ self.Q[: self.model.dim])  # (B, H, S): those of s_1, ..., s_H
        p = self._fixed_point(path[:, -1])[0] if self.horizon is None else pulls[:, -1]
        lead = []
        for t in range(length - 1, -1, -1):
            K, P = self.gains[t if self.horizon else 0]
            lead.append(self._lead(P, p, bias, free))
            p = (bias @ P + p) @ (self.model.A - self.model.B @ K) + free @ self.R @ K + (pulls[:, t - 1] if t else 0.0)
        return lead[::-1]

    def _lead(self, P: np.ndarray, p: np.ndarray, bias: np.ndarray, free: np.ndarray) -> np.ndarray:
        G = self.R + self.model.B.T @ P @ self.model.B
        return -scipy.linalg.solve(G, ((bias @ P + p) @ self.model.B - free @ self.R).T, assume_a="pos").T


def _path(references: np.ndarray) -> np.ndarray:
    """Return references (B, L, m); a goal is a path of one step."""
    return references[:, None] if references.ndim == 2 else references
