"""Embeddings as observations, of one environment and of many."""

import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium.utils.env_checker import check_env as check_gymnasium_env
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from stable_baselines3 import PPO
from stable_baselines3.common.env_checker import check_env as check_sb3_env
from stable_baselines3.common.vec_env import DummyVecEnv

from worldmodel.agents import EmbeddingObservation, EmbeddingVecEnv, EmbeddingVectorObservation
from worldmodel.encoders.encoder import Encoder
from worldmodel.envs import make
from worldmodel.utils.devices import one_core_spared

SIZE = 32


@pytest.fixture(autouse=True)
def one_core() -> Iterator[None]:
    """Threads that wait for each other would take most of the time."""
    with one_core_spared():
        yield


@pytest.fixture(scope="module")
def encoder() -> Encoder:
    torch.manual_seed(0)
    encoder = Encoder(dim=2, frame_size=(SIZE, SIZE), channels=(8, 8, 8, 8, 8), hidden=16)
    with torch.no_grad():  # statistics of its own, so that one pass for many cannot hide behind zeros
        encoder.train()(torch.randint(0, 255, (64, SIZE, SIZE, 3), dtype=torch.uint8))
    return encoder.eval()


def pixels(**options: Any) -> gym.Env[Any, Any]:
    return make("reacher-easy", pixels=True, height=SIZE, width=SIZE, frame_skip=10, **options)


def short(steps: int = 3) -> gym.Env[Any, Any]:
    return gym.wrappers.TimeLimit(pixels(target=True), steps)


@pytest.mark.parametrize("target, history, size", [(False, 1, 2), (False, 3, 6), (True, 2, 7)])
def test_both_libraries_find_no_fault(encoder: Encoder, target: bool, history: int, size: int) -> None:
    env = EmbeddingObservation(pixels(target=target, render_mode="rgb_array"), encoder, history)
    assert env.observation_space == gym.spaces.Box(-np.inf, np.inf, (size,), np.float32)
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message=".*(observation|dtype|seed).*")
        check_sb3_env(env)
        warnings.filterwarnings("ignore", message=".*(infinity|different from the unwrapped).*")
        check_gymnasium_env(env)
    env.close()


def test_it_observes_the_embedding_its_change_and_what_stood_beside_the_frame(encoder: Encoder) -> None:
    plain, env = pixels(target=True), EmbeddingObservation(pixels(target=True), encoder, history=2)
    one, two = plain.reset(seed=3)[0], env.reset(seed=3)[0]
    h = encoder.encode(one["frame"][None])[0]
    np.testing.assert_allclose(two, [*h, 0, 0, *one["target"]], atol=1e-6)
    action = np.ones(2, np.float32)
    one, two = plain.step(action)[0], env.step(action)[0]
    after = encoder.encode(one["frame"][None])[0]
    np.testing.assert_allclose(two, [*after, *(after - h), *one["target"]], atol=1e-6)
    assert np.abs(after - h).max() > 1e-4
    plain.close(), env.close()


def play(env: gym.Env[Any, Any], seed: int, actions: np.ndarray) -> list[np.ndarray]:
    """Observe episodes of one environment, a new one after each end."""
    seen = [env.reset(seed=seed)[0]]
    for action in actions:
        observation, _, terminated, truncated, _ = env.step(action)
        seen.append(observation)
        if terminated or truncated:
            seen.append(env.reset()[0])
    return seen


ACTIONS = np.random.default_rng(0).uniform(-1, 1, (7, 2)).astype(np.float32)


