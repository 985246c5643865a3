"""Every line of the README runs, and the commands of the other pages are understood."""

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
PAGES = "\n".join([README, *(page.read_text() for page in sorted((ROOT / "docs").glob("*.md")))])
COMMANDS = re.findall(
    r"^(?:python|torchrun --nproc-per-node 2|accelerate launch) (scripts/\w+\.py.*?)(?:\s+#.*)?$",
    re.sub(r"\s*\\\n\s*", " ", PAGES),
    re.MULTILINE,
)


def test_its_code_runs_from_top_to_bottom(tmp_path: Path) -> None:
    code = "\n".join(re.findall(r"```python\n(.*?)```", README, re.DOTALL)).replace("learn(10_000)", "learn(200)")
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("command", sorted(set(COMMANDS)))
def test_the_commands_are_understood(command: str) -> None:
    script, *arguments = shlex.split(command)
    main = import_module(f"worldmodel.scripts.{Path(script).stem}").main
    (options,) = (hint for name, hint in get_type_hints(main, include_extras=True).items() if name != "return")
    tyro.cli(options, args=arguments, prog=script)  # ends the process when it does not know an option


@pytest.mark.parametrize("page", [ROOT / "README.md", *(ROOT / "docs").glob("*.md")], ids=lambda page: page.name)
def test_pictures_and_links_within_the_project_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\((?!https?:)([^)#]+)\)", page.read_text()):
        assert (page.parent / target).exists(), target


def test_its_two_lines_without_make_are_what_make_does() -> None:
    set_up, plan = re.search(r"```bash\n(sh .*)\n(.*)\n```", README).groups()
    done = subprocess.run(["make", "-n", "-B", "plan"], cwd=ROOT, capture_output=True, text=True, check=True)
    assert set_up in done.stdout and plan in done.stdout


def test_its_make_targets_exist() -> None:
    makefile = (ROOT / "Makefile").read_text()
    for target in re.findall(r"\bmake (\w+)", README):
        assert f"\n{target}:" in makefile
