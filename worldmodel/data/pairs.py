"""Which frames belong together: pairs and windows inside one episode, never across two."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np


def pair_indices(offsets: np.ndarray, lag: int) -> np.ndarray:
    """Return the frame index t of every pair (t, t + lag).

    Args:
        offsets: frame offsets of the episodes (E + 1,).
        lag: control steps between the two frames, at least 1.

    Raises:
        ValueError: the lag is below 1.

    >>> pair_indices(np.array([0, 3, 5]), lag=1).tolist()
    [0, 1, 3]
    """
    if lag < 1:
        raise ValueError(f"lag is {lag}; it must be at least 1 control step")
    return window_indices(offsets, lag + 1)


def mixed_pairs(offsets: np.ndarray, lags: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
    """Return the first and the second frame of every pair with one of the lags.

    >>> first, second = mixed_pairs(np.array([0, 3]), lags=(1, 2))
    >>> first.tolist(), second.tolist()
    ([0, 1, 0], [1, 2, 2])
    """
    starts = [pair_indices(offsets, lag) for lag in lags]
    return np.concatenate(starts), np.concatenate([first + lag for first, lag in zip(starts, lags, strict=True)])


def window_indices(offsets: np.ndarray, length: int) -> np.ndarray:
    """Return the first frame of every window of ``length`` frames.

    >>> len(window_indices(np.array([0, 3, 13, 20]), length=4))  # episodes of 3, 10 and 7 frames
    11

    Raises:
        ValueError: the length is below 1.
    """
    if length < 1:
        raise ValueError(f"length is {length}; it must be at least 1 frame")
    starts = [np.arange(first, end - length + 1) for first, end in pairwise(offsets)]
    return np.concatenate(starts) if starts else np.zeros(0, np.int64)
