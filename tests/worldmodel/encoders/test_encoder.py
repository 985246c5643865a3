from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from worldmodel.encoders.encoder import Encoder


@pytest.fixture(scope="module")
def frames() -> np.ndarray:
    return np.random.default_rng(0).integers(0, 256, (6, 64, 64, 3), np.uint8)


@pytest.fixture(scope="module")
def encoder(frames: np.ndarray) -> Encoder:
    torch.manual_seed(0)
    encoder = Encoder(dim=3)
    encoder.fit_normalisation(frames)
    return encoder.eval()


def test_both_channel_orders_give_the_same_embedding(encoder: Encoder, frames: np.ndarray) -> None:
    np.testing.assert_array_equal(encoder.encode(frames), encoder.encode(frames.transpose(0, 3, 1, 2)))


def test_an_embedding_does_not_depend_on_its_batch(encoder: Encoder, frames: np.ndarray) -> None:
    np.testing.assert_allclose(encoder.encode(frames)[:2], encoder.encode(frames[:2]), atol=1e-5)
    np.testing.assert_allclose(encoder.encode(frames, batch_size=1), encoder.encode(frames), atol=1e-5)


@pytest.mark.parametrize(
    "bad, line",
    [
        (np.zeros((2, 64, 64, 3), np.float32), "takes uint8"),
        (np.zeros((2, 32, 64, 3), np.uint8), r"takes \(B, 64, 64, 3\)"),
        (np.zeros((2, 64, 64, 4), np.uint8), r"takes \(B, 64, 64, 3\)"),
        (np.zeros((64, 64, 3), np.uint8), r"takes \(B, 64, 64, 3\)"),
    ],
    ids=["float", "size", "channels", "no batch"],
)
def test_frames_that_do_not_fit_are_refused_in_one_line(encoder: Encoder, bad: np.ndarray, line: str) -> None:
    with pytest.raises(ValueError, match=line):
        encoder.encode(bad)


def test_a_saved_encoder_loads_equal(encoder: Encoder, frames: np.ndarray, tmp_path: Path) -> None:
    encoder.save_pretrained(tmp_path)
    loaded = Encoder.load(tmp_path)
    np.testing.assert_array_equal(loaded.encode(frames), encoder.encode(frames))
    assert (loaded.dim, loaded.frame_size) == (3, (64, 64)) and not list(tmp_path.glob("*.pkl"))


def test_a_rectangular_encoder_loads_with_its_size(tmp_path: Path) -> None:
    Encoder(dim=1, frame_size=(48, 80)).save_pretrained(tmp_path)
    assert Encoder.from_pretrained(tmp_path).frame_size == (48, 80)


def test_a_damaged_or_missing_file_is_one_clear_error(encoder: Encoder, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"no config\.json"):
        Encoder.load(tmp_path)
    encoder.save_pretrained(tmp_path)
    (tmp_path / "model.safetensors").write_bytes(b"not weights")
    for load in (Encoder.load, Encoder.from_pretrained):
        with pytest.raises(ValueError, match="does not hold the weights"):
            load(tmp_path)


def test_foreign_weights_are_one_clear_line(encoder: Encoder, tmp_path: Path) -> None:
    encoder.save_pretrained(tmp_path)
    save_file({"policy.weight": torch.zeros(2, 2)}, tmp_path / "model.safetensors")
    with pytest.raises(ValueError, match="does not hold the weights") as error:
        Encoder.from_pretrained(tmp_path)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("prefix", ["_orig_mod.", "module.", "module._orig_mod.", "_orig_mod.module."])
def test_weights_of_a_compiled_or_parallel_encoder_load_equal(
    encoder: Encoder, frames: np.ndarray, tmp_path: Path, prefix: str
) -> None:
    encoder.save_pretrained(tmp_path)
    save_file({prefix + name: value for name, value in encoder.state_dict().items()}, tmp_path / "model.safetensors")
    np.testing.assert_array_equal(Encoder.from_pretrained(tmp_path).encode(frames), encoder.encode(frames))


def test_a_frozen_encoder_stays_frozen_under_a_parent_that_trains(frames: np.ndarray) -> None:
    encoder = Encoder(dim=2).freeze()
    before = {name: value.clone() for name, value in encoder.state_dict().items()}
    parent = torch.nn.Sequential(encoder).train()
    assert not parent(torch.from_numpy(frames)).requires_grad
    assert all(torch.equal(before[name], value) for name, value in encoder.state_dict().items())


def test_weights_of_another_shape_are_refused(encoder: Encoder, tmp_path: Path) -> None:
    encoder.save_pretrained(tmp_path)
    config = (tmp_path / "config.json").read_text().replace('"dim": 3', '"dim": 2')
    (tmp_path / "config.json").write_text(config)
    with pytest.raises(ValueError, match="does not hold the weights"):
        Encoder.load(tmp_path)


def test_encoding_changes_nothing_in_the_encoder(frames: np.ndarray) -> None:
    encoder = Encoder(dim=2).train()
    before = {name: value.clone() for name, value in encoder.state_dict().items()}
    encoder.encode(frames)
    assert encoder.training
    assert all(torch.equal(before[name], value) for name, value in encoder.state_dict().items())


def test_a_size_that_does_not_divide_is_refused() -> None:
    with pytest.raises(ValueError, match="multiples of 16"):
        Encoder(frame_size=(60, 64))