def test_many_environments_of_sb3_see_what_each_would_see_alone_in_one_pass(
    encoder: Encoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone = [play(EmbeddingObservation(short(), encoder, 2), seed, ACTIONS) for seed in (5, 6)]
    passes, encode = [], Encoder.encode
    monkeypatch.setattr(Encoder, "encode", lambda self, frames: passes.append(len(frames)) or encode(self, frames))
    envs = EmbeddingVecEnv(DummyVecEnv([short, short]), encoder, 2)
    envs.seed(5)
    seen: list[list[np.ndarray]] = [[observation] for observation in np.asarray(envs.reset())]
    for action in ACTIONS:
        observations, _, dones, infos = envs.step(np.stack([action, action]))
        for index in range(2):
            if dones[index]:
                seen[index].append(infos[index]["terminal_observation"])
            seen[index].append(np.asarray(observations)[index])
    np.testing.assert_allclose(np.array(seen), np.array(alone), atol=1e-5)
    assert passes == [2, 2, 2, 4, 2, 2, 4, 2]
    envs.close()


@pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP])
def test_many_environments_of_gymnasium_see_what_each_would_see_alone(encoder: Encoder, mode: AutoresetMode) -> None:
    envs = EmbeddingVectorObservation(SyncVectorEnv([short, short], autoreset_mode=mode), encoder, 2)
    assert envs.observation_space.shape == (2, 7)
    seen = [envs.reset(seed=5)[0]]
    actions = list(ACTIONS)
    played = []
    for action in actions:
        observations, _, _, over, infos = envs.step(np.stack([action, action]))
        if mode == AutoresetMode.SAME_STEP and over.all():
            seen.append(np.stack(list(infos["final_obs"])))
        if not (mode == AutoresetMode.NEXT_STEP and len(seen) in (4, 8)):  # the action that starts an episode is unused
            played.append(action)
        seen.append(observations)
    alone = [play(EmbeddingObservation(short(), encoder, 2), seed, np.array(played)) for seed in (5, 6)]
    length = min(len(seen), len(alone[0]))
    np.testing.assert_allclose(np.stack(seen, 1)[:, :length], np.array(alone)[:, :length], atol=1e-5)
    assert length >= 7
    envs.close()


def test_a_vector_environment_that_waits_for_its_user_is_refused(encoder: Encoder) -> None:
    with pytest.raises(ValueError, match="autoreset is disabled"):
        EmbeddingVectorObservation(SyncVectorEnv([short], autoreset_mode=AutoresetMode.DISABLED), encoder)


def test_an_agent_trains_on_latents(encoder: Encoder, tmp_path: Path) -> None:
    encoder.save_pretrained(tmp_path)
    before = {name: value.clone() for name, value in encoder.state_dict().items()}
    envs = EmbeddingVecEnv(DummyVecEnv([lambda: short(40)] * 2), tmp_path, history=2)
    PPO("MlpPolicy", envs, n_steps=32, batch_size=32, device="cpu").learn(128)
    assert all(torch.equal(before[name], value) for name, value in encoder.state_dict().items())
    envs.close()


@pytest.mark.parametrize(
    "wrapped, line",
    [
        (lambda: make("reacher-easy"), "frames are float32"),
        (lambda: make("reacher-easy", pixels=True), r"\(64, 64, 3\); this encoder takes \(B, 32, 32, 3\)"),
        (lambda: gym.wrappers.FrameStackObservation(pixels(), 2), r"shape \(2, 32, 32, 3\)"),
        (lambda: Bare(gym.spaces.Discrete(3)), "an encoder takes frames, or a dictionary"),
        (lambda: Bare(gym.spaces.Dict({"place": gym.spaces.Box(-1, 1)})), "frames: none"),
        (lambda: Bare(gym.spaces.Dict({"level": gym.spaces.Discrete(3)})), "no boxes: level"),
    ],
    ids=["state", "size", "stack", "discrete", "no frame", "no box"],
)
def test_what_is_no_frame_of_the_encoder_is_one_line(
    encoder: Encoder, wrapped: Callable[[], gym.Env[Any, Any]], line: str
) -> None:
    with pytest.raises(ValueError, match=line):
        EmbeddingObservation(wrapped(), encoder)


def test_a_history_of_nothing_is_refused(encoder: Encoder) -> None:
    with pytest.raises(ValueError, match="history is 0"):
        EmbeddingObservation(pixels(), encoder, history=0)


class Bare(gym.Env[Any, Any]):
    """An environment that only says what it observes."""

    def __init__(self, space: gym.Space[Any]) -> None:
        self.observation_space, self.action_space = space, gym.spaces.Box(-1, 1)
