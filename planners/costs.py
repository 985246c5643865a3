"""Costs of plans: quadratic or any other, rolled out or condensed into one quadratic form of the actions."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from worldmodel.dynamics.states import Array, LinearModel, like
from worldmodel.planners.problem import Bounds

if TYPE_CHECKING:
    from torch import Tensor

Transition = Callable[[Any, Any], Any]  # states (..., S), actions (..., a) -> next states (..., S)
Cost = Callable[[Any, Any, Any], Any]  # states (..., H, S), actions (..., H, a), references (..., H, m) -> (...)


@dataclass(frozen=True, eq=False)
class QuadraticCost:
    """J = Σ_t w_t (h_t - g_t)ᵀ Q (h_t - g_t) + Σ_t a_tᵀ R a_t over t = 1..H for embeddings and 0..H-1 for actions.

    Attributes:
        state_weight: Q, as a number, a diagonal (m,) or a matrix (m, m).
        action_weight: R, as a number, a diagonal (a,) or a matrix (a, a).
        distance: count the distance to the goal at every step (w = 1), or at the last one only.
        final_weight: factor on the last step's distance.
    """

    state_weight: float | np.ndarray = 1.0
    action_weight: float | np.ndarray = 0.1
    distance: Literal["sum", "final"] = "sum"
    final_weight: float = 1.0

    def Q(self, dim: int) -> np.ndarray:
        """Return Q (m, m)."""
        return weight_matrix(self.state_weight, dim, "state weight")

    def R(self, actions: int) -> np.ndarray:
        """Return R (a, a)."""
        return weight_matrix(self.action_weight, actions, "action weight", definite=True)

    def step_weights(self, horizon: int) -> np.ndarray:
        """Return w_1, ..., w_H."""
        weights = np.full(horizon, float(self.distance == "sum"))
        weights[-1] = self.final_weight
        return weights

    def transformed(self, Q: np.ndarray) -> "QuadraticCost":
        """Return the same cost in other coordinates h = Q z + b: the weight of h is Q⁻ᵀ W Q⁻¹."""
        inverse = np.linalg.inv(Q)
        weight = inverse.T @ self.Q(len(Q)) @ inverse
        return QuadraticCost((weight + weight.T) / 2, self.action_weight, self.distance, self.final_weight)

    def __call__(self, states: Array, actions: Array, references: Array) -> Array:
        """Return costs (...) of states (..., H, S) after actions (..., H, a), NumPy or torch."""
        m = references.shape[-1]
        Q, R = like(states, self.Q(m)), like(states, self.R(actions.shape[-1]))
        away = states[..., :m] - references
        distance = ((away @ Q) * away).sum(-1) @ like(states, self.step_weights(states.shape[-2]))
        return distance + ((actions @ R) * actions).sum(-1).sum(-1)


def weight_matrix(weight: float | np.ndarray, size: int, name: str, *, definite: bool = False) -> np.ndarray:
    """Return a number or a diagonal as a matrix (size, size).

    Raises:
        ValueError: it is not finite, not symmetric, or not positive (semi-)definite.
    """
    matrix = np.asarray(weight, np.float64)
    if matrix.ndim < 2:
        matrix = np.diag(np.broadcast_to(matrix, size)) if matrix.shape in ((), (size,)) else matrix
    if matrix.shape != (size, size) or not np.isfinite(matrix).all():
        raise ValueError(f"the {name} must be finite: a number, {size} of them, or {size}x{size}, not {matrix.shape}")
    if not np.allclose(matrix, matrix.T, rtol=1e-8, atol=1e-12):
        raise ValueError(f"the {name} is not symmetric: use (W + Wᵀ) / 2")
    least, scale = float(np.linalg.eigvalsh(matrix).min()), float(np.abs(matrix).max())
    if least < -1e-10 * scale or (definite and least <= 1e-14 * scale):
        kind = "positive definite" if definite else "positive semi-definite"
        raise ValueError(f"the {name} is not {kind}: its least eigenvalue is {least:.3g}")
    return matrix


@dataclass(frozen=True, eq=False)
class RolloutCost:
    """Any cost of any transition, by rolling all candidates out together.

    Attributes:
        transition: (states, actions) -> next states, batched over leading axes.
        cost_of: (states, actions, references) -> costs.
        s: states now (B, S).
        references: embeddings to be at after each step (B, H, m).
        bounds: of the actions, to turn points of the unit box into actions.
    """

    transition: Transition
    cost_of: Cost
    s: np.ndarray
    references: np.ndarray
    bounds: Bounds

    def cost(self, u: np.ndarray) -> np.ndarray:
        """Return the costs (B, N) of candidates (B, N, H, a) of the unit box."""
        s, actions = np.broadcast_to(self.s[:, None], (*u.shape[:2], self.s.shape[1])), self.bounds.actions(u)
        states = []
        with np.errstate(all="ignore"):  # a candidate that diverges is masked by the optimiser
            for step in range(actions.shape[2]):
                s = self.transition(s, actions[:, :, step])
                states.append(s)
            return np.asarray(self.cost_of(np.stack(states, axis=2), actions, self.references[:, None]), np.float64)

    def torch_cost(self, u: "Tensor") -> "Tensor":
        """Return the costs (B,) of plans (B, H, a) of the unit box, differentiable."""
        import torch

        s, states = u.new_tensor(self.s), []
        actions = u.new_tensor(self.bounds.centre) + u * u.new_tensor(self.bounds.half)
        for step in range(actions.shape[1]):
            s = self.transition(s, actions[:, step])
            states.append(s)
        return self.cost_of(torch.stack(states, dim=1), actions, u.new_tensor(self.references))

    def rows(self, chosen: np.ndarray) -> "RolloutCost":
        """Return the problem of some of the environments."""
        return RolloutCost(self.transition, self.cost_of, self.s[chosen], self.references[chosen], self.bounds)


@dataclass(frozen=True, eq=False)
class CondensedCost:
    """J(u) = uᵀ H u + 2 fᵀ u + k in all actions u of a plan together; the horizon is never unrolled.

    Attributes:
        hessian: H (D, D), with D = horizon times a, in the unit box.
        linear: f (B, D).
        constant: k (B,).
    """

    hessian: np.ndarray
    linear: np.ndarray
    constant: np.ndarray

    def cost(self, u: np.ndarray) -> np.ndarray:
        """Return the costs (B, N) of candidates (B, N, H, a) of the unit box: one matrix product per environment."""
        u = u.reshape(*u.shape[:2], -1)
        quadratic = np.vecdot(u @ self.hessian, u)
        return quadratic + 2 * (u @ self.linear[:, :, None])[:, :, 0] + self.constant[:, None]

    def torch_cost(self, u: "Tensor") -> "Tensor":
        """Return the costs (B,) of plans (B, H, a) of the unit box, differentiable."""
        H, f, k = (u.new_tensor(value) for value in (self.hessian, self.linear, self.constant))
        u = u.flatten(1)
        return ((u @ H + 2 * f) * u).sum(1) + k

    def rows(self, chosen: np.ndarray) -> "CondensedCost":
        """Return the problem of some of the environments."""
        return CondensedCost(self.hessian, self.linear[chosen], self.constant[chosen])


@dataclass(frozen=True, eq=False)
class Condensation:
    """Turns a linear model and a quadratic cost over H steps into a quadratic form of the actions.

    With h_t = C A^t s + Σ_j C A^(t-1-j) (B a_j + c), stacked as h = Φ s + Γ a + Ψ c, the cost of the actions a is
    aᵀ M a + 2 gᵀ a + const with M = Γᵀ Q̄ Γ + R̄ and g = Γᵀ Q̄ (Φ s + Ψ c - references) - R̄ ā, where the action ā is
    free; a = centre + half u takes it into the unit box.
    """

    model: LinearModel
    cost: QuadraticCost
    horizon: int
    bounds: Bounds

    @cached_property
    def powers(self) -> np.ndarray:
        """C A^t for t = 0..H (H + 1, m, S)."""
        powers = [np.eye(self.model.dim, len(self.model.A))]
        for _ in range(self.horizon):
            powers.append(powers[-1] @ self.model.A)
        return np.stack(powers)

    @cached_property
    def Q(self) -> np.ndarray:
        """Q of every step, with its weight (H, m, m)."""
        return self.cost.step_weights(self.horizon)[:, None, None] * self.cost.Q(self.model.dim)

    @cached_property
    def R(self) -> np.ndarray:
        """R (a, a), of actions in their own units."""
        return self.cost.R(self.model.B.shape[1])

    @cached_property
    def Gamma(self) -> np.ndarray:
        """Γ (H, m, H a): block-Toeplitz, what each point of the unit box does to each later embedding."""
        impulse = self.powers[:-1] @ (self.model.B * self.bounds.half)  # (H, m, a)
        Gamma = np.zeros((self.horizon, self.model.dim, self.horizon, self.model.B.shape[1]))
        for step in range(self.horizon):
            Gamma[step:, :, step] = impulse[: self.horizon - step]
        return Gamma.reshape(*Gamma.shape[:2], -1)

    @cached_property
    def hessian(self) -> np.ndarray:
        """H (H a, H a), symmetric."""
        R = self.R * np.outer(self.bounds.half, self.bounds.half)
        H = np.einsum("tmd,tmn,tne->de", self.Gamma, self.Q, self.Gamma, optimize=True)
        return (H + H.T) / 2 + np.kron(np.eye(self.horizon), R)

    def at(self, s: np.ndarray, references: np.ndarray, bias: np.ndarray, free_action: np.ndarray) -> CondensedCost:
        """Return the problem of each environment.

        Args:
            s: states now (B, S).
            references: embeddings to be at after each step (B, H, m).
            bias: c (B, S).
            free_action: the action (B, a) that costs nothing.
        """
        drift = bias + self.bounds.centre @ self.model.B.T  # of u = 0
        away = np.tensordot(s, self.powers[1:], (1, 2)) - references  # (B, H, m)
        away += np.tensordot(drift, np.cumsum(self.powers[:-1], axis=0), (1, 2))
        weighted = (away[:, :, None] @ self.Q)[:, :, 0]
        spent = self.bounds.centre - free_action
        push = spent @ self.R
        linear = np.tensordot(weighted, self.Gamma, 2) + np.tile(push * self.bounds.half, self.horizon)
        constant = np.vecdot(weighted, away).sum(axis=1) + self.horizon * np.vecdot(push, spent)
        return CondensedCost(self.hessian, linear, constant)
