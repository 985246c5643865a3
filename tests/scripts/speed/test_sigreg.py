"""The benchmark of SIGReg at its smallest, and how near to the formula it stays."""

import json
from pathlib import Path

import numpy as np
import torch

from worldmodel.encoders.sigreg import random_slices, sigreg
from worldmodel.scripts.speed.sigreg import Sigreg, relative_errors, sigreg_times


def test_sigreg_keeps_the_precision_of_float32(tmp_path: Path) -> None:
    (row,) = sigreg_times(Sigreg(((2, 16, 3),), slices=8, calls=1, repeats=2, device="cpu", out=tmp_path))
    written = json.loads((tmp_path / "result.json").read_text())["sigreg"][0]
    assert written["shape"] == [2, 16, 3] and len(row.faster) == 2
    assert row.faster == np.divide(row.formula, row.ours).tolist()
    h, directions = torch.randn(2, 128, 4), random_slices(4, 64, torch.Generator().manual_seed(0))
    assert max(relative_errors(sigreg, h, directions)) < 1e-4
