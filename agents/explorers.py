"""Explorers: what drives the collection of data.

A *posed* explorer draws latents and puts the simulator there, at rest; a *driving* explorer acts through the actuators
(:mod:`worldmodel.agents.policies` says how). Each is a small frozen dataclass, whose fields stand on the data card.
"""

import difflib
import re
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import partial
from typing import Any, Protocol, cast, runtime_checkable

import numpy as np

from worldmodel.agents.ou import OrnsteinUhlenbeck, ou_chains
from worldmodel.agents.policies import (
    ALGORITHMS,
    CallablePolicy,
    DrivingExplorer,
    EnvironmentExplorer,
    Mixture,
    Policy,
    SB3Policy,
    is_callable_target,
)
from worldmodel.agents.tracking import TrackingOU
from worldmodel.stats.laws import from_gaussian, gaussian_correlation, law_name


@runtime_checkable
class PosedExplorer(Protocol):
    """Draws chains of latents."""

    def chains(self, episodes: int, length: int, latents: int, rng: np.random.Generator) -> np.ndarray:
        """Draw (episodes, length, latents) standardised latents, float32."""
        ...


@dataclass(frozen=True)
class LatentOU:
    """Stationary Ornstein-Uhlenbeck chains on the standardised latents.

    Attributes:
        rho: correlation of every latent across one control step, or one number per latent.
    """

    rho: float | tuple[float, ...] = 0.9

    def __post_init__(self) -> None:
        _check_correlations(self.rho)

    def chains(self, episodes: int, length: int, latents: int, rng: np.random.Generator) -> np.ndarray:
        """Draw (episodes, length, latents)."""
        return ou_chains(self.rho, episodes, length, latents, rng)


@dataclass(frozen=True)
class LatentLaw:
    """Stationary chains of the standardised latents that are not Gaussian: OU chains, mapped value by value.

    The map is exact, so every value has the law, mean 0 and variance 1. It lowers correlations; those of the OU chains
    are raised so that they are right across one step. Across k steps they are close to, not exactly, ρ^k.

    Attributes:
        law: uniform, laplace, gaussian or gennorm:ALPHA (see :mod:`worldmodel.stats.laws`).
        rho: correlation of every latent across one control step, or one number per latent.
    """

    law: str
    rho: float | tuple[float, ...] = 0.9

    def __post_init__(self) -> None:
        object.__setattr__(self, "law", law_name(self.law))
        _check_correlations(self.rho)

    def chains(self, episodes: int, length: int, latents: int, rng: np.random.Generator) -> np.ndarray:
        """Draw (episodes, length, latents)."""
        rhos = [gaussian_correlation(self.law, rho) for rho in np.atleast_1d(self.rho).tolist()]
        z = ou_chains(rhos if isinstance(self.rho, tuple) else rhos[0], episodes, length, latents, rng)
        return from_gaussian(self.law, z).astype(np.float32)


@dataclass(frozen=True)
class ActionOU:
    """Ornstein-Uhlenbeck noise on the actions, clipped to ±1.

    Attributes:
        std: stationary standard deviation, in units of the action.
        correlation_time: seconds after which the correlation is 1/e.
    """

    std: float = 0.5
    correlation_time: float = 0.2

    def __post_init__(self) -> None:
        if not (self.std > 0 and self.correlation_time > 0):
            raise ValueError(f"{self}: std and correlation_time have to be positive")

    def policy(self, actions: int, dt: float, rng: np.random.Generator) -> Policy:
        """Return the policy of one episode."""
        decay = np.exp(-dt / self.correlation_time)
        sigma = self.std * np.sqrt((1 - decay**2) / dt)
        noise = OrnsteinUhlenbeck(actions, theta=(1 - decay) / dt, sigma=sigma, dt=dt, rng=rng)
        return lambda observation: np.clip(noise(), -1, 1)


@dataclass(frozen=True)
class RandomActions:
    """Independent uniform actions."""

    def policy(self, actions: int, dt: float, rng: np.random.Generator) -> Policy:
        """Return the policy of one episode."""
        return lambda observation: rng.uniform(-1, 1, actions).astype(np.float32)


Explorer = PosedExplorer | DrivingExplorer | EnvironmentExplorer


