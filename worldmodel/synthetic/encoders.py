"""Encoders of vectors, several initialisations at once: every weight has a leading dimension of copies.

Copies share each batch, and one batched matrix product serves them all, so three copies of a small network cost little
more than one. They do not see each other: the loss is the sum of theirs, and Adam treats every weight by itself.
"""

import copy
import math
from itertools import pairwise
from typing import Protocol

import torch
from torch import Tensor, nn

from worldmodel.synthetic.mixings import coupling_shapes, split_of


class VectorEncoder(Protocol):
    """Observations (B, d) to embeddings (K, B, m) of K copies."""

    def __call__(self, x: Tensor) -> Tensor:
        """Encode with every copy."""
        ...


class MLPEncoder(nn.Module):
    """Linear layers and GELU, K copies of them.

    Args:
        inputs: d.
        outputs: m.
        copies: K.
        hidden: width.
        layers: hidden layers.
        generator: decides the initial weights, uniform as torch's own linear layers have them.
    """

    def __init__(
        self, inputs: int, outputs: int, copies: int, hidden: int, layers: int, generator: torch.Generator
    ) -> None:
        super().__init__()
        sizes = [inputs, *[hidden] * layers, outputs]
        self.weights, self.biases = nn.ParameterList(), nn.ParameterList()
        for fan_in, fan_out in pairwise(sizes):
            bound = 1 / math.sqrt(fan_in)
            self.weights.append(_uniform((copies, fan_in, fan_out), bound, generator))
            self.biases.append(_uniform((copies, 1, fan_out), bound, generator))

    def forward(self, x: Tensor) -> Tensor:
        """Encode (B, d) to (K, B, m)."""
        h = x.expand(len(self.weights[0]), *x.shape)
        for layer, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            if layer:
                h = nn.functional.gelu(h)
            h = torch.baddbmm(bias, h, weight)
        return h


class CouplingEncoder(nn.Module):
    """The inverse of a coupling mixing with weights of its own: it can be exact, and it keeps volumes.

    Args:
        latents: n, of observations and embeddings alike.
        copies: K.
        layers: of the mixing.
        generator: decides the initial weights.
    """

    def __init__(self, latents: int, copies: int, layers: int, generator: torch.Generator) -> None:
        super().__init__()
        self.weights = nn.ParameterList()
        for rows, columns in coupling_shapes(latents, layers):
            weight = torch.randn(copies, rows, columns, generator=generator, device=generator.device)
            self.weights.append(nn.Parameter(weight / math.sqrt(rows)))

    def forward(self, x: Tensor) -> Tensor:
        """Encode (B, n) to (K, B, n)."""
        a, b = x.expand(len(self.weights[0]), *x.shape).split(split_of(x.shape[-1]), dim=-1)
        for layer in reversed(range(len(self.weights))):
            if layer % 2 == 0:
                b = b - torch.tanh(torch.bmm(a, self.weights[layer]))
            else:
                a = a - torch.tanh(torch.bmm(b, self.weights[layer]))
        return torch.cat([a, b], dim=-1)


def one_copy(encoder: nn.Module, optimiser: torch.optim.Adam, index: int) -> tuple[nn.Module, torch.optim.Adam]:
    """Return an encoder of one of the copies alone, and an optimiser that knows of it what the old one knew."""
    kept = slice(index, index + 1)
    alone = copy.deepcopy(encoder)
    for parameters in alone.children():
        assert isinstance(parameters, nn.ParameterList)
        for place, parameter in enumerate(parameters):
            parameters[place] = nn.Parameter(parameter.detach()[kept].clone())
    state = optimiser.state_dict()
    for values in state["state"].values():
        values |= {name: value[kept].clone() for name, value in values.items() if value.ndim}
    optimiser = torch.optim.Adam(alone.parameters(), lr=optimiser.defaults["lr"], fused=True)
    optimiser.load_state_dict(state)
    return alone, optimiser


def _uniform(shape: tuple[int, ...], bound: float, generator: torch.Generator) -> nn.Parameter:
    return nn.Parameter((2 * torch.rand(shape, generator=generator, device=generator.device) - 1) * bound)
