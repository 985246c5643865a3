"""A planner that explores."""

import pickle

import numpy as np
import pytest

from worldmodel.agents import ActionOU, begin, collect
from worldmodel.dynamics.world_model import WorldModel
from worldmodel.envs import SuiteEnv, make
from worldmodel.planners import GoalSeeker
from worldmodel.planners.oracle import oracle_world, true_trajectories


@pytest.fixture(scope="module")
def arm() -> SuiteEnv:
    env = make("reacher", frame_skip=2).unwrapped
    assert isinstance(env, SuiteEnv)
    return env


@pytest.fixture(scope="module")
def world(arm: SuiteEnv, tmp_path_factory: pytest.TempPathFactory) -> WorldModel:
    out = tmp_path_factory.mktemp("data") / "driven"
    data = collect("reacher", ActionOU(), 1_500, out, within=2.5, frame_skip=2, height=16, width=16, progress=False)
    return oracle_world(arm.latent_spec, true_trajectories(data.train), true_trajectories(data.selection))


def follow(env: SuiteEnv, seeker: GoalSeeker, steps: int, seed: int) -> np.ndarray:
    observation, _ = env.reset(seed=0, options={"latents": np.zeros(2)})
    policy, observation = begin(seeker, env, observation, np.random.default_rng(seed))
    path = [env.latents()]
    for _ in range(steps):
        observation, *_ = env.step(policy(observation))
        path.append(env.latents())
    return np.array(path)


def test_it_rests_at_one_goal_after_another(arm: SuiteEnv, world: WorldModel) -> None:
    path = follow(arm, GoalSeeker("lqr", world, arm.dt, seconds=2.0), steps=100, seed=3)
    first, second = path[45:50], path[95:100]  # before the next goal is set
    for rest in (first, second):
        assert np.ptp(rest, axis=0).max() < 0.05
    assert np.abs(first.mean(0) - second.mean(0)).max() > 0.2


def test_actions_last_as_long_as_in_the_world_it_knows(world: WorldModel) -> None:
    env = make("reacher").unwrapped
    assert isinstance(env, SuiteEnv)
    observation, _ = env.reset(seed=0)
    policy, observation = begin(GoalSeeker("lqr", world, 0.04), env, observation, np.random.default_rng(0))
    actions = []
    for _ in range(10):
        actions.append(policy(observation))
        observation, *_ = env.step(actions[-1])
    assert all(np.array_equal(*actions[index : index + 2]) for index in range(0, 10, 2))
    assert not np.array_equal(actions[1], actions[2])


def test_the_same_generator_gives_the_same_goals(arm: SuiteEnv, world: WorldModel) -> None:
    seeker = GoalSeeker("lqr", world, arm.dt)
    copy = pickle.loads(pickle.dumps(seeker))
    assert repr(copy) == repr(seeker) and copy == seeker
    assert np.array_equal(follow(arm, seeker, 60, seed=1), follow(arm, copy, 60, seed=1))
    assert not np.array_equal(follow(arm, seeker, 60, seed=1), follow(arm, seeker, 60, seed=2))


def test_times_have_to_be_positive(world: WorldModel) -> None:
    with pytest.raises(ValueError, match="positive"):
        GoalSeeker("lqr", world, period=0.0)
