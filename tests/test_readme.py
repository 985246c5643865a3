"""Every line of the README runs."""

import re
import shlex
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import get_type_hints

import pytest
import tyro

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()
COMMANDS = re.findall(r"^(?:python|torchrun --nproc-per-node 2) (scripts/\w+\.py.*?)(?:\s+#.*)?$", README, re.MULTILINE)


def test_its_code_runs_from_top_to_bottom(tmp_path: Path) -> None:
    code = "\n".join(re.findall(r"```python\n(.*?)```", README, re.DOTALL)).replace("learn(10_000)", "learn(200)")
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("command", COMMANDS)
def test_its_commands_are_understood(command: str) -> None:
    script, *arguments = shlex.split(command)
    main = import_module(f"worldmodel.scripts.{Path(script).stem}").main
    (options,) = (hint for name, hint in get_type_hints(main, include_extras=True).items() if name != "return")
    tyro.cli(options, args=arguments, prog=script)  # ends the process when it does not know an option


def test_its_pictures_are_there() -> None:
    for picture in re.findall(r"!\[.*?\]\((.*?)\)", README):
        assert (ROOT / picture).is_file(), picture


def test_its_make_targets_exist() -> None:
    makefile = (ROOT / "Makefile").read_text()
    for target in re.findall(r"\bmake (\w+)", README):
        assert f"\n{target}:" in makefile
