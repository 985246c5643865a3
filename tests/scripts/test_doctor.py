import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from worldmodel.scripts import doctor
from worldmodel.scripts.diagnosis import advice
from worldmodel.scripts.diagnosis import checks as doctor_checks
from worldmodel.scripts.diagnosis.advice import what_to_do


def run(**variables: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "worldmodel.scripts", "doctor"]
    return subprocess.run(command, env=os.environ | variables, capture_output=True, text=True, timeout=300, check=False)


def rows(screen: str) -> dict[str, str]:
    """What the screen says, by name; a row may fill several lines."""
    found: dict[str, str] = {}
    name = ""
    for line in screen.splitlines():
        name = line[:18].strip() or name
        found[name] = f"{found.get(name, '')} {line[18:]}".strip()
    return found


def broken(folder: Path, package: str, error: str) -> str:
    """A folder for PYTHONPATH in which this package does not load."""
    (folder / package).mkdir()
    (folder / package / "__init__.py").write_text(f"raise {error}")
    return str(folder)


def try_part(name: str) -> doctor.Checked:
    return doctor.check(["-m", "worldmodel.scripts.diagnosis.checks", name], limit=120)


def test_one_screen_says_that_each_part_works_here() -> None:
    done = run()
    found = rows(done.stdout)
    assert (done.returncode, done.stderr) == (0, "")
    assert len(done.stdout.splitlines()) < 40
    assert max(map(len, done.stdout.splitlines())) <= 100
    assert {"system", "python", "packages", "torch", "threads", "GPU", "OpenGL", "extra train"} <= set(found)
    for part in ("OpenCV", "one frame", "one training step", "one plan"):
        assert found[part].startswith("works, "), found[part]


@pytest.mark.slow  # the layout's tests hold that the doctor itself loads; this tries the whole screen
@pytest.mark.parametrize("package", ["numpy", "scipy"])
def test_where_a_library_is_broken_the_screen_says_so_and_what_else_there_is(package: str, tmp_path: Path) -> None:
    done = run(PYTHONPATH=broken(tmp_path, package, "ImportError('no C extensions')"))
    found = rows(done.stdout)
    assert (done.returncode, done.stderr) == (1, "")
    assert package == "numpy" or found["torch"].startswith("wheel ")  # torch does not import without numpy
    assert "mujoco" in found["packages"] and "extra train" in found
    for part in ("one training step", "one plan"):
        assert "no C extensions" in found[part]
        assert f"pip install --force-reinstall --no-deps '{package}>=" in found[part]


def test_without_libgl_the_line_says_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    error = "ImportError('libGL.so.1: cannot open shared object file')"
    monkeypatch.setenv("PYTHONPATH", broken(tmp_path, "cv2", error))
    done = try_part("opencv")
    assert not done.well and "libGL.so.1" in done.line and "apt-get install" in done.line


@pytest.mark.parametrize(("library", "line"), [("nonsense", "MUJOCO_GL must be one of"), ("off", "apt-get install")])
def test_a_library_that_does_not_draw_is_a_line(library: str, line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MUJOCO_GL", library)
    done = try_part("frame")
    assert not done.well and line in done.line


def test_without_dm_control_the_line_says_how_it_is_installed_on_this_python(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "sitecustomize.py").write_text(
        "import importlib.util as util\nfind = util.find_spec\n"
        "util.find_spec = lambda name, *rest: None if name == 'dm_control' else find(name, *rest)"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    done = try_part("frame")
    assert not done.well and "dm_control is not installed: pip install" in done.line
    assert ("--no-deps" in done.line) == (sys.version_info >= (3, 13))


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (ModuleNotFoundError("No module named 'mujoco'", name="mujoco"), "pip install 'mujoco<4"),
        (ModuleNotFoundError("No module named 'sklearn'", name="sklearn"), "pip install 'scikit-learn>="),
        (ImportError("libEGL.so.1: cannot open shared object file"), "on Debian: apt-get install libegl1"),
        (ImportError("dm_control is not installed: pip install dm_control"), ""),
        (ValueError("rho is 2"), ""),
        (FileNotFoundError("no such file"), ""),
    ],
)
def test_advice_is_for_libraries_that_do_not_load(error: Exception, line: str) -> None:
    assert what_to_do(error).startswith(line) and bool(what_to_do(error)) == bool(line)


def test_a_page_of_an_error_is_cut_and_keeps_its_advice() -> None:
    line = doctor_checks.line_of(ModuleNotFoundError("IMPORTANT\n" * 100, name="numpy"))
    assert len(line) < 400 and line.partition("; ")[2].startswith("pip install 'numpy>=")


def die(by: signal.Signals, part: str) -> doctor.Checked:
    return doctor.check(["-c", f"import os; os.kill(os.getpid(), {by:d})", part], limit=60)


@pytest.mark.parametrize(("chosen", "other"), [("egl", "osmesa"), ("osmesa", "egl")])
def test_a_crash_is_a_line_with_the_signal_and_what_to_try(
    chosen: str, other: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MUJOCO_GL", chosen)
    monkeypatch.setattr(advice, "find_spec", lambda name: None)
    done = die(signal.SIGSEGV, "frame")
    assert not done.well
    assert "ended by SIGSEGV" in done.line and f"MUJOCO_GL={other}" in done.line
    assert "-X faulthandler" in done.line and "MUJOCO_GL" not in die(signal.SIGABRT, "plan").line
    assert "memory" in die(signal.SIGKILL, "plan").line


def test_a_crash_beside_tensorflow_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(advice, "find_spec", lambda name: name)
    assert "TensorFlow" in die(signal.SIGSEGV, "step").line and "TensorFlow" not in die(signal.SIGKILL, "step").line


def test_with_a_part_that_crashed_the_exit_status_is_1(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    well, crashed = doctor.Checked(True, "fine", 0.1), doctor.Checked(False, "ended by SIGSEGV", 0.1)
    torch = doctor.Checked(True, '{"cuda": null, "threads": 1, "gpus": []}', 0.1)
    parts = {"torch": torch, "opencv": well, "frame": well, "step": crashed, "plan": well}
    monkeypatch.setattr(doctor, "try_all", lambda limit: parts)
    with pytest.raises(SystemExit) as ended:
        doctor.main(doctor.DoctorOptions())
    assert ended.value.code == 1
    assert rows(capsys.readouterr().out)["one training step"] == "does not work, 0.1 s: ended by SIGSEGV"


def test_a_hang_ends_at_its_limit() -> None:
    done = doctor.check(["-c", "import time; time.sleep(60)"], limit=0.2)
    assert not done.well and "hangs" in done.line and done.seconds < 30


def test_an_error_is_its_own_line() -> None:
    done = doctor.check(["-c", "raise ValueError('no such thing')"], limit=60)
    assert (done.well, done.line) == (False, "ValueError: no such thing")


def test_what_torch_cannot_say_leaves_the_other_facts() -> None:
    found = doctor.facts(doctor.Checked(False, "ended by SIGSEGV", 0.1))
    assert found["torch"] == "does not work: ended by SIGSEGV" and "numpy" in found["packages"]


def test_each_extra_of_the_project_says_what_it_is_for() -> None:
    assert set(doctor.missing_of_extras()) == set(doctor.EXTRAS)


def test_the_plan_is_the_optimum() -> None:
    assert doctor_checks.plan().startswith("8 steps, ")
