"""What acts in an episode: the protocols of driving, and policies that come from elsewhere or are mixed.

A driving explorer makes one policy per episode. One that has to know the environment, or to drive somewhere before the
episode is recorded, has ``policy_in``.
"""

import hashlib
import importlib.util
import inspect
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol, runtime_checkable

import gymnasium as gym
import numpy as np
import stable_baselines3
import torch

from worldmodel.envs import SuiteEnv

ALGORITHMS = ("a2c", "ddpg", "ppo", "sac", "td3")
_TARGET = re.compile(r"(?P<source>.+\.py|[A-Za-z_][\w.]*):(?P<name>[A-Za-z_]\w*)")


class Policy(Protocol):
    """Acts in one episode."""

    def __call__(self, observation: np.ndarray) -> np.ndarray:
        """Choose an action (a,) in ±1 for an observation."""
        ...


@runtime_checkable
class DrivingExplorer(Protocol):
    """Makes a policy for each episode."""

    def policy(self, actions: int, dt: float, rng: np.random.Generator) -> Policy:
        """Return the policy of one episode, for actions of this width and control steps of ``dt`` seconds."""
        ...


@runtime_checkable
class EnvironmentExplorer(Protocol):
    """Makes a policy for each episode of an environment that it may look at, and drive through the actuators."""

    def policy_in(self, env: SuiteEnv, observation: np.ndarray, rng: np.random.Generator) -> tuple[Policy, np.ndarray]:
        """Return the policy of an episode that has begun with an observation, and the observation to go on with.

        The latter is another one where the explorer has taken steps; those are not recorded.
        """
        ...


def begin(
    explorer: DrivingExplorer | EnvironmentExplorer, env: SuiteEnv, observation: np.ndarray, rng: np.random.Generator
) -> tuple[Policy, np.ndarray]:
    """Let an explorer begin an episode that has just been reset.

    Args:
        explorer: one that drives.
        env: the environment, in the episode.
        observation: what its reset returned.
        rng: decides what the explorer does, and nothing else does.

    Returns:
        The policy, and the observation to hand to it first.

    Raises:
        ValueError: the explorer does not fit the task.
    """
    if isinstance(explorer, EnvironmentExplorer):
        return explorer.policy_in(env, observation, rng)
    return explorer.policy(env.num_actions, env.dt, rng), observation


@dataclass(frozen=True)
class SB3Policy:
    """A trained model of stable-baselines3, acting on the task's flat state observation.

    **Loading such a file can run any code that its author put there**: it holds pickles. Take only files that you or
    someone you trust has made. Two files with the same content are the same explorer, whatever their paths.

    Attributes:
        path: the .zip file that ``model.save`` wrote.
        algo: one of :data:`ALGORITHMS`; None finds it in the file's name (``reacher-sac.zip``).
        deterministic: take the most likely action instead of drawing one.
        sha256: the start of the content's digest.

    Raises:
        ValueError: there is no such file, or no algorithm in its name.
    """

    path: str = field(repr=False, compare=False)
    algo: str | None = None
    deterministic: bool = False
    sha256: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "algo", _algorithm(Path(self.path), self.algo))
        object.__setattr__(self, "sha256", _digest(Path(self.path)))

    def policy_in(self, env: SuiteEnv, observation: np.ndarray, rng: np.random.Generator) -> tuple[Policy, np.ndarray]:
        """Return the policy of one episode.

        Raises:
            ValueError: the file is no model of the algorithm, has changed, or was made for another task.
        """
        assert self.algo is not None
        model = _model(self.path, self.algo, self.sha256)
        for kind in ("observation_space", "action_space"):
            there, here = getattr(model, kind), getattr(env, kind)
            if not _same_box(there, here):
                task = f"{env.domain}-{env.task}"
                raise ValueError(f"{self.path} was made for the {kind.replace('_', ' ')} {there}, {task} has {here}")
        if model.use_sde:
            with _torch_seeded(rng):
                model.policy.reset_noise()

        def act(observation: np.ndarray) -> np.ndarray:
            with _torch_seeded(rng):
                action, _ = model.predict(observation, deterministic=self.deterministic)
            return action

        return act, observation


