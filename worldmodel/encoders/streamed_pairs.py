"""Pairs of frames that stream from disk: while one round of shards is trained on, the next one loads."""

import time
from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import cached_property
from itertools import chain
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from worldmodel.data.pairs import mixed_pairs
from worldmodel.data.streaming import StreamedEpisodes
from worldmodel.encoders.batches import checksum
from worldmodel.encoders.ranks import Ranks
from worldmodel.utils.devices import sent


class _Plan(NamedTuple):
    """What a round will be: where in the sequence of all pairs it begins, its episodes, the seed of its order."""

    begin: int
    episodes: np.ndarray
    seed: list[int]


class _Round(NamedTuple):
    """Frames (F, H, W, 3), and the first and second frame of each of their pairs (P,) in the order of training."""

    begin: int
    frames: np.ndarray
    first: np.ndarray
    second: np.ndarray

    @property
    def end(self) -> int:
        return self.begin + len(self.first)


class StreamedPairs:
    """Pairs in a random order that needs few frames at a time.

    In each epoch the shards are permuted and cut into rounds, and the pairs of a round are permuted among each other.
    So an epoch meets every pair once, and the order follows from seed, epoch and memory alone: a resumed run computes
    where it was, and reads no frame that it does not need. Batches are cut from the endless sequence of epochs.

    Attributes:
        offsets: frame offsets of the training episodes (E + 1,).
    """

    def __init__(
        self,
        episodes: StreamedEpisodes,
        seed: int,
        device: torch.device | str = "cpu",
        ranks: Ranks = Ranks(),  # noqa: B008 (frozen)
    ) -> None:
        self.episodes, self.seed, self.device, self.ranks = episodes, seed, torch.device(device), ranks
        self.offsets = _offsets(episodes.lengths_of(episodes.train_episodes))

    @property
    def identity(self) -> str:
        """What decides the pairs and their order, in a few words."""
        return f"frames={self.offsets[-1]} checksum={checksum(self.some_frames)} streamed={self.episodes.memory}"

    @cached_property
    def some_frames(self) -> np.ndarray:
        """About 512 frames of 16 shards (N, H, W, 3) uint8."""
        train, shards = self.episodes.train_episodes, self.episodes.shards
        chosen = np.random.default_rng(0).permutation(np.unique(shards[train]))[:16]
        parts = (self.episodes.frames_of(train[shards[train] == shard]) for shard in chosen)
        return np.concatenate([part[:: max(1, len(part) * len(chosen) // 512)].copy() for part in parts])

    def batches(self, lags: tuple[int, ...], size: int, done: int, end: int) -> Iterator[Tensor]:
        """Yield this process's share of each step's batch: (2 B, H, W, 3) uint8."""
        if done >= end:
            return
        mine = self.ranks.share(size)
        with closing(self._rounds(lags, done * size, end * size)) as rounds:
            now = next(rounds)
            for step in range(done, end):
                begin, last, parts = step * size + mine.start, step * size + mine.stop, []
                while begin < last:
                    while begin >= now.end:
                        del now  # or it would stand beside the next round and the one that loads
                        now = next(rounds)
                    part = slice(begin - now.begin, min(last, now.end) - now.begin)
                    parts.append(now.frames[np.stack([now.first[part], now.second[part]])])
                    begin = now.begin + part.stop
                views = parts[0] if len(parts) == 1 else np.concatenate(parts, axis=1)
                yield sent(views, self.device).flatten(0, 1)

    def first_frames(self, lag: int, most: int = 16_384, size: int = 512) -> Iterator[Tensor]:
        """Yield this process's share of batches of first frames of pairs, those that training met first."""
        pairs = self._pairs(self.episodes.train_episodes, (lag,))
        size = min(size, pairs)
        for frames in self.batches((lag,), size, 0, min(most, pairs) // size):
            yield frames[: len(frames) // 2]

    def _rounds(self, lags: tuple[int, ...], begin: int, end: int) -> Generator[_Round, None, None]:
        """Yield the rounds that hold the pairs from ``begin`` to ``end``; the next one loads meanwhile."""
        plans = self._plans(lags, begin, end)
        with ThreadPoolExecutor(1, "frames") as reader:
            loading = reader.submit(self._load, lags, next(plans))
            for upcoming in chain(plans, [None]):
                start = time.monotonic()
                now = loading.result()
                self.episodes.waits.append(time.monotonic() - start)
                if upcoming is not None:
                    loading = reader.submit(self._load, lags, upcoming)
                yield now

    def _plans(self, lags: tuple[int, ...], begin: int, end: int) -> Iterator[_Plan]:
        train = self.episodes.train_episodes
        shards, pairs = np.unique(self.episodes.shards[train]), self._pairs(train, lags)
        epoch = begin // pairs
        position = epoch * pairs
        while position < end:
            order = np.random.default_rng([self.seed, 4, epoch]).permutation(shards)
            for number, episodes in enumerate(self.episodes.rounds(order)):
                after = position + self._pairs(episodes, lags)
                if after > max(begin, position) and position < end:
                    yield _Plan(position, episodes, [self.seed, 5, epoch, number])
                position = after
            epoch += 1

    def _load(self, lags: tuple[int, ...], plan: _Plan) -> _Round:
        frames = self.episodes.frames_of(plan.episodes)
        first, second = mixed_pairs(_offsets(self.episodes.lengths_of(plan.episodes)), lags)
        order = np.random.default_rng(plan.seed).permutation(len(first))
        return _Round(plan.begin, frames, first[order], second[order])

    def _pairs(self, episodes: np.ndarray, lags: tuple[int, ...]) -> int:
        lengths = self.episodes.lengths_of(episodes)
        return int(sum(np.maximum(0, lengths - lag).sum() for lag in lags))


def _offsets(lengths: np.ndarray) -> np.ndarray:
    return np.concatenate([[0], np.cumsum(lengths)])
