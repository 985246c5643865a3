"""What an agent observes, and how its policy takes it."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import gymnasium as gym
import numpy as np
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import DummyVecEnv, VecEnv, VecFrameStack

from worldmodel.agents import EmbeddingVecEnv, EncoderFeatures
from worldmodel.agents.standardised import standardise
from worldmodel.encoders.encoder import Encoder
from worldmodel.envs import make
from worldmodel.scripts.agent_training.encoder import Sight
from worldmodel.scripts.agent_training.options import Observation, TrainAgentOptions

_LOOKED_AT = 500  # steps of uniform actions before training, that vectors are standardised by


@dataclass(frozen=True)
class Inputs:
    """Environments of an agent, and its policy.

    Attributes:
        make_envs: makes that many environments, each with a Monitor.
        policy: SB3's name of the policy.
        policy_options: SB3's ``policy_kwargs``.
    """

    make_envs: Callable[[int], VecEnv]
    policy: str
    policy_options: dict[str, Any]


def agent_inputs(options: TrainAgentOptions, obs: Observation, sight: Sight | None) -> Inputs:
    """Return what the options ask for; ``sight`` is the encoder of embeddings and features."""
    encoder = None if sight is None else Encoder.load(sight.folder).freeze()
    make_envs = partial(_environments, options, obs, encoder)
    if obs in ("state", "embedding"):
        envs = make_envs(options.envs)
        policy_options = standardise(envs, _LOOKED_AT, seed=0)
        envs.close()
        return Inputs(make_envs, "MlpPolicy", policy_options)
    policy = "MultiInputPolicy" if options.goal == "beside" else "CnnPolicy"
    if sight is None:
        return Inputs(make_envs, policy, {})
    features = {
        "features_extractor_class": EncoderFeatures,
        "features_extractor_kwargs": {"encoder": str(sight.folder)},
    }
    return Inputs(make_envs, policy, {**features, "share_features_extractor": True})


def make_env(
    options: TrainAgentOptions, obs: Observation, frame_size: tuple[int, int] | None = None
) -> gym.Env[Any, np.ndarray]:
    """Make one environment that observes the state, or frames."""
    if obs == "state":
        return Monitor(make(options.env, frame_skip=options.frame_skip))
    height, width = frame_size or (options.size, options.size)
    env = make(
        options.env,
        pixels=True,
        target=options.goal == "beside",
        show_target=options.goal == "picture",
        frame_skip=options.frame_skip,
        height=height,
        width=width,
    )
    return Monitor(env)


def _environments(options: TrainAgentOptions, obs: Observation, encoder: Encoder | None, count: int) -> VecEnv:
    envs: VecEnv = DummyVecEnv([partial(make_env, options, obs, encoder.frame_size if encoder else None)] * count)
    if obs == "embedding":
        assert encoder is not None
        return EmbeddingVecEnv(envs, encoder, options.history)
    if obs in ("pixels", "features") and options.history > 1:
        return VecFrameStack(envs, options.history)
    return envs