def explorer(text: str) -> Explorer:
    """Make an explorer from text. What stands in brackets may be left out.

    - ``latent-ou[:RHO]``: RHO is one number, or one per latent with commas.
    - ``latent-law:LAW[:RHO]``: LAW is uniform, laplace, gaussian or gennorm:ALPHA.
    - ``action-ou[:STD[:SECONDS]]``, ``random``.
    - ``tracking-ou[:SECONDS[:STD]]``: SECONDS is the correlation time; without it, the shortest that the robot follows.
    - ``sac:PATH[:deterministic]``, and so for a2c, ddpg, ppo and td3: a model file of stable-baselines3. Loading one
      can run code: take only files that you trust.
    - ``package.module:Name`` or ``path/to/file.py:Name``: a function or class in Python.
    - ``mix:EPSILON[:STEPS]:FIRST+SECOND``: each is an explorer that drives, and FIRST ends at the first plus sign.

    >>> explorer("latent-ou:0.8")
    LatentOU(rho=0.8)
    >>> explorer("latent-ou:0.9,0.8")
    LatentOU(rho=(0.9, 0.8))
    >>> explorer("latent-law:gennorm:4:0.9")
    LatentLaw(law='gennorm:4', rho=0.9)
    >>> explorer("action-ou:0.5:0.2")
    ActionOU(std=0.5, correlation_time=0.2)
    >>> explorer("tracking-ou:2")
    TrackingOU(correlation_time=2.0, std=1.0)
    >>> explorer("mix:0.2:10:tracking-ou+random")
    Mixture(first=TrackingOU(correlation_time=None, std=1.0), second=RandomActions(), epsilon=0.2, segment=10)

    Raises:
        ValueError: there is no such explorer, or it is written in another way; the line says how, or names the nearest.
    """
    name = text.partition(":")[0]
    if name in EXPLORERS:
        return EXPLORERS[name](text)
    if is_callable_target(text):
        return CallablePolicy(text)
    nearest = difflib.get_close_matches(name, EXPLORERS, n=3, cutoff=0.4)
    hint = f"nearest: {', '.join(nearest)}" if nearest else f"take one of {', '.join(EXPLORERS)}, or module:Name"
    raise ValueError(f"unknown explorer {name!r}; {hint}")


def _numbered(kind: type[Any], text: str) -> Explorer:
    """Read an explorer whose fields are numbers."""
    name, *numbers = text.split(":")
    names = [field.name for field in fields(kind)]
    if len(numbers) > len(names):
        raise ValueError(f"{text!r}: {name} takes at most {len(names)} number(s), {':'.join(names)}")
    try:
        values = [_numbers(number) for number in numbers]
    except ValueError:
        raise ValueError(f"{text!r}: write {':'.join([name, *names])} with numbers") from None
    if kind is not LatentOU and any(isinstance(value, tuple) for value in values):
        raise ValueError(f"{text!r}: only latent-ou and latent-law take several numbers, one per latent")
    return kind(*values)


def _latent_law(text: str) -> LatentLaw:
    match = re.fullmatch(r"latent-law:(?P<law>gennorm:[^:]+|[^:]+)(?::(?P<rho>[^:]+))?", text)
    try:
        if match is not None:
            return LatentLaw(match["law"], *([_numbers(match["rho"])] if match["rho"] else []))
    except ValueError as error:
        raise ValueError(f"{text!r}: {error}") from None
    raise ValueError(f"{text!r}: write latent-law:LAW:RHO, such as latent-law:uniform:0.9")


def _sb3(text: str) -> SB3Policy:
    algo, _, path = text.partition(":")
    file = path.removesuffix(":deterministic")
    if not file:
        raise ValueError(f"{text!r}: write {algo}:PATH of a model file")
    return SB3Policy(file, algo, deterministic=file != path)


def _mixture(text: str) -> Mixture:
    number = r"\d*\.?\d+(?:e-\d+)?"
    match = re.fullmatch(rf"mix:(?P<epsilon>{number})(?::(?P<steps>\d+))?:(?P<first>[^+]+)\+(?P<second>.+)", text)
    if match is None:
        raise ValueError(f"{text!r}: write mix:EPSILON:FIRST+SECOND or mix:EPSILON:STEPS:FIRST+SECOND")
    first, second = (cast(Any, explorer(match[which])) for which in ("first", "second"))  # a posed one is refused
    return Mixture(first, second, float(match["epsilon"]), int(match["steps"] or 1))


def _numbers(text: str) -> float | tuple[float, ...]:
    values = tuple(float(number) for number in text.split(","))
    return values if len(values) > 1 else values[0]


def _check_correlations(rho: float | tuple[float, ...]) -> None:
    if not (np.abs(rho) < 1).all():
        raise ValueError(f"rho is {rho}: every correlation lies between -1 and 1")


EXPLORERS: dict[str, Callable[[str], Explorer]] = {
    "latent-ou": partial(_numbered, LatentOU),
    "latent-law": _latent_law,
    "action-ou": partial(_numbered, ActionOU),
    "random": partial(_numbered, RandomActions),
    "tracking-ou": partial(_numbered, TrackingOU),
    "mix": _mixture,
    **dict.fromkeys(ALGORITHMS, _sb3),
}
"""What reads each explorer from text, by name."""
