"""Tracking through the actuators of the real simulator."""

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import scipy.stats

from worldmodel.agents import ActionOU, TrackingOU, begin, collect, tracking
from worldmodel.agents.policies import DrivingExplorer, EnvironmentExplorer
from worldmodel.agents.tracking import Drive, Reference
from worldmodel.envs import SuiteEnv, make


def suite(task: str, frame_skip: int = 2) -> SuiteEnv:
    env = make(task, frame_skip=frame_skip).unwrapped
    assert isinstance(env, SuiteEnv)
    env.reset(seed=0)
    return env


@pytest.fixture(params=["reacher", "point_mass"])
def env(request: pytest.FixtureRequest) -> Iterator[SuiteEnv]:
    env = suite(request.param)
    yield env
    env.close()


def drive(
    explorer: DrivingExplorer | EnvironmentExplorer, env: SuiteEnv, episodes: int, steps: int, seed: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Return latents (episodes, steps, n) and actions."""
    rng = np.random.default_rng(seed)
    latents, actions = [], []
    for _ in range(episodes):
        policy, observation = begin(explorer, env, env.reset()[0], rng)
        for _ in range(steps):
            latents.append(env.latent_spec.to_latents(env.physics.data.qpos))
            actions.append(policy(observation))
            observation = env.step(actions[-1])[0]
    return np.reshape(latents, (episodes, steps, -1)), np.reshape(actions, (episodes, steps, -1))


def test_the_reference_has_the_covariance_of_a_matern_process_at_any_step() -> None:
    omega, dt, std = 2.0, 0.3, 1.5
    reference = Reference(100_000, omega, std, dt, np.random.default_rng(0))
    start = reference.z
    assert start.std() == pytest.approx(std, rel=0.02)
    assert reference.rate.std() == pytest.approx(std * omega / np.sqrt(3), rel=0.02)
    for step in (1, 2, 3):
        reference.step()
        t = omega * dt * step
        assert reference.z.std() == pytest.approx(std, rel=0.02)
        assert np.corrcoef(start, reference.z)[0, 1] == pytest.approx((1 + t + t**2 / 3) * np.exp(-t), abs=0.01)


def test_after_the_correlation_time_the_correlation_is_one_over_e() -> None:
    t = tracking._E_FOLD
    assert (1 + t + t**2 / 3) * np.exp(-t) == pytest.approx(np.exp(-1), abs=1e-4)


def test_the_chosen_pace_asks_for_actions_of_a_third_of_full_force() -> None:
    plant = Drive(np.eye(1) * 0.2, np.eye(1) * 0.5, np.eye(1), bandwidth=1.0, dofs=(0,))
    omega = plant.pace(std=0.4)
    reference, dt = Reference(50_000, omega, 0.4, 1e-3 / omega, np.random.default_rng(0)), 1e-3 / omega
    before = reference.rate
    reference.step()
    force = 0.2 * (reference.rate - before) / dt + 0.5 * before
    assert force.std() == pytest.approx(1 / 3, rel=0.02)


def test_latents_are_close_to_an_isotropic_gaussian_unlike_those_of_action_noise(env: SuiteEnv) -> None:
    latents, actions = drive(TrackingOU(), env, 100, 8)
    noisy, _ = drive(ActionOU(), env, 100, 8)
    flat = latents.reshape(-1, 2)
    np.testing.assert_allclose(flat.std(0), 1.0, atol=0.25)
    assert np.abs(flat.mean(0)).max() < 0.3 and abs(np.corrcoef(flat.T)[0, 1]) < 0.25
    kurtosis, noise_kurtosis = (np.abs(scipy.stats.kurtosis(x.reshape(-1, 2))).max() for x in (latents, noisy))
    assert kurtosis < 0.6 * noise_kurtosis and noisy.reshape(-1, 2).std(0).min() > 1.5
    assert actions.dtype == np.float32 and np.abs(actions).max() <= 1


@pytest.mark.parametrize("frame_skip", [1, 2, 4])
def test_latents_follow_the_reference_whatever_the_step(frame_skip: int) -> None:
    for task in ("reacher", "point_mass"):
        env = suite(task, frame_skip)
        latents, _ = drive(TrackingOU(), env, 1, 200 // frame_skip, seed=3)
        plant = Drive.of(env)
        reference = Reference(plant.latents, plant.pace(1.0), 1.0, env.dt, np.random.default_rng(3))
        errors = []
        for z in latents[0]:
            errors.append(z - reference.z)
            reference.step()
        caught_up = errors[50 // frame_skip :]  # it starts from rest
        assert np.sqrt(np.mean(np.square(caught_up), axis=0)).max() < 0.1, task
        env.close()


def test_one_generator_gives_one_episode(env: SuiteEnv) -> None:
    explorer = TrackingOU(correlation_time=1.0, std=0.5)
    episodes = []
    for _ in range(2):
        env.reset(seed=7)
        episodes.append(drive(explorer, env, 1, 10)[1])
    np.testing.assert_array_equal(*episodes)
    assert not np.array_equal(episodes[0], drive(explorer, env, 1, 10, seed=1)[1])


@pytest.mark.parametrize(
    "task, names",
    [("cartpole", "hinge_1"), ("acrobot", "shoulder"), ("cheetah", "rootz, rooty"), ("ball_in_cup", "ball_x, ball_z")],
)
def test_latents_without_an_actuator_are_named(task: str, names: str) -> None:
    env = suite(task)
    with pytest.raises(ValueError, match=f"without an actuator of their own, {names}:"):
        begin(TrackingOU(), env, np.zeros(1), np.random.default_rng(0))
    env.close()


def test_a_pose_that_the_actuators_cannot_hold_is_an_error() -> None:
    env = suite("pendulum")
    with pytest.raises(ValueError, match="do not bring hinge"):
        begin(TrackingOU(), env, env.reset(seed=0)[0], np.random.default_rng(0))
    env.close()


@pytest.mark.parametrize("options", [{"std": 0.0}, {"correlation_time": 0.0}])
def test_what_is_not_positive_is_refused(options: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="positive"):
        TrackingOU(**options)


def test_collected_episodes_start_where_the_reference_does_and_replay(tmp_path: Path) -> None:
    data = collect("reacher", TrackingOU(), 24, tmp_path, length=12, frame_skip=2, progress=False)
    assert data.card.explorer == "TrackingOU(correlation_time=None, std=1.0)" and len(data) == 2
    env = suite("reacher")
    episode = data.episode(1)
    env.set_state(episode.states[0])
    for action, state in zip(episode.actions, episode.states[1:], strict=True):
        env.step(action)
        np.testing.assert_allclose(env.state(), state, atol=1e-5)
    env.close()


def test_episodes_within_bounds_that_the_start_lies_outside_of_are_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.modules["worldmodel.agents.collection"], "_CONFINED_FRAMES", 20)
    data = collect("reacher", TrackingOU(), 12, tmp_path, within=1.0, length=6, progress=False)
    assert np.abs(data.latents).max() <= 1
