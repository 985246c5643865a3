"""Linear-Gaussian dynamics of embeddings under actions, fitted by regularised least squares."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from worldmodel.dynamics.forecast import open_loop
from worldmodel.dynamics.states import (
    Array,
    Encodes,
    StateLayout,
    Trajectories,
    align_actions,
    check_matrices,
    check_trajectories,
    encode_episodes,
    lift,
    like,
)

if TYPE_CHECKING:
    from worldmodel.data.episodes import Episodes

HISTORIES = (1, 2, 3, 4)  # what `history=None` chooses from


@dataclass(frozen=True)
class Excitation:
    """How well the data excite the regressors (each divided by its standard deviation).

    Attributes:
        samples: windows that the fit saw.
        regressors: dimensions of state and action together.
        rank: directions that are excited; a fit is refused when it is less than ``regressors``.
        condition: largest over smallest singular value.
    """

    samples: int
    regressors: int
    rank: int
    condition: float


@dataclass(frozen=True)
class LinearGaussianDynamics:
    """The model s' = A s + B a + c + w, with w ~ N(0, W).

    Attributes:
        A: (S, S); its first m rows are fitted, the others shift the past along.
        B: (S, a).
        bias: c (S,).
        noise_cov: W (S, S), zero outside the newest embedding.
        history: embeddings in the state.
        dim: dimensions m of an embedding.
        actions: dimensions a of an action.
        excitation: how well the data determined it, if it was fitted.
    """

    A: np.ndarray
    B: np.ndarray
    bias: np.ndarray
    noise_cov: np.ndarray
    history: int
    dim: int
    actions: int
    excitation: Excitation | None = None

    def __post_init__(self) -> None:
        size = self.layout.size
        shapes = {"A": (size, size), "B": (size, self.actions), "bias": (size,), "noise_cov": (size, size)}
        check_matrices(self, shapes)

    @cached_property
    def layout(self) -> StateLayout:
        """How the state is built."""
        return StateLayout(self.history, self.dim, self.actions)

    @property
    def radius(self) -> float:
        """Spectral radius of A; above 1 the uncontrolled model diverges."""
        return float(np.abs(np.linalg.eigvals(self.A)).max())

    def transition(self, s: Array, a: Array) -> Array:
        """Return the expected next states (..., S) of states (..., S) and actions (..., a), NumPy or torch."""
        A, B, bias = (like(s, matrix) for matrix in (self.A, self.B, self.bias))
        return s @ A.T + a @ B.T + bias

    def rest(self, h: np.ndarray) -> np.ndarray:
        """Return the states (B, S) of a rest at embeddings h (B, m), without action."""
        return self.layout.start(h)

    def transformed(self, Q: np.ndarray, b: np.ndarray | None = None) -> Self:
        """Return the same dynamics in other coordinates, h = Q z + b with Q (m, m) invertible."""
        T, layout = lift(Q, self.layout), self.layout
        shift = layout.start(np.zeros(layout.dim) if b is None else b)
        A = T @ self.A @ np.linalg.inv(T)
        bias = T @ self.bias + shift - A @ shift
        W = T @ self.noise_cov @ T.T
        return type(self)(A, T @ self.B, bias, W, self.history, self.dim, self.actions)

    @property
    def linear(self) -> Self:
        """Itself."""
        return self

    def start(self, h: np.ndarray) -> np.ndarray:
        """Return the states (B, S) of a rest at embeddings h (B, m)."""
        return self.layout.start(h)

    def step(self, s: np.ndarray, a: np.ndarray, h: np.ndarray) -> np.ndarray:
        """Return the states (B, S) once actions a (B, a) were executed and embeddings h (B, m) were seen."""
        return self.layout.step(s, a, h)

    def spread(self, s: np.ndarray, a: np.ndarray) -> np.ndarray:
        """Return one standard deviation of the next embedding (..., m), as the fit left it."""
        return np.broadcast_to(np.sqrt(np.diag(self.noise_cov)[: self.dim]), (*s.shape[:-1], self.dim))

    def options(self) -> dict[str, Any]:
        """Return the sizes, and how well the data determined the matrices."""
        sizes: dict[str, Any] = {name: getattr(self, name) for name in ("history", "dim", "actions")}
        return sizes | {"excitation": None if self.excitation is None else asdict(self.excitation)}

    def arrays(self) -> dict[str, np.ndarray]:
        """Return the matrices by name."""
        return {name: getattr(self, name) for name in ("A", "B", "bias", "noise_cov")}

    @classmethod
    def rebuilt(cls, options: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> Self:
        """Make the dynamics of these matrices."""
        excitation = options["excitation"]
        sizes = {name: options[name] for name in ("history", "dim", "actions")}
        known = None if excitation is None else Excitation(**excitation)
        return cls(**arrays, **sizes, excitation=known)  # type: ignore[arg-type]


def fit_linear_dynamics(
    h: np.ndarray,
    actions: np.ndarray,
    offsets: np.ndarray,
    *,
    history: int | None = 2,
    ridge: float = 1e-8,
    max_condition: float = 1e7,
    selection: Trajectories | None = None,
) -> LinearGaussianDynamics:
    """Fit A, B and c by ridge regression, through the singular values of the regressors X (never of XᵀX).

    Args:
        h: embeddings (F, m).
        actions: (F - E, a).
        offsets: (E + 1,); no window crosses an episode.
        history: embeddings in the state; None takes the shortest of 1 to 4 whose 10-step error on ``selection`` is
            within 1% of the least.
        ridge: penalty on the coefficients of regressors with unit variance, per sample.
        max_condition: regressors (with unit variance) that are worse conditioned count as not excited.
        selection: other episodes, to choose the history on.

    Raises:
        ValueError: the data do not fit together, are too short, or leave a direction unexcited (which one is named).
    """
    data = check_trajectories(h, actions, offsets)
    if history is None and selection is None:
        raise ValueError("to choose the history, hand in other episodes as `selection`")
    fits: list[LinearGaussianDynamics] = []
    refused: ValueError | None = None
    for candidate in HISTORIES if history is None else (history,):
        try:
            fits.append(_fit(data, candidate, ridge, max_condition))
        except ValueError as error:  # a longer history may be redundant, as positions are once velocities are given
            refused = error
    if refused and not fits:
        raise refused
    if selection is None or len(fits) == 1:
        return fits[0]
    steps = max(1, min(10, int(np.diff(selection.offsets).max()) - HISTORIES[-1]))
    errors = [open_loop(dynamics, *selection, steps=(steps,)).error[0] for dynamics in fits]
    return next(dynamics for dynamics, error in zip(fits, errors, strict=True) if error <= 1.01 * min(errors))


def _fit(data: Trajectories, history: int, ridge: float, max_condition: float) -> LinearGaussianDynamics:
    layout = StateLayout(history, data.h.shape[1], data.actions.shape[1])
    by_frame = align_actions(data.actions, data.offsets)
    frames = layout.windows(data.offsets, 1)
    X = np.concatenate([layout.at(data.h, by_frame, frames), by_frame[frames]], axis=1)
    Y = data.h[frames + 1]
    names = [*layout.names, *[f"a{i}(t-0)" for i in range(layout.actions)]]
    mean, scale = X.mean(axis=0), X.std(axis=0)
    constant = scale <= 1e-9 * np.abs(mean)  # rounding alone
    X = np.where(constant, 0.0, X - mean) / np.where(constant, 1.0, scale)
    U, sigma, Vt = np.linalg.svd(X, full_matrices=False)
    excited = sigma * max_condition > sigma[0]
    excitation = Excitation(len(X), X.shape[1], int(excited.sum()), float(sigma[0] / max(sigma[-1], 1e-300)))
    if len(X) <= X.shape[1] or not excited.all():
        raise ValueError(_not_excited(excitation, Vt[-1], names))
    filtered = (sigma / (sigma**2 + ridge * len(X)))[:, None] * (U.T @ (Y - Y.mean(axis=0)))
    coefficients = (Vt.T @ filtered) / scale[:, None]  # (S + a, m)
    intercept = Y.mean(axis=0) - mean @ coefficients
    residuals = Y - Y.mean(axis=0) - X @ (coefficients * scale[:, None])
    A, B = layout.shift()
    m, size = layout.dim, layout.size
    A[:m], B[:m] = coefficients[:size].T, coefficients[size:].T
    noise_cov = np.zeros((size, size))
    noise_cov[:m, :m] = residuals.T @ residuals / (len(X) - X.shape[1])
    bias = np.concatenate([intercept, np.zeros(size - m)])
    return LinearGaussianDynamics(A, B, bias, noise_cov, layout.history, m, layout.actions, excitation)


def _not_excited(excitation: Excitation, direction: np.ndarray, names: Sequence[str]) -> str:
    if excitation.samples <= excitation.regressors:
        return f"{excitation.samples} windows cannot determine {excitation.regressors} regressors: collect more"
    weakest = ", ".join(names[i] for i in np.argsort(-np.abs(direction)) if abs(direction[i]) > 0.1)
    return (
        f"the data excite {excitation.rank} of {excitation.regressors} directions (condition number "
        f"{excitation.condition:.1e}); missing is a combination of {weakest}: drive it with richer "
        f"actions, or shorten the history"
    )


def fit_dynamics(
    encoder: Encodes, episodes: "Episodes", *, history: int | None = None, ridge: float = 1e-8
) -> LinearGaussianDynamics:
    """Fit linear dynamics of the embeddings of ``episodes.train``; the history is chosen on ``episodes.selection``."""
    train, selection = (encode_episodes(encoder, part) for part in (episodes.train, episodes.selection))
    return fit_linear_dynamics(*train, history=history, ridge=ridge, selection=selection)
