"""Linear-Gaussian dynamics of embeddings under actions, fitted by regularised least squares."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, Self, TypeVar
from zipfile import BadZipFile

import numpy as np

from worldmodel.files import write_whole
from worldmodel.pairs import window_indices

if TYPE_CHECKING:
    from worldmodel.encoder import Encoder
    from worldmodel.episodes import Episodes

Array = TypeVar("Array", bound=Any)  # a NumPy array or a torch tensor; the result is of the same kind
HISTORIES = (1, 2, 3, 4)  # what `history=None` chooses from


class Trajectories(NamedTuple):
    """Driven episodes, one after another.

    Attributes:
        h: embeddings (F, m).
        actions: (F - E, a); an episode has one action less than frames.
        offsets: first frame of each episode, and F (E + 1,).
    """

    h: np.ndarray
    actions: np.ndarray
    offsets: np.ndarray


class Dynamics(Protocol):
    """What every dynamics offers: a layout of its state, and the next state."""

    @property
    def layout(self) -> "StateLayout":
        """How the state is built from embeddings and actions."""

    def transition(self, s: Array, a: Array) -> Array:
        """Return the next states (..., S) after states (..., S) and actions (..., a)."""


@dataclass(frozen=True)
class StateLayout:
    """The state s_t = (h_t, ..., h_{t-k+1}, a_{t-1}, ..., a_{t-k+1}): single frames hold no velocity, so it looks back.

    Actions of the past are part of it, since their effect reaches later embeddings too.

    Attributes:
        history: number k of embeddings.
        latents: dimensions m of an embedding.
        actions: dimensions a of an action.
    """

    history: int
    latents: int
    actions: int

    def __post_init__(self) -> None:
        if self.history < 1 or self.latents < 1 or self.actions < 1:
            raise ValueError(f"{self}: history, latents and actions must each be at least 1")

    @property
    def size(self) -> int:
        """Dimensions S of the state."""
        return self.history * self.latents + (self.history - 1) * self.actions

    @property
    def names(self) -> list[str]:
        """Name every entry of the state, such as ``h0(t-1)``."""
        h = [f"h{i}(t-{lag})" for lag in range(self.history) for i in range(self.latents)]
        return h + [f"a{i}(t-{lag})" for lag in range(1, self.history) for i in range(self.actions)]

    def start(self, h: np.ndarray) -> np.ndarray:
        """Return the states (B, S) of a rest at embeddings h (B, m): no motion, no action."""
        past = np.zeros((*h.shape[:-1], (self.history - 1) * self.actions))
        return np.concatenate([*[h] * self.history, past], axis=-1)

    def step(self, s: Array, a: Array, h: Array) -> Array:
        """Return the states (..., S) once actions a (..., a) were executed and embeddings h (..., m) were seen.

        Works on NumPy arrays and torch tensors.
        """
        if self.history == 1:
            return h
        split = self.history * self.latents
        parts = [h, s[..., : split - self.latents], a, s[..., split : self.size - self.actions]]
        if isinstance(s, np.ndarray):
            return np.concatenate(parts, axis=-1)  # type: ignore[return-value]
        import torch

        return torch.cat(parts, dim=-1)

    def at(self, h: np.ndarray, actions: np.ndarray, frames: np.ndarray) -> np.ndarray:
        """Return the states (W, S) at the given frames, from actions (F, a) aligned by :func:`align_actions`."""
        past = [h[frames - lag] for lag in range(self.history)]
        return np.concatenate([*past, *[actions[frames - lag] for lag in range(1, self.history)]], axis=-1)

    def windows(self, offsets: np.ndarray, steps: int) -> np.ndarray:
        """Return every frame t (W,) with k - 1 frames before it and ``steps`` after it in its episode.

        Raises:
            ValueError: no episode is that long.
        """
        frames = window_indices(offsets, self.history + steps) + self.history - 1
        if not len(frames):
            raise ValueError(f"no episode has the {self.history + steps} frames that {steps} steps need")
        return frames


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
        latents: dimensions m of an embedding.
        actions: dimensions a of an action.
        excitation: how well the data determined it, if it was fitted.
    """

    A: np.ndarray
    B: np.ndarray
    bias: np.ndarray
    noise_cov: np.ndarray
    history: int
    latents: int
    actions: int
    excitation: Excitation | None = None

    def __post_init__(self) -> None:
        size = self.layout.size
        shapes = {"A": (size, size), "B": (size, self.actions), "bias": (size,), "noise_cov": (size, size)}
        for name, shape in shapes.items():
            value = getattr(self, name)
            if value.shape != shape or not np.isfinite(value).all():
                raise ValueError(f"{name} must be finite with shape {shape}, and has shape {value.shape}")

    @cached_property
    def layout(self) -> StateLayout:
        """How the state is built."""
        return StateLayout(self.history, self.latents, self.actions)

    @cached_property
    def C(self) -> np.ndarray:
        """The readout h = C s (m, S)."""
        return np.eye(self.latents, self.layout.size)

    @property
    def radius(self) -> float:
        """Spectral radius of A; above 1 the uncontrolled model diverges."""
        return float(np.abs(np.linalg.eigvals(self.A)).max())

    def transition(self, s: Array, a: Array) -> Array:
        """Return the expected next states (..., S) of states (..., S) and actions (..., a), NumPy or torch."""
        A, B, bias = (like(s, matrix) for matrix in (self.A, self.B, self.bias))
        return s @ A.T + a @ B.T + bias

    def transformed(self, Q: np.ndarray, b: np.ndarray | None = None) -> "LinearGaussianDynamics":
        """Return the same dynamics in other coordinates, h = Q z + b with Q (m, m) invertible."""
        T, layout = lift(Q, self.layout), self.layout
        shift = layout.start(np.zeros(layout.latents) if b is None else b)
        A = T @ self.A @ np.linalg.inv(T)
        bias = T @ self.bias + shift - A @ shift
        W = T @ self.noise_cov @ T.T
        return LinearGaussianDynamics(A, T @ self.B, bias, W, self.history, self.latents, self.actions)

    def save(self, path: Path) -> Path:
        """Write an ``.npz`` of plain arrays, whole or not at all."""
        arrays = {f.name: np.asarray(getattr(self, f.name)) for f in fields(self) if f.name != "excitation"}
        if self.excitation is not None:
            arrays |= {f"excitation_{f.name}": np.asarray(getattr(self.excitation, f.name)) for f in fields(Excitation)}
        return write_whole(path.with_suffix(".npz"), lambda temporary: np.savez(temporary, **arrays))

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read what :meth:`save` wrote.

        Raises:
            FileNotFoundError: there is no such file.
            ValueError: the file is damaged or holds something else.
        """
        try:
            with np.load(path, allow_pickle=False) as file:
                values = {name: file[name] for name in file.files}
            numbers = {name: values[name].item() for name in ("history", "latents", "actions")}
            matrices = {name: values[name] for name in ("A", "B", "bias", "noise_cov")}
            excitation = {f.name: values.get(f"excitation_{f.name}") for f in fields(Excitation)}
        except FileNotFoundError:
            raise
        except (OSError, ValueError, KeyError, EOFError, BadZipFile, AttributeError) as error:
            raise ValueError(f"{path} holds no linear dynamics ({error}): fit and save them again") from None
        known = {name: value.item() for name, value in excitation.items() if value is not None}
        return cls(**matrices, **numbers, excitation=Excitation(**known) if known else None)


def like(array: Any, matrix: np.ndarray) -> Any:
    """Return ``matrix`` as it is for a NumPy ``array``, else as a tensor of its dtype and device."""
    return matrix if isinstance(array, np.ndarray) else array.new_tensor(matrix)


def lift(Q: np.ndarray, layout: StateLayout) -> np.ndarray:
    """Return the map (S, S) of states under h = Q z: Q on every embedding, the identity on actions."""
    if Q.shape != (layout.latents, layout.latents):
        raise ValueError(f"Q must be {layout.latents}x{layout.latents}, and has shape {Q.shape}")
    T = np.eye(layout.size)
    split = layout.history * layout.latents
    T[:split, :split] = np.kron(np.eye(layout.history), Q)
    return T


def align_actions(actions: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """Return actions by frame (F, a): row t is what was done at frame t, NaN at the last frame of an episode."""
    aligned = np.full((int(offsets[-1]), actions.shape[1]), np.nan)
    acted = np.ones(len(aligned), bool)
    acted[offsets[1:] - 1] = False
    aligned[acted] = actions
    return aligned


def check_trajectories(h: np.ndarray, actions: np.ndarray, offsets: np.ndarray) -> Trajectories:
    """Return the arrays in float64.

    Raises:
        ValueError: lengths do not fit, there is no action, or a value is not finite.
    """
    h, actions, offsets = np.asarray(h, np.float64), np.asarray(actions, np.float64), np.asarray(offsets)
    frames, episodes = len(h), len(offsets) - 1
    if h.ndim != 2 or actions.ndim != 2 or offsets.ndim != 1 or episodes < 1 or offsets[-1] != frames:
        raise ValueError(f"offsets must end at the {frames} embeddings (F, m) that they cut into episodes")
    if len(actions) != frames - episodes:
        raise ValueError(f"{frames} frames of {episodes} episodes have {frames - episodes} actions, not {len(actions)}")
    if actions.shape[1] == 0:
        raise ValueError("these episodes were posed, not driven: dynamics need episodes with actions")
    if not (np.isfinite(h).all() and np.isfinite(actions).all()):
        raise ValueError("embeddings and actions must be finite")
    return Trajectories(h, actions, offsets)


def fit_linear_dynamics(
    h: np.ndarray,
    actions: np.ndarray,
    offsets: np.ndarray,
    *,
    history: int | None = 2,
    ridge: float = 1e-6,
    max_condition: float = 1e7,
    selection: Trajectories | None = None,
) -> LinearGaussianDynamics:
    """Fit A, B and c by ridge regression, through the singular values of the regressors X (never of XᵀX).

    Args:
        h: embeddings (F, m).
        actions: (F - E, a).
        offsets: (E + 1,); no window crosses an episode.
        history: embeddings in the state; None takes the one of 1 to 4 with the least 10-step error on ``selection``.
        ridge: penalty on the coefficients of regressors with unit variance, per sample.
        max_condition: regressors (with unit variance) that are worse conditioned count as not excited.
        selection: other episodes, to choose the history on.

    Raises:
        ValueError: the data do not fit together, are too short, or leave a direction unexcited (which one is named).
    """
    data = check_trajectories(h, actions, offsets)
    if history is not None:
        return _fit(data, StateLayout(history, data.h.shape[1], data.actions.shape[1]), ridge, max_condition)
    if selection is None:
        raise ValueError("to choose the history, hand in other episodes as `selection`")
    fits: list[LinearGaussianDynamics] = []
    refused: ValueError | None = None
    for candidate in HISTORIES:
        try:
            fits.append(
                _fit(data, StateLayout(candidate, data.h.shape[1], data.actions.shape[1]), ridge, max_condition)
            )
        except ValueError as error:  # a longer history may be redundant, as positions are once velocities are given
            refused = error
    if refused and not fits:
        raise refused
    steps = max(1, min(10, int(np.diff(selection.offsets).max()) - HISTORIES[-1]))
    return min(fits, key=lambda dynamics: open_loop(dynamics, *selection, steps=(steps,)).error[0])


def _fit(data: Trajectories, layout: StateLayout, ridge: float, max_condition: float) -> LinearGaussianDynamics:
    by_frame = align_actions(data.actions, data.offsets)
    frames = layout.windows(data.offsets, 1)
    X = np.concatenate([layout.at(data.h, by_frame, frames), by_frame[frames]], axis=1)
    Y = data.h[frames + 1]
    names = [*layout.names, *[f"a{i}(t-0)" for i in range(layout.actions)]]
    mean, scale = X.mean(axis=0), X.std(axis=0)
    X = (X - mean) / np.where(scale > 0, scale, 1.0)
    U, sigma, Vt = np.linalg.svd(X, full_matrices=False)
    excited = sigma * max_condition > sigma[0]
    excitation = Excitation(len(X), X.shape[1], int(excited.sum()), float(sigma[0] / max(sigma[-1], 1e-300)))
    if len(X) <= X.shape[1] or not excited.all():
        raise ValueError(_not_excited(excitation, Vt[-1], names))
    filtered = (sigma / (sigma**2 + ridge * len(X)))[:, None] * (U.T @ (Y - Y.mean(axis=0)))
    coefficients = (Vt.T @ filtered) / scale[:, None]  # (S + a, m)
    intercept = Y.mean(axis=0) - mean @ coefficients
    residuals = Y - Y.mean(axis=0) - X @ (coefficients * scale[:, None])
    m, size = layout.latents, layout.size
    A = np.vstack(
        [coefficients[:size].T, layout.step(np.eye(size), np.zeros((size, layout.actions)), np.zeros((size, m))).T[m:]]
    )
    shift = layout.step(np.zeros((layout.actions, size)), np.eye(layout.actions), np.zeros((layout.actions, m))).T
    B = np.vstack([coefficients[size:].T, shift[m:]])
    noise_cov = np.zeros((size, size))
    noise_cov[:m, :m] = residuals.T @ residuals / (len(X) - X.shape[1])
    bias = np.concatenate([intercept, np.zeros(size - m)])
    return LinearGaussianDynamics(A, B, bias, noise_cov, layout.history, m, layout.actions, excitation)


def _not_excited(excitation: Excitation, direction: np.ndarray, names: Sequence[str]) -> str:
    if excitation.samples <= excitation.regressors:
        return (
            f"{excitation.samples} windows cannot determine {excitation.regressors} regressors: collect more episodes"
        )
    weakest = ", ".join(names[i] for i in np.argsort(-np.abs(direction)) if abs(direction[i]) > 0.1)
    return (
        f"the data excite {excitation.rank} of {excitation.regressors} directions (condition {excitation.condition:.1e}); "
        f"missing is a combination of {weakest}: drive it with richer actions, or shorten the history"
    )


def fit_dynamics(
    encoder: "Encoder", episodes: "Episodes", *, history: int | None = None, ridge: float = 1e-6
) -> LinearGaussianDynamics:
    """Fit linear dynamics of the embeddings of ``episodes.train``; the history is chosen on ``episodes.selection``."""
    train, selection = (encode_episodes(encoder, part) for part in (episodes.train, episodes.selection))
    return fit_linear_dynamics(*train, history=history, ridge=ridge, selection=selection)


def encode_episodes(encoder: "Encoder", episodes: "Episodes") -> Trajectories:
    """Embed the frames of driven episodes."""
    return Trajectories(encoder.encode(episodes.frames).astype(np.float64), episodes.actions, episodes.offsets)


@dataclass(frozen=True)
class OpenLoop:
    """Errors of predictions without feedback, over every window of held-out episodes.

    Attributes:
        steps: how many steps ahead (K,).
        error: root mean square of ‖ĥ - h‖ (K,).
        holding_still: the same for ĥ = the last embedding seen (K,).
        r2: share of the variance of h that is predicted (K,).
        windows: predictions behind each number.
    """

    steps: tuple[int, ...]
    error: np.ndarray
    holding_still: np.ndarray
    r2: np.ndarray
    windows: int


def open_loop(
    dynamics: Dynamics,
    h: np.ndarray,
    actions: np.ndarray,
    offsets: np.ndarray,
    *,
    steps: Sequence[int] = (1, 5, 10, 20),
) -> OpenLoop:
    """Predict embeddings of held-out episodes several steps ahead, from the actions alone.

    Raises:
        ValueError: the data do not fit together, or no episode is long enough.
    """
    data = check_trajectories(h, actions, offsets)
    by_frame = align_actions(data.actions, data.offsets)
    frames = dynamics.layout.windows(data.offsets, max(steps))
    s, m = dynamics.layout.at(data.h, by_frame, frames), dynamics.layout.latents
    error, still, r2 = [], [], []
    for ahead in range(1, max(steps) + 1):
        s = dynamics.transition(s, by_frame[frames + ahead - 1])
        if ahead in steps:
            target = data.h[frames + ahead]
            squared = ((s[:, :m] - target) ** 2).sum(axis=1).mean()
            error.append(np.sqrt(squared))
            still.append(np.sqrt(((data.h[frames] - target) ** 2).sum(axis=1).mean()))
            r2.append(1 - squared / target.var(axis=0).sum())
    return OpenLoop(tuple(sorted(steps)), np.array(error), np.array(still), np.array(r2), len(frames))


@dataclass(frozen=True)
class Similarity:
    """How far the dynamics of h are from those of z, seen through h = Q z (Frobenius norms).

    Attributes:
        A: ‖Q A Qᵀ - A_h‖.
        B: ‖Q B - B_h‖.
        relative: ‖[Q A Qᵀ, Q B] - [A_h, B_h]‖ over ‖[A_h, B_h]‖.
    """

    A: float
    B: float
    relative: float


def similarity(true: LinearGaussianDynamics, learnt: LinearGaussianDynamics, Q: np.ndarray) -> Similarity:
    """Measure whether dynamics of the latents and of the embeddings are one model in two coordinates.

    Args:
        true: dynamics of z.
        learnt: dynamics of h, with the same history.
        Q: the fitted map h = Q z (m, m); with an orthogonal Q its inverse is Qᵀ.

    Raises:
        ValueError: the layouts differ.
    """
    if true.layout != learnt.layout:
        raise ValueError(f"layouts differ: {true.layout} and {learnt.layout}")
    moved = true.transformed(Q)
    difference = np.hstack([moved.A - learnt.A, moved.B - learnt.B])
    size = true.layout.size
    scale = np.linalg.norm(np.hstack([learnt.A, learnt.B])[: learnt.latents])  # the shift of the past says nothing
    norms = [float(np.linalg.norm(part)) for part in (difference[:, :size], difference[:, size:], difference)]
    return Similarity(norms[0], norms[1], norms[2] / float(scale))
