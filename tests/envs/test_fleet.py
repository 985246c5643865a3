import numpy as np
import pytest

from worldmodel.envs import SuiteEnv
from worldmodel.envs.fleet import Fleet


@pytest.mark.parametrize("domain, task", [("reacher", "easy"), ("cartpole", "balance"), ("ball_in_cup", "catch")])
def test_side_by_side_goes_as_one_by_one(domain: str, task: str) -> None:
    env = SuiteEnv(domain, task, frame_skip=2)
    rng = np.random.default_rng(0)
    starts, actions = 0.5 * rng.standard_normal((3, env.latent_spec.n)), rng.uniform(-1, 1, (10, 3, env.num_actions))
    fleet = Fleet(env)
    fleet.reset(starts, seeds=[5, 6, 7])
    together = [(fleet.step(a), fleet.latents(), fleet.frames()) for a in actions]
    for lane in range(3):
        alone = SuiteEnv(domain, task, frame_skip=2)
        alone.reset(seed=5 + lane, options={"latents": starts[lane]})
        for step, a in enumerate(actions):
            reward = alone.step(a[lane])[1]
            assert reward == together[step][0][lane]
            np.testing.assert_array_equal(alone.latents(), together[step][1][lane].astype(np.float32))
        assert np.abs(alone.render().astype(int) - together[-1][2][lane]).max() <= 2
        alone.close()
    env.close()


def test_an_episode_that_ends_stays_where_it_is() -> None:
    env = SuiteEnv("cartpole", "balance", frame_skip=400)  # two and a half steps to the time limit
    fleet = Fleet(env)
    fleet.reset(np.zeros((2, 2)))
    for _ in range(3):
        assert not fleet.over.any()
        fleet.step(np.full((2, 1), 0.5))
    assert fleet.over.all()
    before = fleet.qpos
    assert fleet.step(np.ones((2, 1))).tolist() == [0.0, 0.0]
    np.testing.assert_array_equal(fleet.qpos, before)
    with pytest.raises(ValueError, match="3 actions for 2"):
        fleet.step(np.zeros((3, 1)))
    env.close()
