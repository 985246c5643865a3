import numpy as np
import pytest

from worldmodel.envs import SuiteEnv
from worldmodel.envs.goals import Tolerance, reached, sample_tasks
from worldmodel.envs.latents import LatentSpec


@pytest.fixture(scope="module")
def spec() -> LatentSpec:
    return SuiteEnv("reacher", "hard").latent_spec


def test_poses_a_full_turn_apart_are_the_same(spec: LatentSpec) -> None:
    turn = 2 * np.pi / spec.scales[0]
    assert reached(spec, np.array([turn + 0.01, 0.0]), np.zeros(2))
    assert not reached(spec, np.array([turn / 2, 0.0]), np.zeros(2))


def test_every_joint_has_to_arrive(spec: LatentSpec) -> None:
    near, far = 0.04 / spec.scales, 0.06 / spec.scales
    latents = np.array([near, [near[0], far[1]], [far[0], near[1]]])
    assert reached(spec, latents, np.zeros(2)).tolist() == [True, False, False]


def test_starts_that_meet_their_goal_are_left_out_and_counted(spec: LatentSpec) -> None:
    wide = Tolerance(angle=0.7)
    tasks = sample_tasks(spec, 200, np.random.default_rng(0), wide)
    assert len(tasks) == 200 and tasks.excluded > 10
    assert not reached(spec, tasks.start, tasks.goal, wide).any()


def test_the_same_generator_gives_the_same_tasks(spec: LatentSpec) -> None:
    one, two = (sample_tasks(spec, 5, np.random.default_rng(1)) for _ in range(2))
    np.testing.assert_array_equal(one.goal, two.goal)


def test_a_tolerance_that_every_start_meets_ends_in_an_error(spec: LatentSpec) -> None:
    with pytest.raises(ValueError, match="too wide"):
        sample_tasks(spec, 1, np.random.default_rng(0), Tolerance(angle=10.0))


def test_no_task_is_no_experiment(spec: LatentSpec) -> None:
    with pytest.raises(ValueError, match="at least 1"):
        sample_tasks(spec, 0, np.random.default_rng(0))