@dataclass(frozen=True, repr=False)
class CallablePolicy:
    """A policy in Python, by its name.

    A function is called with each observation and returns the action; it should draw no random numbers. A class is made
    anew for each episode as ``Class(actions, dt, rng)``, with the width of an action, the seconds of a step and a
    ``numpy.random.Generator``; what it makes is called with each observation. Actions are clipped to ±1.

    Attributes:
        target: ``package.module:Name`` or ``path/to/file.py:Name``. Importing it runs its code.
        name: the same without the folders of a file.
        sha256: the start of the digest of the module's source, in which alone a change is noticed.

    Raises:
        ValueError: there is no such module or file, or the target is not written like that.
    """

    target: str = field(compare=False)
    name: str = field(init=False)
    sha256: str = field(init=False)

    def __post_init__(self) -> None:
        source, name = _split(self.target)
        shown = Path(source).name if source.endswith(".py") else source
        object.__setattr__(self, "name", f"{shown}:{name}")
        object.__setattr__(self, "sha256", _digest(_source_file(source)))

    def __repr__(self) -> str:
        return f"CallablePolicy({self.name!r}, sha256={self.sha256!r})"

    def policy(self, actions: int, dt: float, rng: np.random.Generator) -> Policy:
        """Return the policy of one episode.

        Raises:
            ValueError: the source has changed, or holds nothing of that name that can be called.
        """
        found = _import(self.target, self.sha256)
        act = found
        if isinstance(found, type):
            try:
                inspect.signature(found).bind(actions, dt, rng)
            except TypeError:
                raise ValueError(f"{self.target}: a class of policies is made with (actions, dt, rng)") from None
            act = found(actions, dt, rng)
        if not callable(act):
            raise ValueError(f"{self.target} cannot be called with an observation")

        def checked(observation: np.ndarray) -> np.ndarray:
            action = np.asarray(act(observation), np.float32)
            if action.shape != (actions,):
                raise ValueError(f"{self.target} returned shape {action.shape}, an action has shape ({actions},)")
            return np.clip(action, -1, 1)

        return checked


@dataclass(frozen=True)
class Mixture:
    """Acts like one explorer, and now and then like another.

    Both choose an action at every step, so that noise and references go on while the other one acts. They draw from
    generators of their own: what one does never depends on the other's draws.

    Attributes:
        first: drives most of the time.
        second: drives with probability ``epsilon``.
        epsilon: probability of the second's action, drawn anew for each segment.
        segment: control steps of a segment.
    """

    first: DrivingExplorer | EnvironmentExplorer
    second: DrivingExplorer | EnvironmentExplorer
    epsilon: float
    segment: int = 1

    def __post_init__(self) -> None:
        for explorer in (self.first, self.second):
            if not isinstance(explorer, DrivingExplorer | EnvironmentExplorer):
                raise ValueError(f"{explorer} does not drive: only explorers that drive can be mixed")
        if not 0 <= self.epsilon <= 1:
            raise ValueError(f"epsilon is {self.epsilon}: a probability lies between 0 and 1")
        if self.segment < 1:
            raise ValueError(f"segment is {self.segment}: it lasts at least 1 control step")

    def policy_in(self, env: SuiteEnv, observation: np.ndarray, rng: np.random.Generator) -> tuple[Policy, np.ndarray]:
        """Return the policy of one episode; each explorer begins it, the first one first."""
        draws, *rngs = rng.spawn(3)
        policies = []
        for explorer, own in zip((self.first, self.second), rngs, strict=True):
            policy, observation = begin(explorer, env, observation, own)
            policies.append(policy)
        chosen, left = 0, 0

        def act(observation: np.ndarray) -> np.ndarray:
            nonlocal chosen, left
            if left == 0:
                chosen, left = int(draws.random() < self.epsilon), self.segment
            left -= 1
            return [policy(observation) for policy in policies][chosen]

        return act, observation


