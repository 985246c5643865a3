"""All parts of the benchmark in one result, and what every part refuses."""

import json
from pathlib import Path
from typing import Any

import pytest

from worldmodel.scripts.speed.all import PARTS, All, run_all
from worldmodel.scripts.speed.encode import Encode, encode
from worldmodel.scripts.speed.reach import Reach, reach
from worldmodel.scripts.speed.sigreg import Sigreg, sigreg_times
from worldmodel.scripts.speed.train import Train, train


def result(folder: Path) -> dict[str, Any]:
    return json.loads((folder / "result.json").read_text())


def test_all_parts_end_in_one_result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from worldmodel.scripts.speed import all as bench_all

    def tiny(options: All, out: Path) -> list[bench_all.Finding]:
        times = sigreg_times(Sigreg(((2, 8, 2),), slices=4, calls=1, repeats=2, device=options.device, out=out))
        return [bench_all.Finding("sigreg", "2 x 8 x 2", "formula", times[0].faster, 5)]

    monkeypatch.setitem(PARTS, "sigreg", tiny)
    (row,) = run_all(All(parts=("sigreg",), device="cpu", out=tmp_path))
    written = result(tmp_path)
    assert written["summary"] == [json.loads(json.dumps(row.__dict__))]
    assert written["parts"] == {"sigreg": result(tmp_path / "sigreg")} and set(written["seconds"]) == {"sigreg"}


def test_every_part_has_its_command() -> None:
    assert tuple(PARTS) == All().parts


@pytest.mark.parametrize(
    "measure, options",
    [
        (train, Train(repeats=1)),
        (train, Train(frames=128)),
        (sigreg_times, Sigreg(repeats=1)),
        (encode, Encode(batches=())),
        (reach, Reach(seeds=())),
        (run_all, All(device="abacus")),
    ],
)
def test_options_that_measure_nothing_are_refused_before_anything_is_made(
    measure: Any, options: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match=r"at least|needs|unknown device"):
        measure(options)
    assert not list(tmp_path.iterdir())
