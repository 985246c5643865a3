"""The benchmark of explorers, with a tiny budget."""

import csv
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from worldmodel.scripts.benchmark import main
from worldmodel.scripts.exploration.explorers import short_name
from worldmodel.scripts.exploration.job import _check
from worldmodel.scripts.exploration.options import BenchmarkOptions
from worldmodel.scripts.exploration.report import Row, _numbers, best_lags
from worldmodel.scripts.exploration.setup import Setup, law_parts
from worldmodel.scripts.exploration.training import Recipe

ROOT = Path(__file__).parents[2]
EXPLORERS = ("latent-ou:0.9", "seek:lqr", "random")
TINY: dict[str, Any] = {
    "env": "point_mass",
    "explorers": EXPLORERS,
    "lags": (4,),
    "seeds": 2,
    "frames": 1_000,
    "steps": 6,
    "driven": 1_000,
    "tasks": 2,
    "test_frames": 200,
    "size": 32,
    "jobs": 2,
}


def command(out: Path) -> list[str]:
    options: list[str] = []
    for name, value in TINY.items():
        values = value if isinstance(value, tuple) else (value,)
        options += [f"--{name.replace('_', '-')}", *(str(each) for each in values)]
    return [sys.executable, str(ROOT / "scripts" / "benchmark.py"), *options, "--out", str(out)]


@pytest.fixture(scope="module")
def once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("benchmark")
    main(BenchmarkOptions(**TINY, out=out))
    return out


def test_every_cell_is_scored_on_every_law_and_beside_its_baselines(once: Path) -> None:
    result = json.loads((once / "result.json").read_bytes())
    assert len(result["cells"]) == 6
    for cell in result["cells"]:
        laws = cell["identifiability"]
        assert set(laws) == {"own", "gaussian", "uniform", "transfer", "selection"}
        for law in laws.values():
            assert len(law["r2_per_latent"]) == len(law["ceiling_per_latent"]) == 2
        assert "refused" in cell["lqr"] or set(cell["lqr"]) == {"embedding", "oracle", "none"}
    assert len(result["ranking"]["r2_gaussian"]) == 3
    assert (once / "benchmark.png").stat().st_size > 10_000
    assert all(name in (once / "table.md").read_text() for name in EXPLORERS)
    rows = list(csv.DictReader((once / "table.csv").open()))
    assert [(row["explorer"], row["seed"]) for row in rows] == [(name, seed) for seed in "01" for name in EXPLORERS]


def test_what_posed_data_is_stands_in_the_table(once: Path) -> None:
    (posed, *_) = (row for row in csv.DictReader((once / "table.csv").open()) if row["explorer"] == "latent-ou:0.9")
    assert float(posed["rho_root_x"]) == pytest.approx(0.9**4, abs=0.25) and posed["return"] == ""


@pytest.mark.slow
def test_a_killed_benchmark_leaves_the_table_of_one_that_was_not(once: Path, tmp_path: Path) -> None:
    running = subprocess.Popen(command(tmp_path), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, process_group=0)
    while not list(tmp_path.glob("stages/cell-*/stage.json")):
        assert running.poll() is None, "it ended before it was killed"
        time.sleep(0.05)
    os.killpg(running.pid, signal.SIGKILL)
    running.wait()
    assert not (tmp_path / "table.csv").exists()
    main(BenchmarkOptions(**TINY, out=tmp_path))
    for name in ("table.csv", "table.md"):
        assert (tmp_path / name).read_bytes() == (once / name).read_bytes()


@pytest.mark.slow
def test_a_ray_cluster_gives_the_table_of_one_machine(once: Path, tmp_path: Path) -> None:
    ray = pytest.importorskip("ray")
    main(BenchmarkOptions(**TINY, backend="ray", out=tmp_path))
    ray.shutdown()
    assert (tmp_path / "table.csv").read_bytes() == (once / "table.csv").read_bytes()


