"""The benchmark of embedding frames at its smallest."""

import json
from pathlib import Path

import numpy as np
import torch

from worldmodel.scripts.speed.encode import Encode, encode, nature_cnn


def test_frames_are_embedded_as_by_a_policy_of_sb3(tmp_path: Path) -> None:
    options = Encode((1, 3), size=48, frames=4, repeats=2, device="cpu", out=tmp_path)
    times = encode(options)
    rows = json.loads((tmp_path / "result.json").read_text())["encode"]
    assert [row["batch"] for row in rows] == [1, 3] == [one.batch for one in times]
    assert all(one.faster == np.divide(one.nature_cnn, one.ours).tolist() for one in times)
    frames = np.random.default_rng(0).integers(0, 256, (3, 48, 48, 3), np.uint8)
    assert nature_cnn(options, torch.device("cpu"))(frames).shape == (3, 512)
