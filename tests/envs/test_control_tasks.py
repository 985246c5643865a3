import numpy as np
import pytest

from worldmodel.envs import SuiteEnv
from worldmodel.envs.control_tasks import Held, Upright, control_goals, control_setting
from worldmodel.envs.goals import reached
from worldmodel.envs.latents import LatentSpec


@pytest.fixture(scope="module")
def reacher() -> LatentSpec:
    return SuiteEnv("reacher", "hard").latent_spec


@pytest.fixture(scope="module")
def cartpole() -> LatentSpec:
    return SuiteEnv("cartpole", "balance").latent_spec


def test_a_pose_counts_only_when_it_is_held_to_the_end(reacher: LatentSpec) -> None:
    goal, path = np.zeros((3, 2)), np.zeros((3, 101, 2))
    path[0, :90] = 1.0  # arrives
    path[1, 97, 1] = 0.2  # leaves once in the last 0.2 s
    path[2, 50] = 2.0  # leaves in the middle
    assert Held().solved(reacher, path, goal, dt=0.04).tolist() == [True, False, True]


def test_a_free_hinge_may_hold_the_goal_a_full_turn_away(reacher: LatentSpec) -> None:
    turn = np.array([2 * np.pi, 0.0]) / reacher.scales
    assert Held().solved(reacher, np.tile(turn, (1, 20, 1)), np.zeros((1, 2)), dt=0.04).all()


def test_upright_asks_for_the_hinge_at_every_moment_and_never_for_the_slider(cartpole: LatentSpec) -> None:
    path = np.zeros((2, 50, 2))
    path[:, :, 0] = 2.0
    path[1, 20, 1] = 0.6 / cartpole.scales[1]
    assert Upright().solved(cartpole, path, np.zeros((2, 2)), dt=0.02).tolist() == [True, False]


def test_poles_lean_at_the_start_and_stand_at_the_goal(cartpole: LatentSpec) -> None:
    tasks = control_goals(cartpole, 200, np.random.default_rng(0), lean=0.2)
    start, goal = (cartpole.to_qpos(z, np.zeros(2)) for z in (tasks.start, tasks.goal))
    assert np.abs(goal).max() == 0 and np.abs(start[:, 0]).max() == 0
    assert 0.15 < np.abs(start[:, 1]).max() <= 0.2


def test_arms_go_from_pose_to_pose(reacher: LatentSpec) -> None:
    tasks = control_goals(reacher, 20, np.random.default_rng(0))
    assert not reached(reacher, tasks.start, tasks.goal).any()


def test_an_action_lasts_about_the_period_of_its_domain(reacher: LatentSpec, cartpole: LatentSpec) -> None:
    assert control_setting(reacher).frame_skip(0.02) == 2
    assert control_setting(cartpole).frame_skip(0.01) == 2
    assert control_setting(reacher).frame_skip(0.1) == 1
