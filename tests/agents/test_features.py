"""The encoder inside policies of stable-baselines3 that really train."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch
from stable_baselines3 import PPO, SAC
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.vec_env import DummyVecEnv, VecEnv, VecFrameStack
from torch import nn

from worldmodel.agents import EncoderAdam, EncoderFeatures
from worldmodel.agents.features import unstacked
from worldmodel.encoders.encoder import Encoder
from worldmodel.envs import make
from worldmodel.utils.devices import one_core_spared

SIZE = 32


@pytest.fixture(autouse=True)
def one_core() -> Iterator[None]:
    """Threads that wait for each other would take most of the time."""
    with one_core_spared():
        yield


FRAMES = np.random.default_rng(0).integers(0, 255, (5, SIZE, SIZE, 3), np.uint8)
ONE = gym.spaces.Box(0, 255, (SIZE, SIZE, 3), np.uint8)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("encoder")
    torch.manual_seed(0)
    encoder = Encoder(dim=2, frame_size=(SIZE, SIZE), channels=(8, 8, 8, 8, 8), hidden=16)
    with torch.no_grad():
        encoder.train()(torch.randint(0, 255, (64, SIZE, SIZE, 3), dtype=torch.uint8))
    encoder.save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def encoder(folder: Path) -> Encoder:
    return Encoder.load(folder)


def envs(target: bool = False) -> VecEnv:
    return DummyVecEnv([lambda: make("reacher-easy", pixels=True, target=target, height=SIZE, width=SIZE)])


def model(kind: str, env: VecEnv, folder: Path, policy: str = "CnnPolicy", **options: Any) -> BaseAlgorithm:
    features = {"encoder": str(folder), **options.pop("features", {})}
    kwargs = {"features_extractor_class": EncoderFeatures, "features_extractor_kwargs": features, "net_arch": [16]}
    kwargs |= options
    if kind == "ppo":
        return PPO(policy, env, n_steps=32, batch_size=32, n_epochs=2, policy_kwargs=kwargs, device="cpu")
    sizes = {"buffer_size": 300, "learning_starts": 30, "batch_size": 16, "train_freq": 4}
    return SAC(policy, env, **sizes, policy_kwargs=kwargs, device="cpu")  # type: ignore[arg-type]


def extractors(agent: BaseAlgorithm) -> list[EncoderFeatures]:
    return [module for module in agent.policy.modules() if isinstance(module, EncoderFeatures)]


def same_weights(one: nn.Module, two: nn.Module) -> bool:
    return all(torch.equal(value, two.state_dict()[name]) for name, value in one.state_dict().items())


@pytest.mark.parametrize(
    "kind, target, shared, count",
    [
        ("sac", False, False, 3),  # actor, critic and target have one each
        ("sac", True, True, 2),  # the critic takes the actor's
        ("ppo", True, True, 1),
        ("ppo", False, False, 2),
    ],
)
def test_a_frozen_encoder_stays_what_it_was_to_the_last_bit(
    folder: Path, encoder: Encoder, kind: str, target: bool, shared: bool, count: int
) -> None:
    env = envs(target)
    policy = "MultiInputPolicy" if target else "CnnPolicy"
    agent = model(kind, env, folder, policy, share_features_extractor=shared)
    heads = [value.clone() for name, value in agent.policy.named_parameters()]
    agent.learn(120)
    parts = extractors(agent)
    assert len({id(part) for part in parts}) == count
    assert all(same_weights(encoder, part.encoder) and not list(part.parameters()) for part in parts)
    assert any(not torch.equal(old, new) for old, new in zip(heads, agent.policy.parameters(), strict=True))
    observation = env.reset()
    frame = observation["frame"] if isinstance(observation, dict) else observation
    features = parts[0](agent.policy.obs_to_tensor(_scaled(observation, agent))[0])
    np.testing.assert_allclose(features[:, :2].numpy(), encoder.encode(np.asarray(frame)), atol=1e-5)
    env.close()


def _scaled(observation: Any, agent: BaseAlgorithm) -> Any:
    """Observations as SB3's policies hand them to their extractors."""
    if isinstance(observation, dict):
        return {name: _scaled(value, agent) for name, value in observation.items()}
    return observation.astype(np.float32) / 255 if observation.dtype == np.uint8 else observation


@pytest.mark.parametrize("kind", ["sac", "ppo"])
def test_a_fine_tuned_encoder_learns_at_its_own_rate_and_keeps_its_statistics(
    folder: Path, encoder: Encoder, kind: str
) -> None:
    env = envs()
    agent = model(kind, env, folder, features={"learning_rate": 1e-5}, optimizer_class=EncoderAdam)
    assert same_weights(encoder, extractors(agent)[0].encoder)  # nor did SB3 initialise it anew
    agent.learn(100)
    tuned = extractors(agent)[0].encoder
    assert all(torch.equal(value, dict(encoder.named_buffers())[name]) for name, value in tuned.named_buffers())
    moved = max(
        (new - old).abs().max().item() for new, old in zip(tuned.parameters(), encoder.parameters(), strict=True)
    )
    assert 0 < moved < 100 * 1e-5  # at SB3's own rate of 3e-4 thirty times as much
    env.close()


