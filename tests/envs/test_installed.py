import subprocess
import sys

import pytest

from worldmodel.envs import installed

BLOCK = """
import sys
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.split('.')[0] in {names!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
for name in {names!r}:
    sys.modules.pop(name, None)
sys.meta_path.insert(0, Missing())
"""


def python(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)


def test_without_labmaze_the_suite_runs_and_nothing_is_said() -> None:
    done = python(BLOCK.format(names=("labmaze",)) + "import worldmodel.envs as e; e.make('reacher').reset(seed=0)")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_without_dm_control_one_line_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(installed, "find_spec", lambda name: None)
    with pytest.raises(ImportError, match="dm_control is not installed: pip install"):
        installed.import_simulator()


@pytest.mark.parametrize(("version", "command"), [((3, 12), "install dm_control"), ((3, 13), "install --no-deps")])
def test_the_command_is_that_of_this_python(
    version: tuple[int, int], command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "version_info", version)
    assert command in installed._advice()


def test_what_else_is_printed_is_heard(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(installed, "import_module", lambda name: print(f"{installed._NUISANCE}\nnews"))
    installed.import_simulator()
    assert capsys.readouterr().out == "news\n"
