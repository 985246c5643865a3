"""Whether a replay buffer fits into memory: known before training starts, not when the system ends it."""

import gymnasium as gym
import numpy as np
import psutil

_FLAGS = 3 * 4  # reward, done and timeout of a transition, float32
_SHARE = 0.8  # of what is free: networks, batches and frames need the rest


def replay_bytes(observation_space: gym.Space, action_space: gym.Space, transitions: int) -> int:
    """Return the bytes of stable-baselines3's replay buffer: two observations, an action and flags each.

    >>> frames = gym.spaces.Box(0, 255, (64, 64, 3), np.uint8)
    >>> replay_bytes(frames, gym.spaces.Box(-1, 1, (2,)), 100_000)
    2459600000
    """
    return transitions * (2 * _bytes(observation_space) + _bytes(action_space) + _FLAGS)


def check_replay_memory(observation_space: gym.Space, action_space: gym.Space, transitions: int) -> None:
    """Raise ValueError, in one line, unless the replay buffer fits into the memory that is free now."""
    needed, free = replay_bytes(observation_space, action_space, transitions), psutil.virtual_memory().available
    if needed > _SHARE * free:
        fitting = int(_SHARE * free / needed * transitions)
        raise ValueError(
            f"a replay buffer of {transitions} transitions takes {needed / 1e9:.1f} GB and {free / 1e9:.1f} GB are "
            f"free: keep at most {fitting} of them, or take smaller observations"
        )


def _bytes(space: gym.Space) -> int:
    if isinstance(space, gym.spaces.Dict):
        return sum(_bytes(part) for part in space.spaces.values())
    assert space.shape is not None and space.dtype is not None
    return int(np.prod(space.shape)) * space.dtype.itemsize
