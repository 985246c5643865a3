"""The benchmark of growth at its smallest."""

import json
from pathlib import Path

import numpy as np
import pytest

from worldmodel.scripts.speed.growth import Growth, exponent, growth


def test_growth_is_measured_at_the_first_sizes_of_every_part(tmp_path: Path) -> None:
    axes = ("latents", "samples", "environments")  # frames would take ten seconds more
    curves = growth(Growth(axes, largest=0.004, repeats=2, device="cpu", out=tmp_path))
    assert {curve.axis for curve in curves} == set(axes)
    for curve in curves:
        assert len(curve.ms) == len(curve.sizes) and all(len(one) == 2 and min(one) > 0 for one in curve.ms)
    rows = json.loads((tmp_path / "result.json").read_text())["growth"]
    assert [row["what"] for row in rows] == [curve.what for curve in curves]
    assert (tmp_path / "growth.png").exists() and not (tmp_path / "data").exists()


def test_the_exponent_is_that_of_the_last_sizes() -> None:
    ms = [[9.0, 9.0], [1.0, 1.0], [7.0, 9.0, 8.0], [64.0, 60.0, 99.0]]
    assert exponent([1, 2, 4, 8], ms) == pytest.approx(3.0)
    assert np.isnan(exponent([2], [[1.0]]))
