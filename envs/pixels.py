"""Frames as observations."""

from typing import Any

import gymnasium as gym
import numpy as np

from worldmodel.envs.suite import SuiteEnv


class PixelObservation(gym.Wrapper[np.ndarray, np.ndarray, np.ndarray, np.ndarray], gym.utils.RecordConstructorArgs):
    """Observes the frame, (height, width, 3) uint8; what the task itself observes goes to info["state_observation"].

    >>> env = PixelObservation(SuiteEnv("reacher", "hard"))
    >>> frame, info = env.reset(seed=0)
    >>> frame.shape, frame.dtype, info["state_observation"].shape
    ((64, 64, 3), dtype('uint8'), (6,))
    >>> bool((frame == env.render()).all())
    True
    >>> env.close()

    Args:
        env: A `SuiteEnv`, wrapped or not; its height, width and camera make the frame.

    Raises:
        ValueError: If another kind of environment lies at the bottom.
    """

    def __init__(self, env: gym.Env[np.ndarray, np.ndarray]) -> None:
        gym.utils.RecordConstructorArgs.__init__(self)
        super().__init__(env)
        if not isinstance(env.unwrapped, SuiteEnv):
            raise ValueError(f"PixelObservation takes a SuiteEnv, not {type(env.unwrapped).__name__}")
        self.observation_space = gym.spaces.Box(0, 255, (*env.unwrapped.frame_size, 3), np.uint8)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Starts an episode and draws it."""
        observation, info = self.env.reset(seed=seed, options=options)
        return self._frame(), {**info, "state_observation": observation}

    def step(self, action: np.ndarray) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        """Acts and draws what came of it."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        return self._frame(), float(reward), terminated, truncated, {**info, "state_observation": observation}

    def _frame(self) -> np.ndarray:
        unwrapped = self.env.unwrapped
        assert isinstance(unwrapped, SuiteEnv)
        return unwrapped.render()
