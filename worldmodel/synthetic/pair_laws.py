"""Pairs of latents of a law: what two views of a synthetic world have in common.

The convention is stated by ``views``: with ``"successor"`` one view follows from the other and their correlation is ρ;
with ``"parent"``, as in the paper's experiments, both follow from a common parent, z → y and z → y', each with
correlation ρ, so that the two views have correlation ρ². The theory then holds with ρ² in place of ρ.

Off the Gaussian, ρ alone does not make a pair. Three kinds (:mod:`worldmodel.synthetic.eigenfunctions` solves
each of them):

- ``additive``: ρz + √(1-ρ²) η with noise η of the same law, as in the paper; the views' own law is then another one.
- ``langevin``: the diffusion whose stationary law it is, reversible; the time between the views is chosen so that
  their correlation is the one asked for. Solved on cells, so values of one cell are alike in what follows from them.
- ``copula``: Gaussian pairs, each value mapped to the law.
"""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, Protocol

import numpy as np
import torch
from scipy.optimize import brentq
from torch import Tensor

from worldmodel.stats.laws import from_gaussian, gaussian_correlation, law_name, shape_of
from worldmodel.synthetic.eigenfunctions import langevin_modes

Views = Literal["parent", "successor"]
PairKind = Literal["additive", "langevin", "copula"]
_REACH, _POINTS = 8.0, 4001  # of the table that maps Gaussian values to a law


class PairLaw(Protocol):
    """Draws independent latents in pairs."""

    def pairs(self, count: int, latents: int, generator: torch.Generator) -> Tensor:
        """Draw (2, count, latents)."""
        ...


def view_correlation(rho: float, views: Views) -> float:
    """Return the correlation of the two views: ρ² with a common parent, ρ for a successor."""
    return rho**2 if views == "parent" else rho


def make_pair_law(kind: PairKind, law: str, rho: float, views: Views) -> PairLaw:
    """Return what draws pairs; a Gaussian law makes the three kinds one, and the additive one is quickest.

    Raises:
        ValueError: there is no such law, or ρ is outside (0, 1).
    """
    law = law_name(law)
    if not 0 < rho < 1:
        raise ValueError(f"rho is {rho}; the correlation of a latent must lie between 0 and 1")
    if kind == "additive" or shape_of(law) == 2:
        return Additive(law, rho, views)
    correlation = view_correlation(rho, views)
    return Langevin(law, correlation) if kind == "langevin" else Copula(law, correlation)


def draw(law: str, shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
    """Draw independent values of a law, standardised, float32: if g ~ Gamma(1/α), then s g^(1/α) has |x|'s law."""
    alpha, device = shape_of(law), generator.device
    if alpha == 2:
        return torch.randn(shape, generator=generator, device=device)
    if alpha == math.inf:
        return math.sqrt(12) * (torch.rand(shape, generator=generator, device=device) - 0.5)
    scale = math.exp(0.5 * (math.lgamma(1 / alpha) - math.lgamma(3 / alpha)))
    gamma = torch._standard_gamma(torch.full(shape, 1 / alpha, device=device), generator=generator)
    sign = torch.randint(0, 2, shape, generator=generator, device=device) * 2 - 1
    return scale * sign * gamma ** (1 / alpha)


@dataclass(frozen=True)
class Additive:
    """ρz + √(1-ρ²) η, all of one law."""

    law: str
    rho: float
    views: Views

    def pairs(self, count: int, latents: int, generator: torch.Generator) -> Tensor:
        """Draw (2, count, latents)."""
        noise = math.sqrt(1 - self.rho**2)
        if self.views == "parent":
            drawn = draw(self.law, (3, count, latents), generator)
            return torch.add(noise * drawn[1:], drawn[0], alpha=self.rho)
        drawn = draw(self.law, (2, count, latents), generator)
        return torch.stack([drawn[0], self.rho * drawn[0] + noise * drawn[1]])


@dataclass(frozen=True)
class Copula:
    """Gaussian pairs, each value mapped to the law by a table."""

    law: str
    correlation: float

    def pairs(self, count: int, latents: int, generator: torch.Generator) -> Tensor:
        """Draw (2, count, latents)."""
        gaussian = Additive("gaussian", gaussian_correlation(self.law, self.correlation), "successor")
        return self.mapped(gaussian.pairs(count, latents, generator))

    def mapped(self, z: Tensor) -> Tensor:
        """Map Gaussian values (...) to the law, linearly between the points of the table."""
        table = torch.from_numpy(_quantiles(self.law)).to(z)
        place = ((z + _REACH) * ((_POINTS - 1) / (2 * _REACH))).clamp(0, _POINTS - 1.001)
        cell = place.long()
        return torch.lerp(table[cell], table[cell + 1], place - cell)


@dataclass(frozen=True)
class Langevin:
    """A reversible diffusion on cells, and a place in the cell that the law decides."""

    law: str
    correlation: float

    def pairs(self, count: int, latents: int, generator: torch.Generator) -> Tensor:
        """Draw (2, count, latents)."""
        edges, first, rows = (torch.from_numpy(table).to(generator.device) for table in _tables(*self._key))
        levels = torch.rand(4, count, latents, generator=generator, device=generator.device)
        here = torch.searchsorted(first, levels[0]).clamp_max(len(first) - 1)
        there = torch.searchsorted(rows[here], levels[1, ..., None]).squeeze(-1).clamp_max(len(first) - 1)
        cells = torch.stack([here, there])
        return torch.lerp(edges[cells], edges[cells + 1], levels[2:])

    @property
    def _key(self) -> tuple[str, float]:
        return self.law, self.correlation


@lru_cache(maxsize=8)
def _quantiles(law: str) -> np.ndarray:
    return from_gaussian(law, np.linspace(-_REACH, _REACH, _POINTS)).astype(np.float32)


@lru_cache(maxsize=8)
def _tables(law: str, correlation: float, cells: int = 400) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return edges (K + 1,), the cumulative masses (K,) and those of what follows each cell (K, K), float32."""
    modes = langevin_modes(law, cells)
    mass, x = modes.cells.mass, modes.cells.x
    squares = ((mass * x) @ modes.functions) ** 2
    share = squares / squares.sum()
    # x keeps the correlation Σ a_k² exp(-λ_k t); the slowest rate bounds the time from both sides
    longest = 2 * math.log(1 / min(correlation, 0.99)) / modes.values[0] + 50 / modes.values[0]
    time = brentq(lambda t: share @ np.exp(-modes.values * t) - correlation, 0.0, longest)
    rows = 1 + (modes.functions * np.exp(-modes.values * time)) @ modes.functions.T
    rows = np.maximum(rows, 0) * mass
    rows /= rows.sum(1, keepdims=True)
    tables = modes.cells.edges, np.cumsum(mass), np.cumsum(rows, axis=1)
    return tuple(table.astype(np.float32) for table in tables)  # type: ignore[return-value]
