"""Agents of stable-baselines3 that really train, for a few hundred steps."""

import json
import multiprocessing
import os
import signal
import time
from dataclasses import replace
from functools import partial
from pathlib import Path

import gymnasium as gym
import numpy as np
import psutil
import pytest
from stable_baselines3 import PPO, SAC
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import DummyVecEnv, VecEnv, VecEnvWrapper
from stable_baselines3.common.vec_env.base_vec_env import VecEnvObs, VecEnvStepReturn

from worldmodel.agents import Agent, AgentOptions, SB3Policy, train_agent
from worldmodel.agents.curve import LearningCurve
from worldmodel.agents.evaluation import RandomPolicy, Stopwatch, episode_returns
from worldmodel.agents.replay_memory import check_replay_memory, replay_bytes
from worldmodel.envs import SuiteEnv, make

FEW = AgentOptions(steps=240, envs=2, evaluate_every=80, episodes=2, test_episodes=3, snapshot_seconds=0.0)
SMALL = {"net_arch": [16]}


def make_envs(count: int) -> VecEnv:
    return DummyVecEnv([lambda: Monitor(make("reacher-easy", frame_skip=20))] * count)


def steps_in(snapshots: Path) -> list[int]:
    return [int(path.name) for path in snapshots.glob("*") if path.name.isdigit()]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("agent")
    train_agent(make_envs, out, FEW, policy_options=SMALL, progress=False, device="cpu")
    return out


def test_an_agent_is_evaluated_at_even_steps_and_scored_on_other_episodes(folder: Path) -> None:
    agent = Agent.load(folder / "agent.json")
    assert agent.curve.steps.tolist() == [80, 160, 240] and agent.curve.returns.shape == (3, 2)
    assert (np.diff(agent.curve.seconds) > 0).all() and agent.curve.seconds[-1] <= agent.seconds
    assert len(agent.best) == len(agent.last) == len(agent.random) == 3
    assert list((folder / "tensorboard").iterdir()) and not (folder / "snapshots").exists()


def test_its_best_model_is_an_explorer_of_the_same_task(folder: Path) -> None:
    env = make("reacher-easy").unwrapped
    assert isinstance(env, SuiteEnv)
    observation, _ = env.reset(seed=0)
    policy, observation = SB3Policy(str(folder / "best-sac.zip")).policy_in(env, observation, np.random.default_rng(0))
    assert policy(observation).shape == (2,)
    env.close()


def test_the_same_seed_plays_the_same_episodes() -> None:
    envs = make_envs(2)
    one, two, other = (episode_returns(RandomPolicy(envs, seed), envs, seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(one, two)
    assert not np.array_equal(one, other)
    envs.close()


def test_time_stands_still_while_the_watch_is_paused() -> None:
    watch = Stopwatch(10.0)
    with watch.paused():
        time.sleep(0.05)
    assert 10.0 <= watch.seconds < 10.05


def test_a_killed_training_goes_on_from_its_snapshot(tmp_path: Path) -> None:
    run = partial(train_agent, make_envs, tmp_path, policy_options=SMALL, progress=False, device="cpu")
    child = multiprocessing.get_context("spawn").Process(target=run, args=(replace(FEW, steps=40_000),))
    child.start()
    snapshots = tmp_path / "snapshots"
    while not any(step >= 100 for step in steps_in(snapshots)):
        assert child.is_alive()
        time.sleep(0.05)
    assert child.pid is not None
    os.kill(child.pid, signal.SIGKILL)
    child.join()
    (snapshots / ".incomplete").mkdir(exist_ok=True)  # what a writer that was killed leaves
    step = max(steps_in(snapshots))
    before = json.loads((snapshots / f"{step:09d}" / "counters.json").read_text())
    agent = run(replace(FEW, steps=step + 80))
    seen = len(before["curve"]["steps"])
    assert seen and agent.curve.steps[:seen].tolist() == before["curve"]["steps"] and len(agent.curve.steps) > seen
    assert agent.seconds > before["seconds"]
    assert SAC.load(tmp_path / "last-sac.zip", device="cpu").num_timesteps == step + 80


def test_a_training_ends_when_its_minutes_are_over(tmp_path: Path) -> None:
    options = replace(FEW, algo="ppo", steps=100_000, minutes=1e-6, episodes=1)
    agent = train_agent(make_envs, tmp_path, options, policy_options=SMALL, progress=False, device="cpu")
    assert agent.curve.steps.tolist() == [2]


class Interrupted(VecEnvWrapper):
    """Is interrupted at its hundredth step."""

    calls = 0

    def reset(self) -> VecEnvObs:
        return self.venv.reset()

    def step_wait(self) -> VecEnvStepReturn:
        Interrupted.calls += 1
        if Interrupted.calls == 100:
            raise KeyboardInterrupt
        return self.venv.step_wait()


def test_an_interrupted_ppo_loses_no_half_rollout(tmp_path: Path) -> None:
    options = replace(FEW, algo="ppo", steps=120, envs=1, episodes=1)
    with pytest.raises(KeyboardInterrupt):
        train_agent(lambda count: Interrupted(make_envs(count)), tmp_path, options, progress=False, device="cpu")
    assert steps_in(tmp_path / "snapshots") == [0]  # its only rollout was not complete
    train_agent(make_envs, tmp_path, options, progress=False, device="cpu")
    assert PPO.load(tmp_path / "last-ppo.zip", device="cpu").num_timesteps == 120


def test_a_replay_buffer_is_measured_before_it_is_made() -> None:
    envs = make_envs(2)
    buffer = SAC("MlpPolicy", envs, buffer_size=100, device="cpu").replay_buffer
    assert buffer is not None
    names = ("observations", "next_observations", "actions", "rewards", "dones", "timeouts")
    arrays = sum(getattr(buffer, name).nbytes for name in names)
    assert replay_bytes(envs.observation_space, envs.action_space, 100) == arrays
    envs.close()


def test_a_replay_buffer_beyond_the_memory_is_one_line() -> None:
    frames = gym.spaces.Dict({"frame": gym.spaces.Box(0, 255, (64, 64, 3), np.uint8)})
    actions = gym.spaces.Box(-1, 1, (2,), np.float32)
    check_replay_memory(frames, actions, 10)
    with pytest.raises(ValueError, match=r"GB are free: keep at most \d+ of them") as error:
        check_replay_memory(frames, actions, psutil.virtual_memory().available // 10_000)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    "bad, line",
    [({"algo": "dqn"}, "take one of sac, ppo"), ({"episodes": 0}, "at least 1")],
)
def test_options_that_make_no_sense_are_one_line(bad: dict, line: str) -> None:  # type: ignore[type-arg]
    with pytest.raises(ValueError, match=line):
        AgentOptions(**bad)


def test_a_curve_survives_the_disk_even_before_its_first_point() -> None:
    curve = LearningCurve.empty()
    assert LearningCurve.from_json(curve.to_json()).mean.shape == (0,)
    curve = curve.extended(10, 1.5, np.array([1.0, 2.0])).extended(20, 3.0, np.array([3.0, 4.0]))
    again = LearningCurve.from_json(json.loads(json.dumps(curve.to_json())))
    assert again.steps.tolist() == [10, 20] and again.mean.tolist() == [1.5, 3.5]
