"""Invertible mixings x = g(z) of synthetic worlds, as in Klindt, LeCun, Balestriero (arXiv 2605.26379).

Each is a small object with a call and an ``inverse``, both on tensors (..., n).
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, Protocol, get_args

import torch
from torch import Tensor

MixingName = Literal["spiral", "banana", "sinusoid", "coupling"]


class Mixing(Protocol):
    """An invertible map of latents to observations."""

    def __call__(self, z: Tensor) -> Tensor:
        """Mix latents (..., n) to observations (..., n)."""
        ...

    def inverse(self, x: Tensor) -> Tensor:
        """Return the latents (..., n) of observations (..., n)."""
        ...


@dataclass(frozen=True)
class Spiral:
    """x = R(π‖z‖) z: every circle is turned by an angle that grows with its radius. It keeps volumes."""

    def __call__(self, z: Tensor) -> Tensor:
        """Mix (..., 2)."""
        return _turned(z, 1.0)

    def inverse(self, x: Tensor) -> Tensor:
        """Unroll (..., 2): turning keeps the radius."""
        return _turned(x, -1.0)


@dataclass(frozen=True)
class Banana:
    """x = (z₀, z₁ + z₀²)."""

    def __call__(self, z: Tensor) -> Tensor:
        """Mix (..., 2)."""
        return torch.stack([z[..., 0], z[..., 1] + z[..., 0] ** 2], dim=-1)

    def inverse(self, x: Tensor) -> Tensor:
        """Straighten (..., 2)."""
        return torch.stack([x[..., 0], x[..., 1] - x[..., 0] ** 2], dim=-1)


@dataclass(frozen=True)
class Sinusoid:
    """x = (z₀ + sin 1.5 z₁, z₁)."""

    def __call__(self, z: Tensor) -> Tensor:
        """Mix (..., 2)."""
        return torch.stack([z[..., 0] + torch.sin(1.5 * z[..., 1]), z[..., 1]], dim=-1)

    def inverse(self, x: Tensor) -> Tensor:
        """Straighten (..., 2)."""
        return torch.stack([x[..., 0] - torch.sin(1.5 * x[..., 1]), x[..., 1]], dim=-1)


@dataclass(frozen=True, eq=False)
class Coupling:
    """Additive coupling layers (NICE, RealNVP): by turns, b ← b + tanh(a W) and a ← a + tanh(b W), with z = (a, b).

    Any number of latents from 2 on: a has ⌊n/2⌋ of them, b the rest.

    Attributes:
        weights: one matrix per layer, by turns (⌊n/2⌋, ⌈n/2⌉) and (⌈n/2⌉, ⌊n/2⌋).
    """

    weights: tuple[Tensor, ...]

    @classmethod
    def random(cls, latents: int, layers: int, seed: int) -> "Coupling":
        """Draw orthonormal columns or rows, times 2, as the paper does for even n."""
        generator = torch.Generator().manual_seed(seed)
        shapes = coupling_shapes(latents, layers)
        return cls(tuple(2.0 * _orthonormal(rows, columns, generator) for rows, columns in shapes))

    def __call__(self, z: Tensor) -> Tensor:
        """Mix (..., n)."""
        return self._through(z, range(len(self.weights)), 1.0)

    def inverse(self, x: Tensor) -> Tensor:
        """Undo the layers, last one first."""
        return self._through(x, reversed(range(len(self.weights))), -1.0)

    def _through(self, z: Tensor, layers: Iterable[int], sign: float) -> Tensor:
        a, b = z.split(split_of(z.shape[-1]), dim=-1)
        for layer in layers:
            weight = self.weights[layer].to(z)
            if layer % 2 == 0:
                b = torch.add(b, torch.tanh(a @ weight), alpha=sign)
            else:
                a = torch.add(a, torch.tanh(b @ weight), alpha=sign)
        return torch.cat([a, b], dim=-1)


def make_mixing(name: MixingName, latents: int, layers: int = 4, seed: int = 0) -> Mixing:
    """Return a mixing by name.

    Args:
        name: spiral, banana, sinusoid (two latents each) or coupling.
        latents: n.
        layers: of the coupling.
        seed: of its weights.

    Raises:
        ValueError: there is no such mixing, or not for so many latents.
    """
    if name not in get_args(MixingName):
        raise ValueError(f"unknown mixing {name!r}: take one of {', '.join(get_args(MixingName))}")
    if name == "coupling":
        if latents < 2 or layers < 1:
            raise ValueError(f"a coupling of {latents} latents and {layers} layers: it takes at least 2 and 1")
        return Coupling.random(latents, layers, seed)
    if latents != 2:
        raise ValueError(f"{name} mixes 2 latents, not {latents}: take the coupling")
    mixings: dict[str, Mixing] = {"spiral": Spiral(), "banana": Banana(), "sinusoid": Sinusoid()}
    return mixings[name]


def split_of(latents: int) -> list[int]:
    """Return the sizes of the two parts of a coupling: ⌊n/2⌋ and ⌈n/2⌉."""
    return [latents // 2, latents - latents // 2]


def coupling_shapes(latents: int, layers: int) -> list[tuple[int, int]]:
    """Return the shape (from, to) of each layer's matrix."""
    a, b = split_of(latents)
    return [(a, b) if layer % 2 == 0 else (b, a) for layer in range(layers)]


def _turned(z: Tensor, direction: float) -> Tensor:
    angle = direction * torch.pi * z.norm(dim=-1)
    cos, sin = angle.cos(), angle.sin()
    return torch.stack([cos * z[..., 0] - sin * z[..., 1], sin * z[..., 0] + cos * z[..., 1]], dim=-1)


def _orthonormal(rows: int, columns: int, generator: torch.Generator) -> Tensor:
    long, short = max(rows, columns), min(rows, columns)
    basis, _ = torch.linalg.qr(torch.randn(long, short, generator=generator, dtype=torch.float64))
    return basis if rows >= columns else basis.T
