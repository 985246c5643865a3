import os
import subprocess
import sys

import pytest

from worldmodel.scripts import doctor
from worldmodel.scripts.diagnosis import checks as doctor_checks


def run(**variables: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "worldmodel.scripts", "doctor"]
    return subprocess.run(command, env=os.environ | variables, capture_output=True, text=True, timeout=300, check=False)


def test_one_screen_says_that_each_part_works_here() -> None:
    done = run()
    lines = done.stdout.splitlines()
    assert (done.returncode, done.stderr) == (0, "")
    assert len(lines) < 25
    for start in ("system", "python", "packages", "torch", "threads", "GPU", "OpenGL", "extra train"):
        assert [line for line in lines if line.startswith(start)], start
    assert [line.startswith("one ") and "works, " in line for line in lines].count(True) == 3


def test_a_library_that_does_not_draw_is_a_line_and_the_rest_is_said_all_the_same() -> None:
    done = run(MUJOCO_GL="nonsense")
    parts = {line[:18].strip(): line[18:] for line in done.stdout.splitlines()}
    assert done.returncode == 1
    assert parts["one frame"].startswith("does not work") and "nonsense" in parts["one frame"]
    assert parts["torch"].startswith("wheel ") and parts["one plan"]


def test_a_crash_is_a_line_with_the_signal_and_what_to_try() -> None:
    done = doctor.check(["-c", "import os; os.kill(os.getpid(), 11)", "frame"], limit=60)
    assert not done.well
    assert "SIGSEGV" in done.line and "MUJOCO_GL=osmesa" in done.line


def test_a_hang_ends_at_its_limit() -> None:
    done = doctor.check(["-c", "import time; time.sleep(60)"], limit=0.2)
    assert not done.well and "hangs" in done.line and done.seconds < 30


def test_an_error_is_its_own_line(monkeypatch: pytest.MonkeyPatch) -> None:
    done = doctor.check(["-c", "raise ValueError('no such thing')"], limit=60)
    assert (done.well, done.line) == (False, "ValueError: no such thing")


def test_what_torch_cannot_say_leaves_the_other_facts() -> None:
    found = doctor.facts(doctor.Checked(False, "ended by SIGSEGV", 0.1))
    assert found["torch"] == "does not work: ended by SIGSEGV" and "numpy" in found["packages"]


def test_each_extra_of_the_project_says_what_it_is_for() -> None:
    assert set(doctor.missing_of_extras()) == set(doctor.EXTRAS)


def test_the_plan_is_the_optimum() -> None:
    assert doctor_checks.plan().startswith("8 steps, ")
