"""Policies from files, from Python and mixed, in the real simulator."""

import pickle
import random
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest
import torch
from stable_baselines3 import PPO, SAC

from worldmodel.agents import (
    ActionOU,
    CallablePolicy,
    LatentOU,
    Mixture,
    Policy,
    RandomActions,
    SB3Policy,
    begin,
    collect,
)
from worldmodel.envs import SuiteEnv, make

SOURCE = """
import numpy as np
from dataclasses import dataclass

def towards(observation):
    return 3 * observation[:2]

def wide(observation):
    return np.zeros(3)

@dataclass
class Noise:
    actions: int
    dt: float
    rng: np.random.Generator

    def __call__(self, observation):
        return self.rng.uniform(-self.dt, self.dt, self.actions)

class Bare:
    pass

class Silent:
    def __init__(self, actions, dt, rng):
        pass

number = 1.0
"""


@pytest.fixture(scope="module")
def env() -> Iterator[SuiteEnv]:
    env = make("reacher").unwrapped
    assert isinstance(env, SuiteEnv)
    env.reset(seed=0)
    yield env
    env.close()


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Untrained models, saved with a seed, which loading must not spread."""
    folder = tmp_path_factory.mktemp("models")
    env = gym.make("worldmodel/reacher-hard-v0")
    SAC("MlpPolicy", env, seed=1, buffer_size=10, device="cpu").save(folder / "reacher-sac.zip")
    PPO("MlpPolicy", env, seed=1, n_steps=8, batch_size=8, device="cpu", use_sde=True).save(folder / "reacher-ppo.zip")
    return folder


@pytest.fixture
def source(tmp_path: Path) -> Path:
    file = tmp_path / "rules.py"
    file.write_text(SOURCE)
    return file


def actions(explorer, env: SuiteEnv, steps: int = 5, seed: int = 0) -> np.ndarray:  # type: ignore[no-untyped-def]
    policy, observation = begin(explorer, env, env.reset(seed=3)[0], np.random.default_rng(seed))
    drawn = []
    for _ in range(steps):
        drawn.append(policy(observation))
        observation = env.step(drawn[-1])[0]
    return np.stack(drawn)


def test_a_model_acts_as_its_own_predict_does(models: Path, env: SuiteEnv) -> None:
    explorer = SB3Policy(str(models / "reacher-sac.zip"), deterministic=True)
    observation = env.reset(seed=3)[0]
    expected, _ = SAC.load(models / "reacher-sac.zip", device="cpu").predict(observation, deterministic=True)
    np.testing.assert_array_equal(actions(explorer, env, 1)[0], expected)


@pytest.mark.parametrize("algo", ["sac", "ppo"])
def test_a_model_draws_from_the_generator_it_is_given_and_touches_no_other(
    algo: str, models: Path, env: SuiteEnv
) -> None:
    explorer = SB3Policy(str(models / f"reacher-{algo}.zip"))
    before = (torch.get_rng_state(), np.random.get_state()[1].copy(), random.getstate())  # noqa: NPY002
    one, two, other = (actions(explorer, env, seed=seed) for seed in (0, 0, 1))
    np.testing.assert_array_equal(one, two)
    assert not np.array_equal(one, other) and one.dtype == np.float32 and np.abs(one).max() <= 1
    after = (torch.get_rng_state(), np.random.get_state()[1], random.getstate())  # noqa: NPY002
    assert torch.equal(before[0], after[0]) and (before[1] == after[1]).all() and before[2] == after[2]


def test_the_content_of_a_model_is_its_identity_not_its_path(models: Path, tmp_path: Path, env: SuiteEnv) -> None:
    shutil.copy(models / "reacher-sac.zip", tmp_path / "copy.zip")
    one, two = SB3Policy(str(models / "reacher-sac.zip")), SB3Policy(str(tmp_path / "copy.zip"), algo="sac")
    assert one == two and repr(one) == repr(two) == f"SB3Policy(algo='sac', deterministic=False, sha256='{one.sha256}')"
    revived = pickle.loads(pickle.dumps(two))
    np.testing.assert_array_equal(actions(revived, env), actions(one, env))
    with (tmp_path / "copy.zip").open("ab") as file:
        file.write(b"more")
    changed = SB3Policy(str(tmp_path / "copy.zip"), algo="sac")
    assert changed != one
    (tmp_path / "copy.zip").write_bytes(b"")
    with pytest.raises(ValueError, match="has changed"):
        actions(changed, env)


@pytest.mark.parametrize(
    "file, algo, line",
    [
        ("none-sac.zip", None, "cannot be read"),
        ("reacher-sac.zip", "trpo", "unknown algorithm 'trpo': take one of a2c"),
        ("plain.zip", None, "give algo"),
        ("ppo-or-sac.zip", None, "give algo"),
    ],
)
def test_a_model_that_is_not_there_or_not_known_is_one_line(
    file: str, algo: str | None, line: str, models: Path
) -> None:
    with pytest.raises(ValueError, match=line):
        SB3Policy(str(models / file), algo)


def test_a_model_of_another_kind_or_for_another_task_is_one_line(models: Path, tmp_path: Path, env: SuiteEnv) -> None:
    (tmp_path / "sac.zip").write_text("no model")
    with pytest.raises(ValueError, match="is no sac model"):
        actions(SB3Policy(str(tmp_path / "sac.zip")), env)
    with pytest.raises(ValueError, match="is no sac model"):
        actions(SB3Policy(str(models / "reacher-ppo.zip"), "sac"), env)
    cartpole = make("cartpole").unwrapped
    assert isinstance(cartpole, SuiteEnv)
    with pytest.raises(ValueError, match=r"was made for the observation space Box.*cartpole-balance has Box"):
        actions(SB3Policy(str(models / "reacher-sac.zip")), cartpole)
    cartpole.close()


def test_a_function_in_a_file_acts_within_one(source: Path, env: SuiteEnv) -> None:
    observation = env.reset(seed=3)[0]
    drawn = actions(CallablePolicy(f"{source}:towards"), env, 1)
    np.testing.assert_array_equal(drawn[0], np.clip(3 * observation[:2], -1, 1))
    assert drawn.dtype == np.float32


def test_a_class_is_made_for_each_episode_with_its_generator(source: Path, env: SuiteEnv) -> None:
    explorer = pickle.loads(pickle.dumps(CallablePolicy(f"{source}:Noise")))
    np.testing.assert_array_equal(actions(explorer, env), actions(explorer, env))
    assert 0 < np.abs(actions(explorer, env, 50)).max() <= env.dt


def test_a_module_on_the_path_is_found_by_its_name(
    source: Path, env: SuiteEnv, monkeypatch: pytest.MonkeyPatch
) -> None:
    (source.parent / "rules_package").mkdir()
    shutil.copy(source, source.parent / "rules_package" / "walks.py")
    monkeypatch.syspath_prepend(source.parent)
    by_name, by_file = CallablePolicy("rules_package.walks:towards"), CallablePolicy(f"{source}:towards")
    np.testing.assert_array_equal(actions(by_name, env), actions(by_file, env))
    assert repr(by_name) == f"CallablePolicy('rules_package.walks:towards', sha256='{by_file.sha256}')"
    assert repr(by_file) == f"CallablePolicy('rules.py:towards', sha256='{by_file.sha256}')"


@pytest.mark.parametrize(
    "name, line",
    [
        ("wide", r"returned shape \(3,\), an action has shape \(2,\)"),
        ("Bare", "made with \\(actions, dt, rng\\)"),
        ("Silent", "cannot be called"),
        ("number", "cannot be called"),
        ("nothing", "has no nothing"),
    ],
)
def test_a_name_that_does_not_act_is_one_line(name: str, line: str, source: Path, env: SuiteEnv) -> None:
    with pytest.raises(ValueError, match=line):
        actions(CallablePolicy(f"{source}:{name}"), env)


@pytest.mark.parametrize(
    "target, line",
    [
        ("nowhere.py:act", "nowhere.py cannot be read"),
        ("no_such_module_here:act", "no module 'no_such_module_here'"),
        ("no_such_module_here.inner:act", "no module"),
        ("sys:exit", "no module 'sys' with a source file"),
        ("rules.py", "is not written as"),
    ],
)
def test_a_target_that_is_not_there_is_one_line(target: str, line: str) -> None:
    with pytest.raises(ValueError, match=line):
        CallablePolicy(target)


def test_a_file_that_cannot_be_imported_is_one_line(tmp_path: Path, env: SuiteEnv) -> None:
    (tmp_path / "broken.py").write_text("import no_such_module_here")
    with pytest.raises(ValueError, match=r"broken\.py:act cannot be imported .ModuleNotFoundError"):
        actions(CallablePolicy(f"{tmp_path / 'broken.py'}:act"), env)


@dataclass(frozen=True)
class Constant:
    value: float

    def policy(self, actions: int, dt: float, rng: np.random.Generator) -> Policy:
        return lambda observation: np.full(actions, self.value, np.float32)


def test_a_mixture_takes_the_second_action_as_often_as_asked(env: SuiteEnv) -> None:
    drawn = actions(Mixture(Constant(0.0), Constant(1.0), 0.3), env, 900)[:, 0]
    assert set(drawn) == {0.0, 1.0} and drawn.mean() == pytest.approx(0.3, abs=0.05)


def test_a_mixture_changes_only_between_segments(env: SuiteEnv) -> None:
    drawn = actions(Mixture(Constant(0.0), Constant(1.0), 0.5, segment=7), env, 70)[:, 0].reshape(10, 7)
    assert (drawn == drawn[:, :1]).all() and 0 < drawn[:, 0].mean() < 1


def test_a_mixture_without_chance_is_its_first_explorer_whatever_the_second(env: SuiteEnv) -> None:
    mixtures = [Mixture(ActionOU(), second, epsilon=0.0) for second in (RandomActions(), ActionOU(1.0))]
    one, two = (actions(mixture, env) for mixture in mixtures)
    np.testing.assert_array_equal(one, two)
    always = Mixture(RandomActions(), ActionOU(), epsilon=1.0)
    assert not np.array_equal(actions(always, env), one)


@pytest.mark.parametrize(
    "arguments, line",
    [
        ((LatentOU(), RandomActions(), 0.5), "does not drive"),
        ((RandomActions(), RandomActions(), 1.5), "between 0 and 1"),
        ((RandomActions(), RandomActions(), 0.5, 0), "at least 1"),
    ],
)
def test_a_mixture_that_makes_no_sense_is_refused(arguments, line: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(ValueError, match=line):
        Mixture(*arguments)


def test_a_mixture_with_a_model_collects_the_same_data_twice(models: Path, tmp_path: Path) -> None:
    mixture = Mixture(SB3Policy(str(models / "reacher-sac.zip")), RandomActions(), 0.5)
    one, two = (
        collect("reacher", mixture, 16, tmp_path / str(n), length=8, progress=False, height=32, width=32)
        for n in (1, 2)
    )
    np.testing.assert_array_equal(one.states, two.states)
    assert one.card.explorer == repr(mixture) and str(models) not in one.card.explorer
    with pytest.raises(ValueError, match="was made for"):
        collect("cartpole", mixture, 16, tmp_path / "3", length=8, progress=False)
    assert not (tmp_path / "3").exists()
