"""Frames as observations."""

from typing import Any

import gymnasium as gym
import numpy as np

from worldmodel.envs.drawn_targets import target_position
from worldmodel.envs.suite import SuiteEnv


class PixelObservation(gym.Wrapper[Any, np.ndarray, np.ndarray, np.ndarray], gym.utils.RecordConstructorArgs):
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
        target: Whether the place of the target (3,) in m stands beside the frame: observations are a dictionary of
            "frame" and "target".

    Raises:
        ValueError: If another kind of environment lies at the bottom, or the task draws no target.
    """

    def __init__(self, env: gym.Env[np.ndarray, np.ndarray], target: bool = False) -> None:
        gym.utils.RecordConstructorArgs.__init__(self, target=target)
        super().__init__(env)
        if not isinstance(env.unwrapped, SuiteEnv):
            raise ValueError(f"PixelObservation takes a SuiteEnv, not {type(env.unwrapped).__name__}")
        self._target = target
        frame = gym.spaces.Box(0, 255, (*env.unwrapped.frame_size, 3), np.uint8)
        self.observation_space: gym.Space[Any] = frame
        if target:
            target_position(env.unwrapped.physics)
            place = gym.spaces.Box(-np.inf, np.inf, (3,), np.float32)
            self.observation_space = gym.spaces.Dict({"frame": frame, "target": place})

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Starts an episode and draws it."""
        observation, info = self.env.reset(seed=seed, options=options)
        return self._look(), {**info, "state_observation": observation}

    def step(self, action: np.ndarray) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Acts and draws what came of it."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        return self._look(), float(reward), terminated, truncated, {**info, "state_observation": observation}

    def _look(self) -> Any:
        unwrapped = self.env.unwrapped
        assert isinstance(unwrapped, SuiteEnv)
        frame = unwrapped.render()
        if not self._target:
            return frame
        return {"frame": frame, "target": target_position(unwrapped.physics).astype(np.float32)}


def frames_at(env: SuiteEnv, latents: np.ndarray) -> np.ndarray:
    """Draw the frames of latents (..., n), at rest: (..., H, W, 3) uint8."""
    qpos = env.latent_spec.to_qpos(latents, env.physics.data.qpos)
    frames = env.renderer.render_poses(qpos.reshape(-1, qpos.shape[-1]), env.physics.data.ptr)
    return frames.reshape(*latents.shape[:-1], *frames.shape[1:])
