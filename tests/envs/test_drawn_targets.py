"""Targets in the picture: hidden, shown, beside the frame, or latents."""

from pathlib import Path

import numpy as np
import pytest

from worldmodel.agents import LatentOU, collect
from worldmodel.envs import SuiteEnv, make


def suite(**options: object) -> SuiteEnv:
    env = make("reacher-easy", height=32, width=32, **options).unwrapped
    assert isinstance(env, SuiteEnv)
    return env


def test_a_target_on_joints_looks_and_pays_like_the_task_s_own() -> None:
    own, joints = suite(show_target=True), suite(show_target="latent")
    for seed in range(2):
        own.reset(seed=seed), joints.reset(seed=seed)
        np.testing.assert_array_equal(own.render(), joints.render())
        rewards = []
        for action in np.random.default_rng(seed).uniform(-1, 1, (30, 2)):
            rewards.append([env.step(action)[1] for env in (own, joints)])
        np.testing.assert_array_equal(own.render(), joints.render())
        assert all(one == two for one, two in rewards)
        np.testing.assert_allclose(own.latents(), joints.latents()[:2], atol=1e-6)
    own.close(), joints.close()


def test_the_latents_of_a_target_are_where_it_is() -> None:
    env = suite(show_target="latent")
    assert env.latent_spec.names == ("shoulder", "wrist", "target_x", "target_y")
    env.reset(seed=1)
    np.testing.assert_allclose(env.latents()[2:] * 0.09, env.physics.named.data.geom_xpos["target"][:2], atol=1e-6)
    env.reset(options={"latents": [0.0, 0.5, 1.0, -2.0]})
    np.testing.assert_allclose(env.physics.named.data.geom_xpos["target"][:2], [0.09, -0.18], atol=1e-6)
    assert env.latents().tolist() == [0.0, 0.5, 1.0, -2.0]
    env.close()


def test_posed_data_move_the_target_from_frame_to_frame(tmp_path: Path) -> None:
    options = {"show_target": "latent", "height": 32, "width": 32}
    data = collect("reacher-easy", LatentOU(0.5), 60, tmp_path, length=20, progress=False, **options)
    assert data.card.latent_names == ("shoulder", "wrist", "target_x", "target_y") and data.latents.shape == (60, 4)
    red = data.frames[..., 0].astype(int) - data.frames[..., 2] > 40  # the target, and a little of the arm
    columns = (red * np.arange(32)).sum((1, 2)) / red.sum((1, 2))
    assert np.corrcoef(columns, data.latents[:, 2])[0, 1] > 0.9


def test_a_target_stands_beside_the_frame_in_numbers() -> None:
    env = make("reacher-easy", pixels=True, target=True, height=32, width=32)
    observation, _ = env.reset(seed=0)
    assert env.observation_space.contains(observation)
    place = env.unwrapped.physics.named.data.geom_xpos["target"]  # type: ignore[attr-defined]
    np.testing.assert_allclose(observation["target"], place, atol=1e-6)
    plain = make("reacher-easy", pixels=True, height=32, width=32)
    np.testing.assert_array_equal(plain.reset(seed=0)[0], observation["frame"])  # where it stays hidden
    env.close(), plain.close()


def test_a_task_without_a_target_says_so() -> None:
    with pytest.raises(ValueError, match="draws no target"):
        make("cartpole", pixels=True, target=True)
    with pytest.raises(ValueError, match="cartpole has no target in the plane"):
        make("cartpole", show_target="latent")
