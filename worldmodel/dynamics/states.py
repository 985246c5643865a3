"""States built from embeddings and actions: what dynamics, estimators and planners work on."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, Self, TypeVar

import numpy as np

from worldmodel.data.pairs import window_indices

if TYPE_CHECKING:
    from worldmodel.data.episodes import Episodes

Array = TypeVar("Array", bound=Any)  # a NumPy array or a torch tensor; the result is of the same kind


class Encodes(Protocol):
    """Embeds frames."""

    def encode(self, frames: np.ndarray) -> np.ndarray:
        """Embed frames (F, H, W, C) uint8: (F, m)."""


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


class Padded(NamedTuple):
    """Episodes side by side, the shorter ones filled with zeros.

    Attributes:
        h: embeddings (E, T + 1, m).
        actions: (E, T, a).
        seen: which embeddings are real (E, T + 1).
        acted: which actions are real (E, T).
    """

    h: np.ndarray
    actions: np.ndarray
    seen: np.ndarray
    acted: np.ndarray

    @classmethod
    def of(cls, data: Trajectories) -> "Padded":
        """Put episodes side by side."""
        lengths = np.diff(data.offsets)[:, None]
        step = np.arange(lengths.max())
        seen, acted = step < lengths, step[1:] < lengths
        h, actions = np.zeros((*seen.shape, data.h.shape[1])), np.zeros((*acted.shape, data.actions.shape[1]))
        h[seen], actions[acted] = data.h, data.actions
        return cls(h, actions, seen, acted)


def encode_episodes(encoder: Encodes, episodes: "Episodes") -> Trajectories:
    """Embed the frames of driven episodes."""
    return Trajectories(encoder.encode(episodes.frames).astype(np.float64), episodes.actions, episodes.offsets)


def check_matrices(matrices: Any, shapes: Mapping[str, tuple[int, ...]]) -> None:
    """Raise ValueError unless each named attribute is finite and has its shape."""
    for name, shape in shapes.items():
        value = getattr(matrices, name)
        if value.shape != shape or not np.isfinite(value).all():
            raise ValueError(f"{name} must be finite with shape {shape}, and has shape {value.shape}")


class Estimator(Protocol):
    """Keeps the state that dynamics work on up to date, from embeddings and actions."""

    def start(self, h: np.ndarray) -> np.ndarray:
        """Return the states (B, S) of a rest at embeddings h (B, m), as they would be estimated after a while."""

    def step(self, s: np.ndarray, a: np.ndarray, h: np.ndarray) -> np.ndarray:
        """Return the states (B, S) once actions a (B, a) were executed and embeddings h (B, m) were seen."""


class LinearModel(Protocol):
    """What the planners that need a linear model ask of it: s' = A s + B a + c, the embedding first in s."""

    @property
    def A(self) -> np.ndarray:
        """The state's own motion (S, S)."""

    @property
    def B(self) -> np.ndarray:
        """What actions do (S, a)."""

    @property
    def bias(self) -> np.ndarray:
        """The constant c (S,)."""

    @property
    def dim(self) -> int:
        """Dimensions m of the embedding, which is the first m entries of the state."""

    def rest(self, h: np.ndarray) -> np.ndarray:
        """Return the states (..., S) of a rest at embeddings h (..., m), without action."""

    def transformed(self, Q: np.ndarray) -> Self:
        """Return the same model of h = Q z."""


class Prediction(NamedTuple):
    """What dynamics expect of a step.

    Attributes:
        state: (B, S).
        mean: expected embedding (B, m).
        spread: one standard deviation of what will be seen (B, m); None where the dynamics cannot tell.
    """

    state: np.ndarray
    mean: np.ndarray
    spread: np.ndarray | None


class Dynamics(Estimator, Protocol):
    """What a world model, planners and forecasts ask of any dynamics; your own as well. The embedding comes first in s.

    To be saved with a world model they are a :class:`~worldmodel.utils.parts.Part`, too.
    """

    @property
    def dim(self) -> int:
        """Dimensions m of the embedding."""

    @property
    def linear(self) -> LinearModel | None:
        """A linear model for the planners that need one: itself, or what it corrects; None where there is none."""

    def transition(self, s: Array, a: Array) -> Array:
        """Return the expected next states (..., S) of states (..., S) and actions (..., a), NumPy or torch."""

    def spread(self, s: np.ndarray, a: np.ndarray) -> np.ndarray | None:
        """Return one standard deviation of the next embedding (..., m); None where it cannot be told."""


@dataclass(frozen=True)
class StateLayout:
    """The state s_t = (h_t, ..., h_{t-k+1}, a_{t-1}, ..., a_{t-k+1}): single frames hold no velocity, so it looks back.

    Actions of the past are part of it, since their effect reaches later embeddings too.

    Attributes:
        history: number k of embeddings.
        dim: dimensions m of an embedding.
        actions: dimensions a of an action.
    """

    history: int
    dim: int
    actions: int

    def __post_init__(self) -> None:
        if self.history < 1 or self.dim < 1 or self.actions < 1:
            raise ValueError(f"{self}: history, dim and actions must each be at least 1")

    @property
    def size(self) -> int:
        """Dimensions S of the state."""
        return self.history * self.dim + (self.history - 1) * self.actions

    @property
    def names(self) -> list[str]:
        """Name every entry of the state, such as ``h0(t-1)``."""
        h = [f"h{i}(t-{lag})" for lag in range(self.history) for i in range(self.dim)]
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
        split = self.history * self.dim
        parts = [h, s[..., : split - self.dim], a, s[..., split : self.size - self.actions]]
        if isinstance(s, np.ndarray):
            return np.concatenate(parts, axis=-1)  # type: ignore[return-value]
        import torch  # a planner on NumPy arrays has no need of it

        return torch.cat(parts, dim=-1)  # type: ignore[return-value]

    def shift(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the matrices (S, S) and (S, a) that move the past along; their first m rows, the model's, are zero."""
        no_h = np.zeros((self.size + self.actions, self.dim))
        basis = np.eye(self.size + self.actions)
        both = np.ascontiguousarray(self.step(basis[:, : self.size], basis[:, self.size :], no_h).T)
        return both[:, : self.size].copy(), both[:, self.size :].copy()

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


def like(array: Any, matrix: np.ndarray) -> Any:
    """Return ``matrix`` as it is for a NumPy ``array``, else as a tensor of its dtype and device."""
    return matrix if isinstance(array, np.ndarray) else array.new_tensor(matrix)


def lift(Q: np.ndarray, layout: StateLayout) -> np.ndarray:
    """Return the map (S, S) of states under h = Q z: Q on every embedding, the identity on actions."""
    if Q.shape != (layout.dim, layout.dim):
        raise ValueError(f"Q must be {layout.dim}x{layout.dim}, and has shape {Q.shape}")
    T = np.eye(layout.size)
    split = layout.history * layout.dim
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
