"""Episodes whose frames stay on disk: for data sets larger than memory."""

from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import psutil

from worldmodel.data.datacard import DataCard
from worldmodel.data.episodes import Episodes, split_episodes, stack
from worldmodel.data.store import EpisodeStore, load_episodes, without_frames

_SAMPLES, _ROUNDS = 0.1, 0.35  # shares of memory: three samples, the round in use and the one that loads


@dataclass(frozen=True)
class StreamedEpisodes:
    """A data set on disk; everything but its frames is in memory.

    ``train``, ``selection`` and ``heldout`` are samples of the episodes that :class:`Episodes` has under these names,
    as many as fit a tenth of ``memory`` each: for what is measured. Training reads all of them, by :meth:`frames_of`.

    Attributes:
        store: the data set.
        outline: all episodes, with frames of no pixels (F, 0, 0, 3).
        shards: shard of each episode (E,).
        places: which of its shard's episodes it is (E,).
        frame_shape: (H, W, 3).
        memory: bytes of frames that are held at once, at most; the shard that is being read comes on top.
        waits: seconds that whoever reads pairs has waited for frames, one entry per round.
    """

    store: EpisodeStore
    outline: Episodes
    shards: np.ndarray
    places: np.ndarray
    frame_shape: tuple[int, ...]
    memory: int
    waits: list[float] = field(default_factory=list)

    @classmethod
    def open(cls, path: Path | str, memory: int) -> "StreamedEpisodes":
        """Open a data set.

        Raises:
            ValueError: the folder is missing, foreign, empty or damaged, or memory does not hold its largest shard.
        """
        store = EpisodeStore(path)
        found = [
            (shard, place, episode.frames.shape[1:], without_frames(episode))
            for shard, place, episode in store.walk(blank=True)
        ]
        if not found:
            raise ValueError(f"{path} holds no complete shard: collect again with the same command to resume")
        shards, places, shapes, episodes = zip(*found, strict=True)
        arrays = stack(episodes)
        outline = Episodes(**arrays, card=store.card(arrays))
        return cls(store, outline, np.array(shards), np.array(places), shapes[0], memory)

    def __post_init__(self) -> None:
        self.rounds(np.unique(self.shards))  # before any work

    @property
    def card(self) -> DataCard:
        """The data card."""
        return self.outline.card

    @property
    def frame_bytes(self) -> int:
        """What all frames would take in memory."""
        return self.outline.num_frames * int(np.prod(self.frame_shape))

    @cached_property
    def train_episodes(self) -> np.ndarray:
        """Numbers of all training episodes, ascending."""
        return split_episodes(len(self.outline))[0]

    @cached_property
    def train(self) -> Episodes:
        """A sample of the training episodes."""
        return self._sample(self.train_episodes)

    @cached_property
    def selection(self) -> Episodes:
        """A sample of the episodes that choices are made on."""
        return self._sample(split_episodes(len(self.outline))[1])

    @cached_property
    def heldout(self) -> Episodes:
        """A sample of the episodes that scores are measured on."""
        return self._sample(split_episodes(len(self.outline))[2])

    def lengths_of(self, episodes: np.ndarray) -> np.ndarray:
        """Return the number of frames of each of the episodes."""
        return np.diff(self.outline.offsets)[episodes]

    def frames_of(self, episodes: np.ndarray) -> np.ndarray:
        """Read the frames of the episodes, one after another: (F, H, W, 3). One shard is held beside them at a time."""
        ends = np.cumsum(self.lengths_of(episodes))
        frames = np.empty((ends[-1], *self.frame_shape), np.uint8)
        for shard in np.unique(self.shards[episodes]):
            there = self.store.read_shard(int(shard))
            for position in np.flatnonzero(self.shards[episodes] == shard):
                source = there[self.places[episodes[position]]].frames
                frames[ends[position] - len(source) : ends[position]] = source
            del there, source  # before the next shard is read
        return frames

    def rounds(self, shards: np.ndarray) -> list[np.ndarray]:
        """Cut a sequence of shards into the fewest parts, alike in length, whose training frames fit a part of memory.

        Returns:
            The training episodes of each part.

        Raises:
            ValueError: the frames of one shard do not fit.
        """
        train = self.train_episodes
        most = _ROUNDS * self.memory / np.prod(self.frame_shape)
        frames = np.bincount(self.shards[train], self.lengths_of(train), minlength=int(shards.max()) + 1)
        if frames.max() > most:
            least = frames.max() * np.prod(self.frame_shape) / _ROUNDS
            raise ValueError(
                f"{self.memory / 1e9:.3g} GB of memory are too few: a shard of {self.store.path} has "
                f"{frames.max():.0f} training frames, which takes {least / 1e9:.3g} GB"
            )
        count = max(1, int(np.ceil(frames.sum() / most)))
        while max(frames[part].sum() for part in np.array_split(shards, count)) > most:
            count += 1
        return [train[np.isin(self.shards[train], part)] for part in np.array_split(shards, count)]

    def _sample(self, episodes: np.ndarray) -> Episodes:
        order = np.random.default_rng(len(self.outline)).permutation(episodes)
        frames = np.cumsum(self.lengths_of(order))
        fitting = int((frames * np.prod(self.frame_shape) <= _SAMPLES * self.memory).sum())
        chosen = np.sort(order[: max(1, fitting)])
        return replace(self.outline.subset(chosen), frames=self.frames_of(chosen))


def open_episodes(path: Path | str, memory: float) -> Episodes | StreamedEpisodes:
    """Load a data set, or leave its frames on disk where they do not fit.

    Args:
        path: its folder.
        memory: bytes that frames may take. Loaded ones are held twice: as a whole, and split into training, selection
            and test.

    Raises:
        ValueError: the folder is missing, foreign, empty or damaged, or memory does not hold its largest shard.
    """
    fits = 2 * EpisodeStore(path).frame_bytes() <= memory
    return load_episodes(path) if fits else StreamedEpisodes.open(path, int(memory))


def spare_memory(processes: int = 1) -> int:
    """Return half of the free memory for each of so many processes, in bytes, rounded down to 1, 2, 4, 8, ... MB.

    What a stream holds decides its order; so a little more or less free memory changes nothing.
    """
    megabytes = psutil.virtual_memory().available / 2 / processes / 1e6
    return int(2 ** np.floor(np.log2(max(1, megabytes)))) * 1_000_000
