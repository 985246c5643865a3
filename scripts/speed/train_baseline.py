"""The published pixel encoder and its training step, written down plainly: torch.nn layers, float32, AdamW.

Klindt, LeCun, Balestriero, arXiv 2605.26379: convolutions without normalisation, one forward pass per view, plain
LeJEPA with SIGReg of 17 knots and 256 slices by its formula.
"""

from collections.abc import Callable
from itertools import pairwise

import torch
from torch import Tensor, nn

from worldmodel.encoders.sigreg import random_slices, sigreg_direct


def published_encoder(dim: int, size: int = 64) -> nn.Sequential:
    """Return the encoder: pixels (B, 3, size, size) between 0 and 1 to embeddings (B, m)."""
    channels = (3, 32, 64, 128, 256)
    layers: list[nn.Module] = []
    for before, after in pairwise(channels):
        layers += [nn.Conv2d(before, after, kernel_size=4, stride=2, padding=1), nn.ReLU()]
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(256 * (size // 16) ** 2, dim))


def published_loss(views: Tensor, generator: torch.Generator, weight: float) -> Tensor:
    """Return LeJEPA of embeddings (2, B, m); as published, both views together are one sample of SIGReg."""
    alignment = (views - views.mean(0)).square().mean()
    regulariser = sigreg_direct(views.flatten(0, 1)[None], random_slices(views.shape[-1], 256, generator), knots=17)
    return (1 - weight) * alignment + weight * regulariser


def published_step(
    encoder: nn.Module, seed: int = 0, lr: float = 1e-3, weight: float = 0.05
) -> Callable[[Tensor, Tensor], Tensor]:
    """Return what takes one training step on the frames of B pairs, twice (B, H, W, 3) uint8, and returns the loss."""
    device = next(encoder.parameters()).device
    generator = torch.Generator(device).manual_seed(seed)
    optimiser = torch.optim.AdamW(encoder.parameters(), lr=lr)

    def step(first: Tensor, second: Tensor) -> Tensor:
        views = torch.stack([encoder(frames.permute(0, 3, 1, 2).float() / 255) for frames in (first, second)])
        loss = published_loss(views, generator, weight)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        return loss.detach()

    return step
