"""The set-up says what is wrong and the way out, not pip's last line."""

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def set_up(folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"PYTHON": sys.executable, "VENV": str(folder / "a venv")} | variables
    command = ["sh", str(ROOT / "scripts" / "setup.sh")]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)


def test_without_a_package_index_the_package_and_the_way_out_are_named(tmp_path: Path) -> None:
    done = set_up(tmp_path, PIP_NO_INDEX="1", PIP_FIND_LINKS=str(tmp_path))
    assert done.returncode == 1
    assert "3.1 GB" in done.stdout and "TORCH=cpu" in done.stdout  # before anything is downloaded
    assert "no setuptools" in done.stderr and "way out: check the network" in done.stderr


@pytest.mark.parametrize("version", ["3.10", "3.14"])
def test_another_python_is_refused_in_one_line(version: str, tmp_path: Path) -> None:
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\n[ "$1" = --version ] && echo Python {version}.0\nexit 1\n')
    python.chmod(0o755)
    done = set_up(tmp_path, PYTHON=str(python))
    assert done.returncode == 1 and not (tmp_path / "a venv").exists()
    assert (
        done.stderr
        == f"setup: Python {version}.0 found, Python 3.11 to 3.13 needed: make PYTHON=/path/to/python3.12 ...\n"
    )


def test_what_did_not_build_is_named(tmp_path: Path) -> None:
    log = tmp_path / "setup.log"
    log.write_text("  ERROR: Failed building wheel for labmaze\nFailed to build labmaze\n")
    explain = (ROOT / "scripts" / "setup.sh").read_text().split("explain() {")[1].split("\n}\n")[0]
    code = f'RUN={shlex.quote(sys.executable)} LOG={shlex.quote(str(log))}\nsay() {{ echo "setup: $*"; }}\n{explain}'
    done = subprocess.run(["sh", "-c", code], capture_output=True, text=True, check=True)
    assert (
        done.stderr.startswith("setup: labmaze has no wheel for Python 3.") and "way out: take another" in done.stderr
    )
