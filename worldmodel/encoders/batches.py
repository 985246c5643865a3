"""Batches of pairs, in the order that training meets them."""

import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from worldmodel.data.episodes import Episodes
from worldmodel.data.pairs import mixed_pairs, pair_indices
from worldmodel.encoders.ranks import Ranks
from worldmodel.utils.devices import sent


class PairSource(Protocol):
    """Where training takes its pairs from."""

    @property
    def offsets(self) -> np.ndarray:
        """Frame offsets of the training episodes (E + 1,)."""
        ...

    @property
    def identity(self) -> str:
        """What decides the pairs and their order, in a few words."""
        ...

    @property
    def some_frames(self) -> np.ndarray:
        """About 512 training frames, far apart: (N, H, W, 3) uint8."""
        ...

    def batches(self, lags: tuple[int, ...], size: int, done: int, end: int) -> Iterator[Tensor]:
        """Yield this process's share of the batch of ``size`` pairs of each step from ``done`` to ``end``.

        Each is (2 B, H, W, 3) uint8: the B first frames, then the B second ones.
        """
        ...

    def first_frames(self, lag: int, most: int = 16_384, size: int = 512) -> Iterator[Tensor]:
        """Yield this process's share of batches of ``size`` first frames of pairs, ``most`` in all."""
        ...


@dataclass(frozen=True)
class HeldPairs:
    """Pairs of frames that are all in memory.

    Attributes:
        episodes: those that are trained on.
        seed: decides the order.
        device: where batches lie.
        weights: how often the pairs that begin at each frame (F,) are drawn, relative to each other; None draws every
            pair once per epoch.
        ranks: who shares the batches.

    Raises:
        ValueError: weights that do not fit.
    """

    episodes: Episodes
    seed: int
    device: torch.device
    weights: np.ndarray | None = None
    ranks: Ranks = Ranks()  # noqa: RUF009 (frozen)

    def __post_init__(self) -> None:
        if self.weights is not None:
            _check_weights(self.weights, self.episodes.num_frames)

    @property
    def offsets(self) -> np.ndarray:
        """Frame offsets of the training episodes (E + 1,)."""
        return self.episodes.offsets

    @property
    def identity(self) -> str:
        """What decides the pairs and their order, in a few words."""
        drawn = "" if self.weights is None else f" weights={checksum(self.weights)}"
        return f"frames={self.episodes.num_frames} checksum={checksum(self.some_frames)}{drawn}"

    @property
    def some_frames(self) -> np.ndarray:
        """512 frames or a few more, evenly spaced: (N, H, W, 3) uint8."""
        return self.episodes.frames[:: max(1, self.episodes.num_frames // 512)]

    @cached_property
    def _frames(self) -> Tensor:
        return torch.from_numpy(self.episodes.frames).to(self.device)

    def batches(self, lags: tuple[int, ...], size: int, done: int, end: int) -> Iterator[Tensor]:
        """Yield this process's share of each step's batch: (2 B, H, W, 3) uint8."""
        first, second = mixed_pairs(self.offsets, lags)
        mine = self.ranks.share(size)
        chances = None if self.weights is None else self.weights[first]
        for batch in drawn_batches(len(first), size, self.seed, done, end, chances):
            rows = batch[mine]
            yield self._frames[sent(np.concatenate([first[rows], second[rows]]), self.device)]

    def first_frames(self, lag: int, most: int = 16_384, size: int = 512) -> Iterator[Tensor]:
        """Yield this process's share of batches of first frames of pairs, in random order."""
        starts = pair_indices(self.offsets, lag)
        size = min(size, len(starts))
        mine = self.ranks.share(size)
        order = np.random.default_rng([self.seed, 1]).permutation(starts)[:most]
        for first in range(0, len(order) - size + 1, size):
            yield self._frames[sent(order[first : first + size][mine], self.device)]


def drawn_batches(
    pairs: int, size: int, seed: int, done: int, end: int, chances: np.ndarray | None = None
) -> Iterator[np.ndarray]:
    """Yield the indices of each remaining step.

    Every epoch is a fresh permutation that follows from seed and epoch; with chances (pairs,), each step draws by them.
    """
    if chances is not None:
        edges = np.cumsum(chances, dtype=np.float64)
        for step in range(done, end):
            yield np.searchsorted(edges, edges[-1] * np.random.default_rng([seed, 3, step]).random(size), "right")
        return
    per_epoch = pairs // size
    order, current = None, -1
    for step in range(done, end):
        epoch, place = divmod(step, per_epoch)
        if order is None or epoch != current:
            order, current = np.random.default_rng([seed, 0, epoch]).permutation(pairs), epoch
        yield order[place * size : (place + 1) * size]


def checksum(values: np.ndarray) -> str:
    """Hash an array's bytes, to tell data sets apart."""
    return f"{zlib.crc32(np.ascontiguousarray(values).data):08x}"


def _check_weights(weights: np.ndarray, frames: int) -> None:
    if weights.shape != (frames,) or not np.isfinite(weights).all() or weights.min() < 0 or weights.max() == 0:
        raise ValueError(
            f"weights {weights.shape} have to be finite, not negative, not all 0, one per frame ({frames},)"
        )