def is_callable_target(text: str) -> bool:
    """Say whether a text is written like the target of a :class:`CallablePolicy`."""
    return _TARGET.fullmatch(text) is not None


def _algorithm(path: Path, algo: str | None) -> str:
    if algo is not None and algo not in ALGORITHMS:
        raise ValueError(f"unknown algorithm {algo!r}: take one of {', '.join(ALGORITHMS)}")
    if algo is not None:
        return algo
    found = [word for word in re.split(r"[^a-z0-9]+", path.name.lower()) if word in ALGORITHMS]
    if len(set(found)) != 1:
        raise ValueError(f"{path}: the name does not say which of {', '.join(ALGORITHMS)} it is; give algo")
    return found[0]


def _digest(path: Path) -> str:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()[:12]
    except OSError as error:
        raise ValueError(f"{path} cannot be read ({error.strerror})") from None


def _check_unchanged(path: Path, sha256: str) -> None:
    if _digest(path) != sha256:
        raise ValueError(f"{path} has changed since the explorer was made")


@lru_cache(maxsize=4)
def _model(path: str, algo: str, sha256: str) -> Any:
    """Load a model once per process, without a replay buffer and without touching any global generator."""
    _check_unchanged(Path(path), sha256)
    kind = getattr(stable_baselines3, algo.upper())
    try:
        with _torch_seeded(np.random.default_rng(0)):
            return kind.load(path, device="cpu", seed=None, buffer_size=1)
    except Exception as error:
        reason = str(error).partition("\n")[0]
        raise ValueError(
            f"{path} is no {algo} model of stable-baselines3 ({type(error).__name__}: {reason})"
        ) from error


@contextmanager
def _torch_seeded(rng: np.random.Generator) -> Iterator[None]:
    """Let what draws from torch's global CPU generator follow ``rng``, and put the generator back."""
    before = torch.get_rng_state()
    torch.default_generator.manual_seed(int(rng.integers(2**63)))
    try:
        yield
    finally:
        torch.set_rng_state(before)


def _same_box(one: Any, two: Any) -> bool:
    boxes = isinstance(one, gym.spaces.Box) and isinstance(two, gym.spaces.Box) and one.shape == two.shape
    return boxes and np.array_equal(one.low, two.low) and np.array_equal(one.high, two.high)


def _split(target: str) -> tuple[str, str]:
    match = _TARGET.fullmatch(target)
    if match is None:
        raise ValueError(f"{target!r} is not written as package.module:Name or path/to/file.py:Name")
    return match["source"], match["name"]


def _source_file(source: str) -> Path:
    if source.endswith(".py"):
        return Path(source)
    try:
        spec = importlib.util.find_spec(source)
    except ModuleNotFoundError:
        spec = None
    if spec is None or spec.origin is None or not Path(spec.origin).is_file():
        raise ValueError(f"there is no module {source!r} with a source file; path/to/file.py:Name takes any file")
    return Path(spec.origin)


@lru_cache(maxsize=16)
def _import(target: str, sha256: str) -> Any:
    """Import what a target names, once per process."""
    source, name = _split(target)
    path = _source_file(source)
    _check_unchanged(path, sha256)
    try:
        module = _run_file(path, f"_worldmodel_policy_{sha256}") if source.endswith(".py") else import_module(source)
    except Exception as error:
        raise ValueError(f"{target} cannot be imported ({type(error).__name__}: {error})") from error
    if not hasattr(module, name):
        raise ValueError(f"{source} has no {name}")
    return getattr(module, name)


def _run_file(path: Path, name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = sys.modules[name] = importlib.util.module_from_spec(spec)  # where its dataclasses look for themselves
    spec.loader.exec_module(module)
    return module
