import numpy as np
import pytest

from worldmodel.envs import SuiteEnv
from worldmodel.envs.targets import target_tasks


def test_the_pose_of_a_target_earns_the_suite_s_reward() -> None:
    env = SuiteEnv("reacher", "hard")
    targets = target_tasks(env, 4, within=2.5, seed=1)
    for goal, seed in zip(targets.tasks.goal, targets.seeds, strict=True):
        env.reset(seed=int(seed), options={"latents": goal})
        assert env.physics.finger_to_target_dist() < 1e-4
        assert env.step(np.zeros(2))[1] == 1.0
    assert np.abs(targets.tasks.goal).max() <= 2.5 and targets.tasks.excluded > 0
    again = target_tasks(env, 4, within=2.5, seed=1)
    np.testing.assert_array_equal(again.tasks.goal, targets.tasks.goal)
    env.close()


def test_only_arms_have_targets() -> None:
    env = SuiteEnv("cartpole", "balance")
    with pytest.raises(ValueError, match="no arm"):
        target_tasks(env, 1, within=2.5)
    env.close()
