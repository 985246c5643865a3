import subprocess
import sys
from pathlib import Path

import pytest

from worldmodel.scripts.__main__ import COMMANDS

SCRIPTS = Path(__file__).parents[2] / "scripts"


def python(*arguments: str, **options: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, timeout=120, check=False)


def test_a_crash_of_the_interpreter_prints_where_it_happened() -> None:
    code = "import ctypes; from worldmodel.scripts import cli; cli.run(lambda: ctypes.string_at(0), 'test', [])"
    done = python("-c", code)
    assert done.returncode < 0 and "Fatal Python error: Segmentation fault" in done.stderr


@pytest.mark.parametrize("gone", ["sys.stderr = None", "sys.stderr.close()", "sys.stderr = io.StringIO()"])
def test_without_a_standard_error_commands_run_all_the_same(gone: str) -> None:
    code = f"import io, sys; {gone}; from worldmodel.scripts import cli; cli.run(lambda: print('ran'), 'test', [])"
    done = python("-c", code)
    assert (done.returncode, done.stdout) == (0, "ran\n")


def test_where_crashes_are_told_stays_as_it_was_set_up(tmp_path: Path) -> None:
    told = tmp_path / "told.txt"
    code = (
        f"import ctypes, faulthandler; faulthandler.enable(open({str(told)!r}, 'w'));"
        "from worldmodel.scripts import cli; cli.run(lambda: ctypes.string_at(0), 'test', [])"
    )
    assert python("-c", code).returncode < 0
    assert "Fatal Python error: Segmentation fault" in told.read_text()


def test_every_command_has_a_file_and_a_line_of_help() -> None:
    done = python("-m", "worldmodel.scripts", "--help")
    for name in COMMANDS:
        assert (SCRIPTS / f"{name.replace('-', '_')}.py").is_file()
        assert f"\n  {name} " in done.stdout


def test_a_command_takes_its_options() -> None:
    done = python("-m", "worldmodel.scripts", "collect", "--help")
    assert done.returncode == 0 and "usage: worldmodel collect" in done.stdout


def test_an_unknown_command_is_one_line_with_those_there_are() -> None:
    done = python("-m", "worldmodel.scripts", "plant")
    assert done.returncode == 2 and len(done.stderr.splitlines()) == 1 and "plan, collect" in done.stderr


def test_a_package_that_is_missing_is_one_line() -> None:
    code = "import sys; sys.modules['dm_control'] = None; sys.argv[1:] = ['collect']; "
    done = python("-c", code + "from worldmodel.scripts.__main__ import main; main()")
    assert done.returncode == 2 and "dm_control is not installed: pip install" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_brackets_in_an_error_are_shown() -> None:
    code = "from worldmodel.scripts import cli\ndef main() -> None: raise ValueError('give [a] list')\n"
    assert python("-c", code + "cli.run(main, 'test', [])").stderr == "test: give [a] list\n"


HEAVY = {"torch", "mujoco", "dm_control", "matplotlib", "stable_baselines3", "scipy", "gymnasium", "zarr", "joblib"}


@pytest.mark.parametrize("command", ["plan", "collect", "train-agent", "benchmark", "minari-data", "doctor"])
def test_help_comes_without_what_the_command_itself_needs(command: str) -> None:
    code = f"import sys; sys.argv[1:] = [{command!r}, '--help']; from worldmodel.scripts.__main__ import main\n"
    code += "try: main()\nexcept SystemExit: print(*sys.modules, file=sys.stderr)"
    done = python("-c", code)
    assert f"usage: worldmodel {command}" in done.stdout
    assert not HEAVY & set(done.stderr.split())


def test_the_package_and_its_list_of_commands_come_without_any_of_it() -> None:
    code = "import worldmodel, sys; sys.argv[1:] = ['--help']; from worldmodel.scripts.__main__ import main; main()"
    done = python("-c", code + "; print(*sys.modules, file=sys.stderr)")
    assert not (HEAVY | {"numpy"}) & set(done.stderr.split())
