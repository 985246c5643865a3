"""The main job as its user runs it, at the smallest budget."""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import worldmodel as wm
from worldmodel.envs import make, suite_of
from worldmodel.scripts.plan import main
from worldmodel.scripts.planning.job import _check
from worldmodel.scripts.planning.options import PlanOptions

FEW = ("--tasks", 5, "--planner", "lqr")
ROOT = Path(__file__).parent.parent.parent


def plan(*arguments: object) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, ROOT / "scripts" / "plan.py", "--env", "point_mass", "--budget", "smoke", *arguments]
    return subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False)


def twins(planner: str) -> list[tuple[str, str]]:
    return [(planner, "embedding"), (planner, "oracle"), ("random", "none")]


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "plan"
    done = plan("--out", folder, *FEW)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == str(folder / "result.json")
    return folder


def test_its_result_has_the_keys_that_readers_expect(out: Path) -> None:
    result = json.loads((out / "result.json").read_text())
    assert {"env", "seed", "versions", "wall_seconds", "data", "encoder", "plans"} <= set(result)
    assert {"collect", "train", "dynamics", "plan", "total", "cached"} == set(result["wall_seconds"])
    assert {"explorer", "frames", "rho", "gaussianity", "render_ms_per_frame"} == set(result["data"])
    assert {"r2_hz", "r2_zh", "r2_per_latent", "ceiling_per_latent", "orthogonality_error"} <= set(result["encoder"])
    assert {"alignment_gap", "whitening_error", "bound"} <= set(result["encoder"]["certificate"])
    rows = [(row["execution"], row["planner"], row["state"]) for row in result["plans"]]
    assert rows[:3] == [("kinematic", *of) for of in twins("straight-line")]
    assert rows[3:] == [("closed-loop", *of) for of in twins("lqr")]
    assert result["plans"][1]["effort_ratio"]["mean"] == result["plans"][4]["cost_ratio"]["mean"] == 1
    assert {"kind", "frames", "period", "forecast", "similarity"} <= set(result["dynamics"])


def test_it_leaves_figures_and_a_film(out: Path) -> None:
    names = {"frames.png", "training.png", "identifiability.png", "paths.png", "effort.png", "plan.png", "plan.mp4"}
    assert names <= {path.name for path in out.iterdir()}


def test_a_second_run_goes_straight_to_planning(out: Path) -> None:
    before = json.loads((out / "result.json").read_text())
    assert plan("--out", out, *FEW).returncode == 0
    after = json.loads((out / "result.json").read_text())
    assert before["wall_seconds"]["cached"] == []
    assert {"collect", "train", "drive", "control-lqr-embedding"} <= set(after["wall_seconds"]["cached"])
    assert after["encoder"] == before["encoder"] and after["plans"][3] == before["plans"][3]


def test_the_world_model_that_it_leaves_gives_the_same_plans(out: Path, tmp_path: Path) -> None:
    before = json.loads((out / "result.json").read_text())
    kept = shutil.copytree(out / "world_model", tmp_path / "elsewhere")
    main(PlanOptions(env="point_mass", budget="smoke", out=out, tasks=5, planner=("lqr",), world_model=kept))
    after = json.loads((out / "result.json").read_text())
    assert after["encoder"] == before["encoder"]  # by the encoder that the world model holds
    same = ("success", "cost", "goal_error")
    assert [after["plans"][3][key] for key in same] == [before["plans"][3][key] for key in same]
    assert after["options"]["world_model"] == str(kept)


def test_a_given_encoder_is_the_one_that_was_trained(out: Path) -> None:
    (folder,) = out.glob("train-*/encoder")
    options = PlanOptions(env="point_mass", encoder=folder)
    given = _check(options, suite_of(make("point_mass")))
    frames = np.zeros((1, 64, 64, 3), np.uint8)
    assert given is not None
    assert np.array_equal(given.encoder.encode(frames), wm.Encoder.load(folder).freeze().encode(frames))


@pytest.mark.parametrize(
    "bad, line",
    [
        ({"size": 60}, "multiples of 16"),
        ({"rho": 1.5}, "rho is 1.5"),
        ({"dim": 0}, "at least one dimension"),
        ({"encoder": Path("/nowhere")}, "not an encoder"),
        ({"world_model": Path("/nowhere")}, "no world model"),
        ({"encoder": Path("/nowhere"), "world_model": Path("/nowhere")}, "not both"),
        ({"dynamics": "neural", "planner": ("mpc-qp",)}, "needs linear dynamics"),
    ],
    ids=["size", "rho", "dim", "encoder", "world model", "both", "dynamics"],
)
def test_bad_input_is_refused_before_anything_is_made(bad: dict[str, Any], line: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=line):
        main(PlanOptions(env="point_mass", budget="smoke", out=tmp_path / "run", **bad))
    assert not (tmp_path / "run").exists()


def test_bad_input_ends_in_one_line(tmp_path: Path) -> None:
    done = plan("--out", tmp_path / "run", "--size", 60)
    assert done.returncode == 2 and "multiples of 16" in done.stderr and len(done.stderr.splitlines()) == 1
