"""A planner as a policy: SB3 drives it, episodes are told apart, and what is executed is what it remembers."""

from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest
import torch
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.vec_env import DummyVecEnv

from worldmodel.agents import ActionOU, collect
from worldmodel.dynamics.world_model import WorldModel
from worldmodel.encoders.encoder import Encoder
from worldmodel.envs import SuiteEnv
from worldmodel.planners.catalogue import ControlOptions, planner_policy
from worldmodel.planners.lqr import LQR
from worldmodel.planners.oracle import fit_worlds, oracle_world, true_trajectories
from worldmodel.planners.policy import PlannerPolicy
from worldmodel.planners.straight_line import StraightLine


class Latents(gym.Wrapper):  # type: ignore[type-arg]
    """Observes the true latents."""

    def __init__(self, env: SuiteEnv) -> None:
        super().__init__(env)
        self.observation_space = gym.spaces.Box(-np.inf, np.inf, (env.latent_spec.n,), np.float32)

    def reset(self, **options):  # type: ignore[no-untyped-def]
        self.env.reset(seed=options.get("seed"), options={"latents": np.array([0.8, -0.5])})
        return self.env.latents(), {}

    def step(self, action):  # type: ignore[no-untyped-def]
        _, reward, terminated, truncated, info = self.env.step(action)
        return self.env.latents(), reward, terminated, truncated, info


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> WorldModel:
    folder = tmp_path_factory.mktemp("driven") / "data"
    data = collect("reacher", ActionOU(), 1_500, folder, within=2.5, frame_skip=2, height=16, width=16, progress=False)
    spec = SuiteEnv("reacher", "hard").latent_spec
    return oracle_world(spec, true_trajectories(data.train), true_trajectories(data.selection))


def test_sb3_evaluates_it_in_vector_environments(world: WorldModel) -> None:
    goal = np.array([-0.5, 0.6])
    ends: list[np.ndarray] = []

    def watch(where: dict, _: dict) -> None:  # type: ignore[type-arg]
        if where["dones"][where["i"]]:
            ends.append(where["infos"][where["i"]]["terminal_observation"])

    def make() -> gym.Env:  # type: ignore[type-arg]
        return gym.wrappers.TimeLimit(Latents(SuiteEnv("reacher", "hard", frame_skip=2)), 50)

    policy = planner_policy("mpc-qp", world, goal, 2, ControlOptions())
    evaluate_policy(policy, DummyVecEnv([make, make]), n_eval_episodes=4, callback=watch, warn=False)  # type: ignore[arg-type]
    assert len(ends) == 4
    np.testing.assert_allclose(ends, np.tile(goal, (4, 1)), atol=0.05)


def test_a_single_observation_gives_a_single_action(world: WorldModel) -> None:
    policy = planner_policy("lqr", world, np.zeros(2), 2, ControlOptions())
    action, memory = policy.predict(np.array([0.5, 0.5]))
    assert action.shape == (2,) and action.dtype == np.float32
    both, _ = policy.predict(np.array([[0.5, 0.5], [0.0, 0.0]]))
    np.testing.assert_array_equal(both[0], action)
    assert policy.predict(np.array([0.5, 0.5]), memory)[0].shape == (2,)


def test_an_episode_that_starts_forgets_the_one_before(world: WorldModel) -> None:
    policy = planner_policy("straight-line", world, np.ones(2), 2, ControlOptions(line_steps=5))
    start = np.array([[0.0, 0.0], [0.5, 0.0]])
    fresh, memory = policy.predict(start)
    for _ in range(3):
        _, memory = policy.predict(start + 0.1, memory)
    again, memory = policy.predict(start, memory, episode_start=np.array([True, False]))
    np.testing.assert_allclose(again[0], fresh[0], atol=1e-6)
    assert memory.step.tolist() == [1, 5] and np.abs(again[1] - fresh[1]).max() > 1e-3


def test_the_straight_line_is_followed_and_its_end_held(world: WorldModel) -> None:
    seen = []

    class Watch(LQR):
        def act(self, s: np.ndarray, references: np.ndarray, **options) -> np.ndarray:  # type: ignore[no-untyped-def]
            seen.append(references.copy())
            return super().act(s, references)

    here = np.zeros((1, 2))
    goal = np.array([1.0, -1.0])
    policy = PlannerPolicy(world.see, world.dynamics, Watch(world.linear), goal, StraightLine(2))
    memory = None
    for _ in range(4):
        _, memory = policy.predict(here, memory)
    there = world.dynamics.start(goal[None])[0, :2]
    np.testing.assert_allclose(seen[0][0, -1], there, atol=1e-9)
    np.testing.assert_allclose(seen[1], np.tile(there, (1, 2, 1)), atol=1e-9)
    np.testing.assert_allclose(seen[3], np.tile(there, (1, 2, 1)), atol=1e-9)


def test_frames_alone_are_enough(tmp_path: Path) -> None:
    data = collect("point_mass", ActionOU(), 600, tmp_path / "d", within=2.5, frame_skip=2, progress=False)
    env = SuiteEnv("point_mass", "easy", frame_skip=2)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        untrained = Encoder(dim=2)
    embedding, oracle = fit_worlds(untrained, data, env.latent_spec)
    env.reset(seed=0, options={"latents": np.array([0.5, 0.5])})
    goal = env.render()
    policy = planner_policy("lqr", embedding, goal, 2, ControlOptions())
    env.reset(seed=0)
    action, memory = policy.predict(env.render())
    for _ in range(3):
        env.step(action)
        action, memory = policy.predict(env.render(), memory)
        assert np.isfinite(action).all() and np.abs(action).max() <= 1
    assert embedding.observes == "frames" and oracle.observes == "latents"
    env.close()
