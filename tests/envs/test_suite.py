import copy
import pickle
import warnings

import gymnasium as gym
import numpy as np
import pytest
from dm_control import suite
from gymnasium.error import ResetNeeded
from gymnasium.utils.env_checker import check_env
from shimmy.dm_control_compatibility import DmControlCompatibilityV0
from stable_baselines3.common.env_checker import check_env as check_env_sb3

from worldmodel.envs.registration import DEFAULT_TASKS, make
from worldmodel.envs.suite import UNBOUNDED, SuiteEnv

ONE_PER_DOMAIN = list(DEFAULT_TASKS.items())


def suite_env(domain: str, task: str, **options: object) -> SuiteEnv:
    bound = {"action_bound": 1.0} if f"{domain}-{task}" in UNBOUNDED else {}
    return SuiteEnv(domain, task, **bound, **options)  # type: ignore[arg-type]


def run(env: SuiteEnv, steps: int, seed: int = 0) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [env.step(rng.uniform(-1, 1, env.action_space.shape))[0] for _ in range(steps)]


def passes_both_checkers(domain: str, task: str) -> None:
    env = suite_env(domain, task, render_mode="rgb_array")
    with warnings.catch_warnings():
        warnings.simplefilter("error", DeprecationWarning)
        warnings.filterwarnings("ignore", ".*infinity.*")
        check_env(env, skip_render_check=True)
        check_env_sb3(env, skip_render_check=True)
    env.close()


@pytest.mark.parametrize(("domain", "task"), ONE_PER_DOMAIN)
def test_every_domain_passes_the_checkers_of_gymnasium_and_sb3(domain: str, task: str) -> None:
    passes_both_checkers(domain, task)


@pytest.mark.slow
@pytest.mark.parametrize(("domain", "task"), suite.ALL_TASKS)
def test_every_task_passes_the_checkers_of_gymnasium_and_sb3(domain: str, task: str) -> None:
    passes_both_checkers(domain, task)


def test_the_render_check_passes_too() -> None:
    env = gym.make("worldmodel/reacher-hard-v0", render_mode="rgb_array")
    check_env(env.unwrapped)
    env.close()


def test_the_time_limit_truncates_and_does_not_terminate() -> None:
    env = SuiteEnv("reacher", "hard")
    env.reset(seed=0)
    ends = [env.step(np.zeros(2))[2:4] for _ in range(1000)]
    assert ends == [(False, False)] * 999 + [(False, True)]


def test_a_repeated_action_stops_where_the_episode_ends() -> None:
    env = SuiteEnv("pendulum", "swingup", frame_skip=3)
    env.reset(seed=0)
    ends = [env.step(np.zeros(1))[3] for _ in range(334)]
    assert ends == [False] * 333 + [True]
    assert env.physics.time() == pytest.approx(20.0)


def test_a_discount_of_zero_terminates() -> None:
    env = SuiteEnv("lqr", "lqr_2_1", action_bound=1.0)
    env.reset(seed=0)
    env.set_state(np.full(4, 1e-9))
    assert env.step(np.zeros(1))[2:4] == (True, False)


def test_nothing_resets_silently() -> None:
    env = SuiteEnv("lqr", "lqr_2_1", action_bound=1.0)
    with pytest.raises(ResetNeeded, match="lqr-lqr_2_1"):
        env.step(np.zeros(1))
    env.reset(seed=0)
    env.set_state(np.zeros(4))
    env.step(np.zeros(1))
    with pytest.raises(ResetNeeded, match=r"call reset\(\)"):
        env.step(np.zeros(1))


def test_the_reward_of_a_repeated_action_is_the_sum() -> None:
    once, thrice = SuiteEnv("walker", "walk"), SuiteEnv("walker", "walk", frame_skip=3)
    action = np.full(6, 0.3)
    once.reset(seed=1), thrice.reset(seed=1)
    single = [once.step(action) for _ in range(3)]
    observation, reward, *_ = thrice.step(action)
    assert reward == pytest.approx(sum(step[1] for step in single), rel=1e-14)  # 3.12 sums with compensation
    assert np.array_equal(observation, single[-1][0])


def test_observations_are_flat_float32_at_reset_and_step_scalars_included() -> None:
    env = SuiteEnv("walker", "walk")  # its height is a scalar
    first = env.reset(seed=0)[0]
    second = env.step(np.zeros(6))[0]
    assert first.shape == second.shape == env.observation_space.shape == (14 + 1 + 9,)
    assert first.dtype == second.dtype == env.observation_space.dtype == np.float32


