"""The main job as its user runs it, at the smallest budget."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent


def plan(*arguments: object) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, ROOT / "scripts" / "plan.py", "--env", "cartpole", "--budget", "smoke", *arguments]
    return subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "plan"
    done = plan("--out", folder, "--tasks", 20)
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
    assert [row["state"] for row in result["plans"]] == ["embedding", "oracle", "none"]
    assert result["plans"][1]["effort_ratio"]["mean"] == 1


def test_it_leaves_figures_and_a_film(out: Path) -> None:
    names = {"frames.png", "training.png", "identifiability.png", "paths.png", "effort.png", "plan.png", "plan.mp4"}
    assert names <= {path.name for path in out.iterdir()}


def test_a_second_run_goes_straight_to_planning_and_a_given_encoder_is_used(out: Path) -> None:
    before = json.loads((out / "result.json").read_text())
    assert plan("--out", out, "--tasks", 20).returncode == 0
    after = json.loads((out / "result.json").read_text())
    assert before["wall_seconds"]["cached"] == [] and after["wall_seconds"]["cached"] == ["collect", "train"]
    assert after["encoder"] == before["encoder"]
    (encoder,) = out.glob("train-*/encoder")
    assert plan("--out", out, "--tasks", 20, "--encoder", encoder).returncode == 0
    assert json.loads((out / "result.json").read_text())["encoder"] == before["encoder"]


@pytest.mark.parametrize(
    "bad, line",
    [
        (("--size", 60), "multiples of 16"),
        (("--rho", 1.5), "rho is 1.5"),
        (("--latents", 0), "at least one latent"),
        (("--encoder", "/nowhere"), "not an encoder"),
    ],
    ids=["size", "rho", "latents", "encoder"],
)
def test_bad_input_is_one_line_before_anything_is_made(bad: tuple[object, ...], line: str, tmp_path: Path) -> None:
    done = plan("--out", tmp_path / "run", *bad)
    assert done.returncode == 2 and line in done.stderr and len(done.stderr.splitlines()) == 1
    assert not (tmp_path / "run").exists()
