"""That the baseline of training is the published one."""

import numpy as np
import pytest
import torch

from worldmodel.encoders.objectives import LeJEPA
from worldmodel.encoders.sigreg import random_slices, sigreg
from worldmodel.scripts.speed.train_baseline import published_encoder, published_loss, published_step
from worldmodel.scripts.speed.turns import torch_threads


def test_the_published_encoder_is_that_of_the_paper() -> None:
    layers = [tuple(weight.shape) for weight in published_encoder(2).state_dict().values()]
    convolutions = [(32, 3, 4, 4), (64, 32, 4, 4), (128, 64, 4, 4), (256, 128, 4, 4)]
    assert [shape for shape in layers if len(shape) == 4] == convolutions and (2, 256 * 4 * 4) in layers


def test_the_published_loss_is_plain_lejepa_on_one_sample() -> None:
    views = torch.randn(2, 32, 3, generator=torch.Generator().manual_seed(0))
    published = published_loss(views, torch.Generator().manual_seed(1), weight=0.1)
    directions = random_slices(3, 256, torch.Generator().manual_seed(1))
    plain = LeJEPA(weight=0.1, whiten=False)(views, torch.Generator())
    by_hand = 0.9 * plain.alignment / 2 + 0.1 * sigreg(views.reshape(1, 64, 3), directions)
    assert float(published) == pytest.approx(float(by_hand), rel=1e-4)


def test_the_published_step_learns() -> None:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        step = published_step(published_encoder(2, 16))
    frames = torch.randint(0, 256, (16, 16, 16, 3), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    with torch_threads(1):
        losses = [float(step(frames, frames)) for _ in range(30)]
    assert np.mean(losses[-5:]) < np.mean(losses[:5])