def test_actions_of_one_reach_the_bounds_of_the_task() -> None:
    env = SuiteEnv("quadruped", "walk")
    env.reset(seed=0)
    for sign, bound in ((-1, 0), (1, 1)):
        env.step(np.full(12, sign, np.float32))
        assert np.allclose(env.physics.data.ctrl, env.model.actuator_ctrlrange[:, bound])


def test_unbounded_actions_are_refused_by_name() -> None:
    with pytest.raises(ValueError, match="lqr-lqr_6_2 are unbounded: give action_bound"):
        SuiteEnv("lqr", "lqr_6_2")
    with pytest.raises(ValueError, match="has action bounds of its own"):
        SuiteEnv("reacher", "hard", action_bound=2.0)
    assert set(UNBOUNDED) == {f"lqr-{task}" for domain, task in suite.ALL_TASKS if domain == "lqr"}


@pytest.mark.parametrize(("domain", "task"), [("reacher", "hard"), ("cheetah", "run"), ("lqr", "lqr_6_2")])
def test_a_seed_fixes_its_episode_and_the_unseeded_ones_after_it(domain: str, task: str) -> None:
    def episodes(env: SuiteEnv) -> np.ndarray:
        return np.concatenate([np.stack([env.reset(seed=seed)[0], *run(env, 20)]) for seed in (7, None, None)])

    env = suite_env(domain, task)
    env.reset()
    first = episodes(env)
    assert np.array_equal(first, episodes(env))
    assert np.array_equal(first, episodes(suite_env(domain, task)))
    assert not np.array_equal(first[:21], first[21:42])
    assert not np.array_equal(first[0], env.reset(seed=8)[0])


def test_seeds_beyond_32_bits_are_taken() -> None:
    env = SuiteEnv("reacher", "hard")
    assert np.array_equal(env.reset(seed=2**40)[0], env.reset(seed=2**40)[0])


def test_unseeded_environments_differ() -> None:
    a, b = SuiteEnv("reacher", "hard"), SuiteEnv("reacher", "hard")
    assert not np.array_equal(a.reset()[0], b.reset()[0])


def test_environments_of_one_vector_env_start_differently_and_reproducibly() -> None:
    envs = gym.make_vec("worldmodel/reacher-hard-v0", num_envs=3, vectorization_mode="sync")
    first, again = envs.reset(seed=0)[0], envs.reset(seed=0)[0]
    assert len(np.unique(first, axis=0)) == 3
    assert np.array_equal(first, again)
    envs.close()


def test_the_frame_rate_is_that_of_the_instance() -> None:
    shimmy_rate = DmControlCompatibilityV0.metadata["render_fps"]
    slow, fast = SuiteEnv("reacher", "hard", frame_skip=2), SuiteEnv("cheetah", "run")
    assert (slow.metadata["render_fps"], fast.metadata["render_fps"]) == (25, 100)
    assert (slow.dt, fast.dt) == (pytest.approx(0.04), pytest.approx(0.01))
    assert "render_fps" not in SuiteEnv.metadata
    assert DmControlCompatibilityV0.metadata["render_fps"] == shimmy_rate


def test_a_state_set_by_hand_is_what_is_observed_and_drawn() -> None:
    env = SuiteEnv("reacher", "hard")
    env.reset(seed=0)
    state = np.array([0.5, -1.0, 0.2, 0.1])
    env.set_state(state)
    finger = 0.12 * np.exp(0.5j) + 0.12 * np.exp(-0.5j)
    assert np.array_equal(env.state(), state)
    assert env.physics.named.data.geom_xpos["finger", :2] == pytest.approx([finger.real, finger.imag])
    fresh = SuiteEnv("reacher", "hard")
    fresh.reset(seed=0)
    fresh.set_state(state)
    assert np.array_equal(env.render(), fresh.render())


def test_the_same_state_has_the_same_future() -> None:
    env = SuiteEnv("walker", "walk")
    env.reset(seed=0)
    run(env, 20)
    state = env.state()
    futures = []
    for disturbance in (5, 30):
        run(env, disturbance, seed=disturbance)
        env.set_state(state)
        futures.append(np.stack(run(env, 20, seed=2)))
    assert np.array_equal(*futures)


def test_two_environments_drawn_in_turn_keep_their_own_frame() -> None:
    a, b = SuiteEnv("reacher", "hard"), SuiteEnv("cartpole", "balance", height=32)
    a.reset(seed=0), b.reset(seed=0)
    frames = [a.render(), b.render()]
    assert np.array_equal(a.render(), frames[0])
    assert np.array_equal(b.render(), frames[1])
    a.close()
    assert np.array_equal(b.render(), frames[1])
    b.close()


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))])
def test_a_copy_draws_the_same_frame_and_goes_its_own_way(duplicate) -> None:
    env = SuiteEnv("reacher", "hard", show_target=True)
    env.reset(seed=3)
    run(env, 5)
    twin = duplicate(env)
    frame = env.render()
    assert np.array_equal(twin.render(), frame)
    run(twin, 5)
    twin.reset()
    assert np.array_equal(env.render(), frame)
    alone = SuiteEnv("reacher", "hard")
    alone.reset(seed=3)
    assert np.array_equal(env.reset()[0], alone.reset()[0])
    env.close(), twin.close()


