"""The benchmark of reaching an R² at its smallest."""

import json
from pathlib import Path

import pytest

from worldmodel.scripts.speed.reach import Reach, reach


@pytest.mark.filterwarnings("ignore:the embedding collapses")
def test_reaching_draws_its_frames_anew(tmp_path: Path) -> None:
    options = Reach("cartpole", frames=200, steps=2, seeds=(3,), processes=1, device="cpu", out=tmp_path)
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "left-over").touch()
    (run,) = reach(options)
    assert not (tmp_path / "data" / "left-over").exists()
    (row,) = json.loads((tmp_path / "result.json").read_text())["reach"]
    assert row["seconds"] == pytest.approx(row["collect_seconds"] + row["train_seconds"] + row["measure_seconds"])
    assert run.reached == (min(run.r2_per_latent) >= options.target) and len(run.r2_per_latent) == 2
