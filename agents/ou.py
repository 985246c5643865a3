"""Ornstein-Uhlenbeck processes: stationary chains of latents, and correlated action noise."""

from collections.abc import Sequence
from copy import copy
from typing import Any

import numpy as np
from stable_baselines3.common.noise import ActionNoise


def ou_chains(
    rho: float | Sequence[float], chains: int, length: int, latents: int, rng: np.random.Generator
) -> np.ndarray:
    """Draw stationary chains z' = ρ z + √(1 - ρ²) η with z, η ~ N(0, I), exact at any step.

    Args:
        rho: correlation across one step, one for all latents or one for each, in (-1, 1).
        chains: number of independent chains E.
        length: frames of each chain.
        latents: number of latents n.
        rng: source of randomness.

    Returns:
        (E, length, n) float32.

    Raises:
        ValueError: ρ lies outside (-1, 1), or there are neither one nor n of them.
    """
    rhos = np.asarray(rho, np.float64)
    if chains < 1 or length < 1:
        raise ValueError(f"{chains} chains of {length} frames: at least 1 of each")
    if rhos.shape not in ((), (latents,)) or not (np.abs(rhos) < 1).all():
        raise ValueError(f"rho is {rho}: give one number between -1 and 1, or {latents} of them")
    z = rng.standard_normal((length, chains, latents))
    for step in range(1, length):
        z[step] = rhos * z[step - 1] + np.sqrt(1 - rhos**2) * z[step]
    return z.swapaxes(0, 1).astype(np.float32)


class OrnsteinUhlenbeck(ActionNoise):
    """Action noise x' = x + θ (μ - x) dt + σ √dt η, for one environment or many, usable as SB3's ``action_noise``.

    Its stationary standard deviation is σ √(dt / (1 - (1 - θ dt)²)), about σ / √(2θ) for a small dt; its correlation
    time is 1/θ. Chains start from the stationary law, unless ``start`` is given.

    Args:
        dimensions: width of an action.
        theta: rate of return to the mean, per second.
        sigma: strength of the noise, in units of the action per square root of a second.
        dt: seconds of a step.
        mean: μ, in units of the action.
        envs: number of environments; more than one gives (envs, dimensions).
        start: where chains start, None for the stationary law.
        rng: source of randomness, never the global one.

    >>> noise = OrnsteinUhlenbeck(2, theta=1.0, sigma=0.5, dt=0.02, rng=np.random.default_rng(0))
    >>> noise().shape, noise().dtype
    ((2,), dtype('float32'))
    """

    def __init__(
        self,
        dimensions: int,
        *,
        theta: float,
        sigma: float,
        dt: float,
        mean: float = 0.0,
        envs: int = 1,
        start: float | None = None,
        rng: np.random.Generator,
    ) -> None:
        super().__init__()
        if envs < 1 or dimensions < 1:
            raise ValueError(f"noise for {envs} environments and {dimensions} actions: at least 1 of each")
        if not 0 < theta * dt < 2:
            raise ValueError(f"theta * dt is {theta * dt:.3g}: it must lie between 0 and 2 for a stationary process")
        self.decay, self.kick, self.mean, self.start = 1 - theta * dt, sigma * np.sqrt(dt), mean, start
        self.std = float(self.kick / np.sqrt(1 - self.decay**2))
        self._rng, self._single = rng, envs == 1
        self._x = np.zeros((envs, dimensions))
        self.reset()

    def __call__(self) -> np.ndarray:
        """Step every chain: (dimensions,) or (envs, dimensions) float32."""
        noise = self._rng.standard_normal(self._x.shape)
        self._x = self.mean + self.decay * (self._x - self.mean) + self.kick * noise
        return (self._x[0] if self._single else self._x).astype(np.float32)

    def reset(self, indices: Sequence[int] | None = None) -> None:
        """Restart all chains, or those of the environments ``indices``."""
        chosen = np.arange(len(self._x)) if indices is None else np.asarray(indices)
        if self.start is None:
            self._x[chosen] = self.mean + self.std * self._rng.standard_normal((len(chosen), self._x.shape[1]))
        else:
            self._x[chosen] = self.start

    def __deepcopy__(self, memo: dict[int, Any]) -> "OrnsteinUhlenbeck":
        """Copy with a generator of its own: SB3 copies one noise per environment, and all would draw the same."""
        twin = copy(self)
        twin._rng = self._rng.spawn(1)[0]
        twin._x = self._x.copy()
        twin.reset()
        return twin

    def __repr__(self) -> str:
        return f"OrnsteinUhlenbeck(std={self.std:.3g}, decay={self.decay:.3g})"
