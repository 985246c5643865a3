"""Observations brought to one scale inside the policy, so that a saved model takes them as they come."""

from collections.abc import Sequence
from typing import Any

import gymnasium as gym
import numpy as np
import torch
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from stable_baselines3.common.vec_env import VecEnv
from torch import Tensor

_RARE = 1e-3  # a smaller deviation, in units of the observation, is taken for none
_WIDEST = 10.0  # standard deviations, beyond which an observation is cut off


class StandardisedFeatures(BaseFeaturesExtractor):
    """Takes vectors (n,) in units of their spread, (x - mean) / std.

    An entry of ±0.1 m beside another of ±10 rad/s is hard to learn from. SB3's ``VecNormalize``
    keeps the numbers beside the model instead of in it.

    Args:
        observation_space: of the vectors.
        mean: (n,).
        std: (n,).
    """

    mean: Tensor
    std: Tensor

    def __init__(self, observation_space: gym.Space[Any], mean: Sequence[float], std: Sequence[float]) -> None:
        super().__init__(observation_space, len(mean))
        self.register_buffer("mean", torch.tensor(mean, dtype=torch.float32))
        self.register_buffer("std", torch.tensor(std, dtype=torch.float32))

    def forward(self, observations: Tensor) -> Tensor:
        """Return (B, n)."""
        return ((observations - self.mean) / self.std).clamp(-_WIDEST, _WIDEST)


def standardise(envs: VecEnv, steps: int, seed: int) -> dict[str, Any]:
    """Return the ``policy_kwargs`` of :class:`StandardisedFeatures`, measured on uniform actions.

    Args:
        envs: environments that observe vectors.
        steps: environment steps, all environments together.
        seed: of episodes and actions.
    """
    rng = np.random.default_rng(seed)
    envs.seed(seed)
    seen = [np.asarray(envs.reset())]
    for _ in range(steps // envs.num_envs):
        actions = rng.uniform(-1, 1, (envs.num_envs, *(envs.action_space.shape or ()))).astype(np.float32)
        seen.append(np.asarray(envs.step(actions)[0]))
    values = np.concatenate(seen)
    std = values.std(0)
    kwargs = {"mean": values.mean(0).tolist(), "std": np.where(std < _RARE, 1.0, std).tolist()}
    return {"features_extractor_class": StandardisedFeatures, "features_extractor_kwargs": kwargs}
