"""Every experiment at its smallest: what it leaves behind, and that a second run does nothing again."""

import json
from pathlib import Path
from typing import Any

import pytest

from worldmodel.scripts.laboratory.bound import BoundGrid, bound
from worldmodel.scripts.laboratory.cells import Cell, run_cell
from worldmodel.scripts.laboratory.common import interval_text, r2_text
from worldmodel.scripts.laboratory.dimension import Dimension, dimension, slowest_alignment
from worldmodel.scripts.laboratory.gennorm import GenNorm, gennorm, predict
from worldmodel.scripts.laboratory.scaling import Scaling, published, scaling
from worldmodel.scripts.laboratory.two_d import TwoD, two_d
from worldmodel.stats.intervals import Interval
from worldmodel.synthetic.objectives import ObjectiveName, synthetic_objective
from worldmodel.synthetic.training import VectorTraining
from worldmodel.synthetic.worlds import World

TINY: dict[str, Any] = {"seeds": 1, "count": 200, "device": "cpu"}
MLP = VectorTraining(steps=2, batch_size=32, late_batch=32, copies=1, hidden=8, layers=1)
COUPLING = VectorTraining(steps=2, batch_size=32, late_batch=32, copies=2, encoder="coupling")


def result_of(folder: Path, figure: str) -> dict[str, Any]:
    assert (folder / f"{figure}.png").stat().st_size > 5_000
    result = json.loads((folder / "result.json").read_text())
    assert {"options", "cpu", "cores", "versions", "table", "cells"} <= set(result)
    return result  # type: ignore[no-any-return]


def test_two_d_unrolls_every_mixing_and_a_second_run_reads_what_is_there(tmp_path: Path) -> None:
    options = TwoD(**TINY, objectives=("lejepa", "slow-features"), training=MLP, coupling=COUPLING, out=tmp_path)
    results = two_d(options)
    result = result_of(tmp_path, "two-d")
    assert [cell["world"]["mixing"] for cell in result["cells"][::2]] == ["spiral", "banana", "sinusoid", "coupling"]
    assert results[3].report.r2_hz > 0.99  # a banana is a polynomial
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("cells/*/result.json")}
    assert len(before) == 8 and two_d(options) == results
    assert {path: path.stat().st_mtime_ns for path in before} == before


def test_scaling_stands_beside_the_published_numbers(tmp_path: Path) -> None:
    names: tuple[ObjectiveName, ...] = ("lejepa", "infonce", "slow-features")
    scaling(Scaling(**TINY, latents=(2, 3), objectives=names, training=COUPLING, out=tmp_path))
    table = result_of(tmp_path, "scaling")["table"]
    assert [row["published"] for row in table] == ["0.999998", "0.950961", "", "", "", ""]
    assert [row["loss above z's"] != "" for row in table] == [True, True, False] * 2  # slow features have no loss
    assert published("whitening", 1024) == 0.999582 and published("vicreg", 2) is None


def test_gennorm_draws_what_theory_predicts(tmp_path: Path) -> None:
    gennorm(GenNorm(**TINY, alphas=(1.0, 2.0), objectives=("whitening",), training=MLP, out=tmp_path))
    result = result_of(tmp_path, "gennorm")
    assert len(result["cells"]) == 4 and set(result["curves"]) == {"additive", "langevin"}
    assert result["predicted"]["langevin"]["2.0"]["slowest"] == pytest.approx(1, abs=1e-3)
    assert predict("langevin", 2.0, GenNorm())["grid"] == pytest.approx(1, abs=1e-2)


def test_bound_keeps_every_run(tmp_path: Path) -> None:
    bound(BoundGrid(**TINY, weights=(1e-6, 0.5), rhos=(0.5, 0.9), training=MLP, out=tmp_path))
    result = result_of(tmp_path, "bound")
    assert result["runs"] == len(result["cells"]) == 4 and 0 <= result["below_bound"] <= 4


def test_dimension_says_what_the_slowest_functions_align_to(tmp_path: Path) -> None:
    dimension(Dimension(**TINY, outputs=(1, 4), objectives=("whitening",), training=MLP, out=tmp_path))
    result = result_of(tmp_path, "dimension")
    assert [row["m / n"] for row in result["table"]] == ["0.333", "1.000"]
    assert slowest_alignment(3, 3, 0.9) == pytest.approx(0.1)
    assert slowest_alignment(1, 2, 0.9) == pytest.approx((0.1 + 0.19) / 2)


def test_another_objective_is_another_cell(tmp_path: Path) -> None:
    names: tuple[ObjectiveName, ...] = ("whitening", "barlow-twins")
    cells = [Cell(name, World(), 2, synthetic_objective(name, 0.9), MLP, 0, 200) for name in names]
    folders = {run_cell(tmp_path, cell, "cpu").folder for cell in cells}
    assert len(folders) == 2


def test_numbers_are_written_with_their_nines_and_never_rounded_up() -> None:
    assert r2_text(0.99999789) == "0.999997" and r2_text(1.0) == "1.000000"
    assert r2_text(0.95069) == "0.950" and r2_text(-0.2) == "-0.200"
    assert interval_text(Interval(0.95, 0.9, 1.2)) == "0.950 [0.900, 1.000]"
    assert interval_text(Interval(0.9999, 0.5, 0.99999)) == "0.999900 [0.500000, 0.999990]"
    assert interval_text(Interval(0.95, -float("inf"), float("inf"))) == "0.950"


def test_options_that_measure_nothing_are_refused() -> None:
    with pytest.raises(ValueError, match="at least"):
        TwoD(seeds=0)
