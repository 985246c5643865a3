import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from stable_baselines3.common.env_checker import check_env as check_env_sb3

from worldmodel.envs.pixels import PixelObservation
from worldmodel.envs.registration import make
from worldmodel.envs.suite import SuiteEnv


def test_observations_are_uint8_frames_of_the_size_asked_for() -> None:
    env = make("reacher", pixels=True, height=48, width=80)
    frame = env.reset(seed=0)[0]
    assert env.observation_space == gym.spaces.Box(0, 255, (48, 80, 3), np.uint8)
    assert env.observation_space.contains(frame)
    assert env.observation_space.contains(env.step(env.action_space.sample())[0])
    env.close()


@pytest.mark.parametrize("options", [None, {"latents": [1.0, -0.5]}])
def test_the_frame_of_a_reset_is_what_render_shows(options: dict | None) -> None:
    env = make("reacher", pixels=True)
    for seed in (0, None):
        frame = env.reset(seed=seed, options=options)[0]
        assert np.array_equal(frame, env.render())
    env.close()


def test_the_frame_of_a_step_is_what_render_shows() -> None:
    env = make("cheetah", pixels=True)
    before = env.reset(seed=0)[0]
    frame = env.step(np.ones(6, np.float32))[0]
    assert np.array_equal(frame, env.render())
    assert not np.array_equal(frame, before)
    env.close()


def test_info_keeps_what_the_task_observes() -> None:
    pixels, plain = make("walker", pixels=True), make("walker")
    assert np.array_equal(pixels.reset(seed=4)[1]["state_observation"], plain.reset(seed=4)[0])
    action = np.full(6, 0.5, np.float32)
    assert np.array_equal(pixels.step(action)[4]["state_observation"], plain.step(action)[0])
    pixels.close()


def test_it_passes_the_checkers_of_gymnasium_and_sb3() -> None:
    env = make("reacher", pixels=True, render_mode="rgb_array")
    check_env(env, skip_render_check=True)
    check_env_sb3(env)
    env.close()


def test_environments_of_one_vector_env_show_their_own_frames() -> None:
    envs = gym.vector.SyncVectorEnv([lambda: PixelObservation(SuiteEnv("reacher", "hard"))] * 2)
    frames = envs.reset(seed=0)[0]
    assert frames.shape == (2, 64, 64, 3)
    assert not np.array_equal(*frames)
    envs.close()


def test_another_kind_of_environment_is_refused() -> None:
    with pytest.raises(ValueError, match="takes a SuiteEnv, not CartPoleEnv"):
        PixelObservation(gym.make("CartPole-v1"))