def test_the_rate_of_the_encoder_outlives_the_schedule() -> None:
    parts = [nn.Parameter(torch.zeros(1)) for _ in range(2)]
    parts[1].own_learning_rate = 0.01  # type: ignore[attr-defined]
    optimiser = EncoderAdam(parts, lr=1.0)
    for group in optimiser.param_groups:
        group["lr"] = 0.5  # what SB3 does before every update
    sum(parts).backward()  # type: ignore[union-attr]
    optimiser.step()
    assert [round(part.item(), 4) for part in parts] == [-0.5, -0.01]


def test_every_layout_of_frames_gives_the_same_features(folder: Path, encoder: Encoder) -> None:
    frames = FRAMES[:4].reshape(2, 2, SIZE, SIZE, 3)  # 2 stacks of 2
    expected = encoder.encode(FRAMES[:4]).reshape(2, 4)
    first = np.moveaxis(frames, -1, 2)
    layouts = {
        "fourth, last": frames,
        "fourth, first": first,
        "channels, first": first.reshape(2, 6, SIZE, SIZE),
        "channels, last": np.moveaxis(first.reshape(2, 6, SIZE, SIZE), 1, -1),
    }
    for name, array in layouts.items():
        space = gym.spaces.Box(0, 255, array.shape[1:], np.uint8)
        features = EncoderFeatures(space, folder)(torch.from_numpy(np.ascontiguousarray(array)))
        np.testing.assert_allclose(features.numpy(), expected, atol=1e-5, err_msg=name)
    assert unstacked(torch.from_numpy(FRAMES), (SIZE, SIZE)).shape == (5, SIZE, SIZE, 3)


def test_a_stack_of_frames_is_embedded_and_not_flattened(folder: Path) -> None:
    stacked = gym.wrappers.FrameStackObservation(make("reacher-easy", pixels=True, height=SIZE, width=SIZE), 3)
    for env in (DummyVecEnv([lambda: stacked]), VecFrameStack(envs(), 3)):
        agent = model("sac", env, folder)
        agent.learn(60)
        assert extractors(agent)[0].features_dim == 6
        env.close()


def test_frames_are_normalised_once_whether_the_policy_scales_them_or_not(folder: Path, encoder: Encoder) -> None:
    scaled, raw = EncoderFeatures(ONE, folder), EncoderFeatures(ONE, folder, scaled=False)
    pixels = torch.from_numpy(FRAMES).float()
    for features in (scaled(pixels / 255.0), raw(pixels), scaled(torch.from_numpy(FRAMES))):
        np.testing.assert_allclose(features.numpy(), encoder.encode(FRAMES), atol=1e-5)
    with pytest.raises(ValueError, match="scaled=False"):
        scaled(pixels)
    every = torch.arange(256)
    assert torch.equal((every.float() / 255.0 * 255).round().long(), every)


def test_saved_models_predict_the_same_in_a_fresh_process(folder: Path, tmp_path: Path) -> None:
    expected = []
    for kind, target in (("sac", False), ("ppo", True)):
        env = envs(target)
        agent = model(kind, env, folder, "MultiInputPolicy" if target else "CnnPolicy")
        agent.learn(40)
        agent.save(tmp_path / kind)
        observation = env.reset()
        np.savez(tmp_path / kind, **(observation if isinstance(observation, dict) else {"frame": observation}))
        expected.append(agent.predict(observation, deterministic=True)[0])
        env.close()
    code = """
import sys, numpy as np
from pathlib import Path
from stable_baselines3 import PPO, SAC
for kind in (SAC, PPO):
    path = Path(sys.argv[1]) / kind.__name__.lower()
    observation = dict(np.load(path.with_suffix(".npz")))
    observation = observation if kind is PPO else observation["frame"]
    print(kind.load(path.with_suffix(".zip"), device="cpu").predict(observation, deterministic=True)[0].tolist())
"""
    done = subprocess.run([sys.executable, "-c", code, tmp_path], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert [json.loads(line) for line in done.stdout.splitlines()] == [actions.tolist() for actions in expected]


@pytest.mark.parametrize(
    "space, line",
    [
        (gym.spaces.Box(-1, 1, (6,), np.float32), r"takes uint8 frames \(32, 32, 3\), or stacks"),
        (gym.spaces.Box(0, 255, (64, 64, 3), np.uint8), "takes uint8 frames"),
        (gym.spaces.Box(0, 255, (SIZE, SIZE, 4), np.uint8), "takes uint8 frames"),
        (gym.spaces.Dict({"one": ONE, "two": ONE}), "frames: one, two"),
    ],
    ids=["state", "size", "channels", "two frames"],
)
def test_what_holds_no_frame_of_the_encoder_is_one_line(folder: Path, space: gym.Space[Any], line: str) -> None:
    with pytest.raises(ValueError, match=line):
        EncoderFeatures(space, folder)


def test_an_encoder_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="is not an encoder"):
        EncoderFeatures(ONE, tmp_path)
