import gymnasium as gym
import pytest
from dm_control import suite

from worldmodel.envs.registration import DEFAULT_TASKS, env_id, make, task_names
from worldmodel.envs.suite import SuiteEnv


def test_every_task_of_the_suite_is_registered_without_a_second_time_limit() -> None:
    specs = [gym.spec(f"worldmodel/{domain}-{task}-v0") for domain, task in suite.ALL_TASKS]
    assert len(specs) == len(task_names())
    assert all(spec.max_episode_steps is None for spec in specs)


def test_every_domain_has_a_default_task() -> None:
    assert set(DEFAULT_TASKS) == set(suite.TASKS_BY_DOMAIN)
    assert set(DEFAULT_TASKS.items()) <= set(suite.ALL_TASKS)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("reacher", "worldmodel/reacher-hard-v0"),
        ("reacher-easy", "worldmodel/reacher-easy-v0"),
        ("worldmodel/humanoid_CMU-run-v0", "worldmodel/humanoid_CMU-run-v0"),
    ],
)
def test_a_domain_a_task_and_an_id_are_names(name: str, expected: str) -> None:
    assert env_id(name) == expected


@pytest.mark.parametrize(
    ("name", "nearest"),
    [("reachr", "reacher"), ("cartpole-swing", "cartpole-swingup"), ("worldmodel/cheeta-v0", "cheetah")],
)
def test_a_typing_error_is_answered_with_the_nearest_names(name: str, nearest: str) -> None:
    with pytest.raises(ValueError, match=f"unknown environment '{name}'; nearest: .*{nearest}"):
        env_id(name)


def test_a_name_like_no_other_is_answered_with_all_domains() -> None:
    with pytest.raises(ValueError, match="there are: acrobot, ball_in_cup"):
        env_id("zzzz")


def test_gymnasium_makes_the_environment_itself() -> None:
    env = gym.make("worldmodel/cartpole-swingup-v0", frame_skip=2)
    assert isinstance(env, SuiteEnv)
    assert (env.domain, env.task, env.frame_skip) == ("cartpole", "swingup", 2)


def test_a_misspelt_option_is_refused() -> None:
    with pytest.raises(TypeError, match="frameskip"):
        make("reacher", frameskip=2)
