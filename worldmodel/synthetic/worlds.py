"""Synthetic worlds: latents of a known law, in pairs, seen through a known mixing."""

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from worldmodel.stats.laws import law_name
from worldmodel.synthetic.mixings import Mixing, MixingName, make_mixing
from worldmodel.synthetic.pair_laws import PairKind, PairLaw, Views, draw, make_pair_law, view_correlation


@dataclass(frozen=True)
class World:
    """Latents z of independent coordinates, pairs of them, and observations x = g(z).

    Attributes:
        latents: n.
        mixing: g.
        law: of each latent: gaussian, laplace, uniform or gennorm:ALPHA, with mean 0 and variance 1.
        rho: correlation ρ of each latent with its parent, or with its successor.
        views: what makes a pair; see :mod:`worldmodel.synthetic.pair_laws`.
        pairs: how pairs of another law than the Gaussian arise.
        layers: of a coupling.
        seed: of a coupling's weights.

    Raises:
        ValueError: a mixing, a law or a correlation that there is not.

    >>> World(law="uniform", mixing="banana", rho=0.9).correlation
    0.81
    """

    latents: int = 2
    mixing: MixingName = "spiral"
    law: str = "gaussian"
    rho: float = 0.95
    views: Views = "parent"
    pairs: PairKind = "additive"
    layers: int = 4
    seed: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "law", law_name(self.law))
        _ = self.mix, self.pair_law  # raise now what they raise

    @cached_property
    def mix(self) -> Mixing:
        """The mixing."""
        return make_mixing(self.mixing, self.latents, self.layers, self.seed)

    @cached_property
    def pair_law(self) -> PairLaw:
        """What draws pairs."""
        return make_pair_law(self.pairs, self.law, self.rho, self.views)

    @property
    def correlation(self) -> float:
        """The true correlation of the two views: ρ² with a common parent, ρ for a successor."""
        return round(view_correlation(self.rho, self.views), 12)

    def draw_pairs(self, count: int, generator: torch.Generator, dtype: torch.dtype = torch.float32) -> Tensor:
        """Draw latents (2, count, n) of the two views, on the generator's device."""
        return self.pair_law.pairs(count, self.latents, generator).to(dtype)

    def draw(self, count: int, generator: torch.Generator, dtype: torch.dtype = torch.float32) -> Tensor:
        """Draw latents (count, n) of the law itself."""
        return draw(self.law, (count, self.latents), generator).to(dtype)

    def observe(self, z: Tensor) -> Tensor:
        """Mix latents (..., n) to observations (..., n)."""
        return self.mix(z)
