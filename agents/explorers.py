"""Explorers: what drives the collection of data.

A *posed* explorer draws latents and puts the simulator there, at rest; a *driving* explorer acts through the actuators.
Each is a small frozen dataclass, whose fields stand on the data card.
"""

from dataclasses import dataclass, fields
from typing import Protocol, runtime_checkable

import numpy as np

from worldmodel.agents.ou import OrnsteinUhlenbeck, ou_chains


@runtime_checkable
class PosedExplorer(Protocol):
    """Draws chains of latents."""

    def chains(self, episodes: int, length: int, latents: int, rng: np.random.Generator) -> np.ndarray:
        """Draw (episodes, length, latents) standardised latents, float32."""
        ...


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


@dataclass(frozen=True)
class LatentOU:
    """Stationary Ornstein-Uhlenbeck chains on the standardised latents.

    Attributes:
        rho: correlation of every latent across one control step, or one number per latent.
    """

    rho: float | tuple[float, ...] = 0.9

    def __post_init__(self) -> None:
        if not (np.abs(self.rho) < 1).all():
            raise ValueError(f"rho is {self.rho}: every correlation lies between -1 and 1")

    def chains(self, episodes: int, length: int, latents: int, rng: np.random.Generator) -> np.ndarray:
        """Draw (episodes, length, latents)."""
        return ou_chains(self.rho, episodes, length, latents, rng)


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


Explorer = PosedExplorer | DrivingExplorer

EXPLORERS: dict[str, type] = {"latent-ou": LatentOU, "action-ou": ActionOU, "random": RandomActions}


def explorer(text: str) -> Explorer:
    """Make an explorer from its name and numbers, in the order of its fields; commas give one number per latent.

    >>> explorer("latent-ou:0.8")
    LatentOU(rho=0.8)
    >>> explorer("latent-ou:0.9,0.8")
    LatentOU(rho=(0.9, 0.8))
    >>> explorer("action-ou:0.5:0.2")
    ActionOU(std=0.5, correlation_time=0.2)

    Raises:
        ValueError: there is no such explorer, or it does not take these numbers.
    """
    name, *numbers = text.split(":")
    if name not in EXPLORERS:
        raise ValueError(f"unknown explorer {name!r}: take one of {', '.join(EXPLORERS)}")
    kind = EXPLORERS[name]
    names = [field.name for field in fields(kind)]
    if len(numbers) > len(names):
        raise ValueError(f"{text!r}: {name} takes at most {len(names)} number(s), {':'.join(names)}")
    try:
        values = [_numbers(number) for number in numbers]
    except ValueError:
        raise ValueError(f"{text!r}: write {':'.join([name, *names])} with numbers") from None
    if kind is not LatentOU and any(isinstance(value, tuple) for value in values):
        raise ValueError(f"{text!r}: only latent-ou takes several numbers, one per latent")
    return kind(*values)


def _numbers(text: str) -> float | tuple[float, ...]:
    values = tuple(float(number) for number in text.split(","))
    return values if len(values) > 1 else values[0]
