"""Embeddings through folded normalisation are those of the network itself, whatever happens to its weights."""

import copy
import pickle

import numpy as np
import pytest
import torch

from worldmodel.encoders.encoder import Encoder

CHANNELS = (8, 8, 8, 8, 8)


@pytest.fixture(scope="module")
def frames() -> np.ndarray:
    return np.random.default_rng(0).integers(0, 256, (8, 32, 48, 3), np.uint8)


@pytest.fixture
def encoder(frames: np.ndarray) -> Encoder:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        encoder = Encoder(dim=3, frame_size=(32, 48), channels=CHANNELS, hidden=16)
    encoder.fit_normalisation(frames)
    encoder(torch.from_numpy(frames))  # in training mode: the statistics of BatchNorm are no longer 0 and 1
    return encoder.freeze()


@torch.no_grad()
def unfolded(encoder: Encoder, frames: np.ndarray) -> np.ndarray:
    return encoder(torch.from_numpy(frames)).numpy()


def test_folding_changes_no_embedding(encoder: Encoder, frames: np.ndarray) -> None:
    h = encoder.encode(frames)
    np.testing.assert_allclose(h, unfolded(encoder, frames), rtol=1e-4, atol=1e-6)
    np.testing.assert_array_equal(h, encoder.encode(frames))


def test_embeddings_follow_weights_that_are_loaded(encoder: Encoder, frames: np.ndarray) -> None:
    before = encoder.encode(frames)
    with torch.random.fork_rng():
        torch.manual_seed(1)
        states = [Encoder(3, (32, 48), CHANNELS, 16).state_dict() for _ in range(2)]
    changes = (
        lambda: encoder.fit_normalisation(frames // 4),
        lambda: encoder.load_state_dict(states[0]),
        lambda: encoder.load_state_dict(states[1], assign=True),
        encoder.double,
    )
    for change in changes:
        change()
        after = encoder.encode(frames)
        np.testing.assert_allclose(after, unfolded(encoder, frames), rtol=1e-4, atol=1e-6)
        assert change == encoder.double or np.abs(after - before).max() > 1e-3
        before = after


def test_an_encoder_that_learns_is_never_folded(encoder: Encoder, frames: np.ndarray) -> None:
    learning = Encoder(3, (32, 48), CHANNELS, 16)
    learning.load_state_dict(encoder.state_dict())
    optimiser = torch.optim.AdamW(learning.parameters(), lr=0.1, fused=True)  # which counts no writing to its weights
    for _ in range(2):
        learning(torch.from_numpy(frames)).square().sum().backward()
        before = learning.encode(frames)
        optimiser.step()
        after = learning.encode(frames)
        assert learning.training and np.abs(after - before).max() > 1e-3
        np.testing.assert_array_equal(after, unfolded(learning.eval(), frames))
        learning.train()


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))], ids=["copy", "pickle"])
def test_a_copy_embeds_alike_and_goes_its_own_way(encoder: Encoder, frames: np.ndarray, copied) -> None:  # type: ignore[no-untyped-def]
    h = encoder.encode(frames)
    other = copied(encoder)
    np.testing.assert_array_equal(other.encode(frames), h)
    other.fit_normalisation(frames[:2])
    np.testing.assert_allclose(other.encode(frames), unfolded(other, frames), rtol=1e-4, atol=1e-6)
    np.testing.assert_array_equal(encoder.encode(frames), h)
