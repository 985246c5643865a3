"""Vectors in units of their spread, inside a policy."""

import numpy as np
import torch
from stable_baselines3 import SAC
from stable_baselines3.common.vec_env import DummyVecEnv

from worldmodel.agents.standardised import StandardisedFeatures, standardise
from worldmodel.envs import make


def test_a_policy_sees_vectors_in_units_of_their_spread_and_takes_that_along() -> None:
    envs = DummyVecEnv([lambda: make("reacher-easy", frame_skip=10)] * 2)
    options = standardise(envs, 100, seed=0)
    assert options == standardise(envs, 100, seed=0)
    agent = SAC("MlpPolicy", envs, buffer_size=10, policy_kwargs={**options, "net_arch": [8]}, device="cpu")
    (actor, critic, target) = (m for m in agent.policy.modules() if isinstance(m, StandardisedFeatures))
    envs.seed(0)
    seen = [envs.reset()]
    rng = np.random.default_rng(0)
    seen += [envs.step(rng.uniform(-1, 1, (2, 2)).astype(np.float32))[0] for _ in range(50)]
    values = actor(torch.tensor(np.concatenate(seen)))
    np.testing.assert_allclose(values.mean(0), 0, atol=0.2)
    np.testing.assert_allclose(values.std(0), 1, atol=0.1)
    assert torch.equal(critic.std, target.std)
    envs.close()


def test_what_never_moves_stays_finite() -> None:
    space = make("reacher-easy").observation_space
    features = StandardisedFeatures(space, [0.0] * 6, [1.0] * 5 + [1e-2])
    assert torch.isfinite(features(torch.full((1, 6), 1e6))).all() and features(torch.full((1, 6), 1e6)).max() == 10