@pytest.mark.parametrize(
    "change, line",
    [
        ({"explorers": ("random", "random")}, "come twice"),
        ({"explorers": ("tracking",)}, "tracking-ou"),
        ({"explorers": ("seek:luck",)}, "seek:PLANNER"),
        ({"explorers": ()}, "at least one explorer"),
        ({"env": "cartpole", "explorers": ("tracking-ou",)}, "without an actuator"),
        ({"trainings": ("circle+square",)}, "unknown training square"),
        ({"lags": (0,)}, "at least 1 control step"),
        ({"seeds": 0}, "seeds is 0"),
        ({"device": "gpu7"}, "unknown device"),
    ],
)
def test_bad_input_is_refused_before_any_work(change: dict[str, Any], line: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=line):
        main(BenchmarkOptions(**TINY | change, out=tmp_path))
    assert not list(tmp_path.iterdir())


def test_a_file_given_on_the_command_line_is_an_explorer(tmp_path: Path) -> None:
    file = tmp_path / "still.py"
    file.write_text("import numpy as np\ndef still(observation):\n    return np.zeros(2, np.float32)\n")
    options = BenchmarkOptions(**TINY | {"explorers": (f"{file}:still",)})
    setup = Setup("point_mass", None, 1, 1, 1, 1, 100, 32, 0, 0, "cpu", tmp_path)
    assert list(_check(options, setup)) == ["still.py:still"]
    assert short_name("sac:runs/a/best-sac.zip:deterministic") == "sac:best-sac.zip:deterministic"


def test_the_example_of_an_own_explorer_fits(tmp_path: Path) -> None:
    options = BenchmarkOptions(**TINY | {"explorers": (f"{ROOT / 'examples' / 'sway.py'}:Sway",)})
    setup = Setup("point_mass", None, 1, 1, 1, 1, 100, 32, 0, 0, "cpu", tmp_path)
    assert list(_check(options, setup)) == ["sway.py:Sway"]


def test_the_paper_s_scale_reaches_the_environment(tmp_path: Path) -> None:
    setup = Setup("reacher", 1.0, 1, 1, 1, 1, 100, 32, 0, 0, "cpu", tmp_path)
    assert setup.make().latent_spec.scales.tolist() == [1.0, 1.0]
    assert setup.make().latent_spec.ceiling() == pytest.approx([0.9489, 0.9489], abs=1e-4)


def test_the_parts_of_a_common_law_do_not_overlap() -> None:
    rows = np.concatenate([np.arange(800)[part] for part in law_parts(800).values()])
    assert rows.tolist() == list(range(800))


def test_lags_are_chosen_on_frames_that_score_nothing() -> None:
    def row(lag: int, selection: float, score: float) -> Row:
        values = {"r2_selection": np.array([selection]), "r2_gaussian": np.array([score])}
        return Row("random", "plain", lag, values)

    (best,) = best_lags([row(1, 0.2, 0.9), row(4, 0.8, 0.1), Row("random", "plain", 16, {}, "nothing correlates")])
    assert best.lag == 4


def test_circles_are_read_by_atan2() -> None:
    scores = {"r2_per_latent": [0.1, 0.6], "r2_cos": [0.9], "r2_sin": [0.8], "r2_angle": [0.95]}
    laws = dict.fromkeys(("own", "gaussian", "uniform", "transfer", "selection"), scores)
    data = {"rho": [0.9, 0.8], "distance": [0.1, 0.2], "anisotropy": 1.0, "coverage": 1.0, "returns": None}
    cell = {"data": data, "turning": [0], "identifiability": laws, "certificate": None, "training": "circle"}
    cell |= {"straight_line": {"effort_ratio": {"mean": 1.0}}, "lqr": {"refused": "no"}}
    assert _numbers(cell, ("a", "b"))["r2_gaussian"] == pytest.approx((0.95 + 0.6) / 2)
    assert _numbers(cell | {"training": "mixed"}, ("a", "b"))["r2_gaussian"] == pytest.approx(0.35)


def test_a_recipe_is_words_joined_by_plus_signs() -> None:
    assert Recipe.of("plain") == Recipe() and Recipe.of("unwhitened") == Recipe(whiten=False)
    assert Recipe.of("resampled+circle+wide") == Recipe(circle=True, wide=True, resampled=True)
