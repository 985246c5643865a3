"""The benchmark of training at its smallest."""

import json
from pathlib import Path

import numpy as np

from worldmodel.scripts.speed.train import OURS, Train, train


def test_training_is_compared_with_the_faster_of_the_published_ways(tmp_path: Path) -> None:
    times = train(Train(size=32, frames=16, batch_size=4, steps=1, repeats=2, threads=(1,), device="cpu", out=tmp_path))
    written = json.loads((tmp_path / "result.json").read_text())
    assert [row["way"] for row in written["train"]] == [one.way for one in times]
    by_way = {one.way: one for one in times}
    best = by_way[written["published_best"]]
    assert by_way[OURS].faster == np.divide(best.ms, by_way[OURS].ms).tolist() and best.faster == [1.0, 1.0]
    assert set(written["first_look_ms"]) >= set(by_way)
