"""Episodes in memory: frames, states, latents and actions, one after another."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from worldmodel.data.datacard import DataCard

DTYPES = {
    "frames": "uint8",
    "states": "float64",
    "latents": "float32",
    "actions": "float32",
    "rewards": "float32",
    "offsets": "int64",
}
ARRAYS = tuple(DTYPES)
_PER_STEP = ("actions", "rewards")  # one fewer in each episode than frames


@dataclass(frozen=True)
class Episode:
    """One episode: T actions belong to T + 1 frames, the reset frame among them.

    Attributes:
        frames: (T + 1, H, W, 3) uint8.
        states: (T + 1, nq + nv) float64, generalised positions, then velocities.
        latents: (T + 1, n) float32, standardised.
        actions: (T, a) float32; a = 0 where frames were posed, not driven.
        rewards: (T,) float32, the task's own; NaN where there is none, and in place of None.
    """

    frames: np.ndarray
    states: np.ndarray
    latents: np.ndarray
    actions: np.ndarray
    rewards: np.ndarray = None  # type: ignore[assignment]

    def __post_init__(self) -> None:
        if self.rewards is None:
            object.__setattr__(self, "rewards", np.full(len(self.actions), np.nan, np.float32))
        length = len(self.frames)
        if self.frames.dtype != np.uint8 or self.frames.ndim != 4 or self.frames.shape[-1] != 3:
            raise ValueError(f"frames are {self.frames.shape} {self.frames.dtype}; they must be (T + 1, H, W, 3) uint8")
        if not length == len(self.states) == len(self.latents) == len(self.actions) + 1 == len(self.rewards) + 1:
            raise ValueError(
                f"an episode of {length} frames has {length} states and latents and {length - 1} actions and rewards, "
                f"not {len(self.states)}, {len(self.latents)}, {len(self.actions)} and {len(self.rewards)}"
            )
        for name in ("states", "latents", "actions"):
            if not np.isfinite(getattr(self, name)).all():
                raise ValueError(f"an episode holds {name} that are not finite")


@dataclass(frozen=True)
class Episodes:
    """Many episodes, stored one after another.

    Attributes:
        frames: (F, H, W, 3) uint8.
        states: (F, nq + nv) float64.
        latents: (F, n) float32.
        actions: (F - E, a) float32: an episode has one action less than frames.
        rewards: (F - E,) float32; NaN where there is none.
        offsets: (E + 1,) int64, the first frame of each episode, and F.
        card: what the data is.
    """

    frames: np.ndarray
    states: np.ndarray
    latents: np.ndarray
    actions: np.ndarray
    rewards: np.ndarray
    offsets: np.ndarray
    card: DataCard

    def __len__(self) -> int:
        """Return the number of episodes."""
        return len(self.offsets) - 1

    def __iter__(self) -> Iterator[Episode]:
        return (self.episode(index) for index in range(len(self)))

    @property
    def num_frames(self) -> int:
        """Frames in all."""
        return len(self.frames)

    def episode(self, index: int) -> Episode:
        """Return one episode, as views of the arrays."""
        first, end = self.offsets[index : index + 2]
        steps = slice(first - index, end - index - 1)
        frames, states, latents = self.frames[first:end], self.states[first:end], self.latents[first:end]
        return Episode(frames, states, latents, self.actions[steps], self.rewards[steps])

    def subset(self, indices: Sequence[int] | np.ndarray) -> "Episodes":
        """Return the chosen episodes; the card stays that of the whole data set."""
        return Episodes(**stack([self.episode(int(index)) for index in indices]), card=self.card)

    @cached_property
    def train(self) -> "Episodes":
        """Eight of ten episodes: what is fitted is fitted on these."""
        return self.subset(split_episodes(len(self))[0])

    @cached_property
    def selection(self) -> "Episodes":
        """One of ten episodes: choices are made on these."""
        return self.subset(split_episodes(len(self))[1])

    @cached_property
    def heldout(self) -> "Episodes":
        """One of ten episodes: scores are measured on these, and nothing else is."""
        return self.subset(split_episodes(len(self))[2])


def stack(episodes: Sequence[Episode]) -> dict[str, np.ndarray]:
    """Put episodes one after another: the arrays of :class:`Episodes`, by name.

    Raises:
        ValueError: there is none.
    """
    if not episodes:
        raise ValueError("no episodes: the data set is empty")
    arrays = {name: np.concatenate([getattr(e, name) for e in episodes]) for name in ARRAYS[:-1]}
    arrays["offsets"] = np.concatenate([[0], np.cumsum([len(e.frames) for e in episodes])]).astype(np.int64)
    return arrays


def unstack(arrays: Mapping[str, np.ndarray]) -> list[Episode]:
    """Cut the arrays of :func:`stack` into episodes again, as views.

    Raises:
        ValueError: they do not fit together.
    """
    lengths = {name: len(arrays[name]) for name in ARRAYS[:-1]}
    offsets = arrays["offsets"]
    total, count = lengths["frames"], len(offsets) - 1
    if count < 1 or offsets[0] != 0 or offsets[-1] != total or (np.diff(offsets) < 1).any():
        raise ValueError(f"offsets do not cut {total} frames into episodes")
    if any(length != (total - count if name in _PER_STEP else total) for name, length in lengths.items()):
        raise ValueError(f"{total} frames of {count} episodes do not fit {lengths}")
    episodes = []
    for index, (first, end) in enumerate(pairwise(offsets.tolist())):
        steps = slice(first - index, end - index - 1)
        frames, states, latents = (arrays[name][first:end] for name in ("frames", "states", "latents"))
        episodes.append(Episode(frames, states, latents, arrays["actions"][steps], arrays["rewards"][steps]))
    return episodes


def split_episodes(episodes: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Split by episode, 80/10/10, by a permutation that depends on their number alone."""
    if episodes < 3:
        raise ValueError(f"{episodes} episode(s) cannot be split: training, selection and test need one each")
    order = np.random.default_rng(episodes).permutation(episodes)
    part = max(1, episodes // 10)
    return np.sort(order[2 * part :]), np.sort(order[part : 2 * part]), np.sort(order[:part])
