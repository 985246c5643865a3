"""The planning benchmark at its smallest, and without its baseline."""

import json
from pathlib import Path

import numpy as np
import pytest

from worldmodel.scripts.speed.plan import Plan, plan

TINY = {"environments": 3, "states": 4, "horizon": 5, "samples": 20, "iterations": 2, "repeats": 2}


def test_its_result_has_the_keys_that_readers_expect(tmp_path: Path) -> None:
    times = plan(Plan(**TINY, baseline="none", out=tmp_path))  # type: ignore[arg-type]
    result = json.loads((tmp_path / "result.json").read_text())
    assert {"options", "cpu", "cores", "versions", "actions_at_bound", "baseline_best", "plan"} <= set(result)
    assert [row["way"] for row in result["plan"]] == ["MPC with CEM", "MPC with QP"] == [one.way for one in times]
    assert all(len(row["ms"]) == len(row["above_optimum"]) == 2 for row in result["plan"])
    assert result["baseline_best"] is None and result["plan"][0]["faster_than_best"] == []
    assert str(tmp_path) not in json.dumps(result)


def test_the_quadratic_programme_is_exact_and_a_search_is_not(tmp_path: Path) -> None:
    cem, qp = plan(Plan(**TINY, baseline="none", out=tmp_path))  # type: ignore[arg-type]
    assert np.abs(qp.above_optimum).max() < 1e-9
    assert min(cem.above_optimum) > 1e-4


@pytest.mark.parametrize("bad", [{"repeats": 1}, {"threads": 0}, {"environments": 0}, {"elite_fraction": 2.0}])
def test_options_that_measure_nothing_are_refused_before_anything_is_made(bad: dict[str, int], tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"at least|elites"):
        plan(Plan(**bad, baseline="none", out=tmp_path / "run"))  # type: ignore[arg-type]
    assert not (tmp_path / "run").exists()