@pytest.mark.parametrize(
    ("domain", "task"),
    [(domain, task) for domain, task in ONE_PER_DOMAIN if domain not in ("humanoid_CMU", "stacker", "fish")],
)
def test_a_copy_goes_on_bit_for_bit(domain: str, task: str) -> None:
    env = suite_env(domain, task)
    env.reset(seed=3)
    run(env, 5)
    twin = copy.deepcopy(env)
    assert np.array_equal(run(env, 10), run(twin, 10))
    assert np.array_equal(env.reset()[0], twin.reset()[0])


def test_a_copy_keeps_the_time_left() -> None:
    env = SuiteEnv("pendulum", "swingup")
    env.reset(seed=0)
    run(env, 998)
    twin = copy.deepcopy(env)
    assert [twin.step(np.zeros(1))[3] for _ in range(2)] == [False, True]
    with pytest.raises(ResetNeeded):
        copy.deepcopy(twin).step(np.zeros(1))


def test_an_episode_can_start_at_given_latents_at_rest() -> None:
    env = SuiteEnv("walker", "walk")
    z = np.linspace(-1, 1, 8)
    observation, _ = env.reset(seed=0, options={"latents": z})
    assert env.latents() == pytest.approx(z, abs=1e-6)
    assert not env.physics.data.qvel.any()
    assert np.array_equal(observation, env._observe())


def test_latents_are_those_within_half_a_turn() -> None:
    env = SuiteEnv("pendulum", "swingup")
    env.reset(seed=0)
    env.set_state([0.7 + 6 * np.pi, 0.0])
    assert env.latents() == pytest.approx([1.0])


def test_latents_can_be_set_in_motion() -> None:
    env = SuiteEnv("reacher", "hard")
    env.set_latents([0.0, 1.0], velocity=[1.0, -2.0])
    shoulder, wrist = env.latent_spec.scales
    assert env.state() == pytest.approx([0.0, wrist, shoulder, -2 * wrist])


def test_the_target_is_hidden_unless_asked_for() -> None:
    hidden, shown = SuiteEnv("reacher", "easy"), SuiteEnv("reacher", "easy", show_target=True)
    frames = {}
    for name, env in (("hidden", hidden), ("shown", shown)):
        for seed in (0, 1):
            env.reset(seed=seed, options={"latents": [0.0, 1.0]})
            frames[name, seed] = env.render()
        env.close()
    assert np.array_equal(frames["hidden", 0], frames["hidden", 1])
    assert not np.array_equal(frames["shown", 0], frames["shown", 1])


@pytest.mark.slow
def test_a_new_terrain_is_drawn() -> None:
    env = SuiteEnv("quadruped", "escape")
    env.reset(seed=0)
    state, first = env.state(), env.render()
    env.reset(seed=1)
    env.set_state(state)
    assert not np.array_equal(first, env.render())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"frame_skip": 0}, "frame_skip is 0"),
        ({"width": 0}, "width is 0"),
        ({"camera": 9}, "no camera 9: take one of 0 to 1 \\(fixed, hand\\)"),
        ({"camera": "top"}, "no camera 'top'"),
        ({"render_mode": "human"}, "only 'rgb_array'"),
    ],
)
def test_options_out_of_range_are_refused(options: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        SuiteEnv("reacher", "hard", **options)


def test_actions_states_and_latents_that_do_not_fit_are_refused() -> None:
    env = SuiteEnv("reacher", "hard")
    env.reset(seed=0)
    for act, bad, message in (
        (env.step, np.zeros(3), r"takes \(2,\)"),
        (env.step, [np.nan, 0], "not all finite"),
        (env.set_state, np.zeros(3), r"takes \(4,\)"),
        (env.set_state, [0, 0, np.inf, 0], "not all finite"),
        (env.set_latents, np.zeros(3), r"takes \(2,\)"),
        (env.set_latents, [np.nan, 0], "not all finite"),
    ):
        with pytest.raises(ValueError, match=message):
            act(bad)
    with pytest.raises(ValueError, match="unknown reset options goal"):
        env.reset(options={"goal": 1})


def test_closing_twice_does_no_harm() -> None:
    env = make("reacher")
    env.reset(seed=0)
    env.render()
    env.close()
    env.close()
