"""What is installed, what draws and computes here, and whether each part works: one screen for a bug report.

python scripts/doctor.py
"""

import importlib.metadata
import json
import os
import platform
import re
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import Annotated

import tyro
from rich.markup import escape
from rich.text import Text

from worldmodel.scripts import cli
from worldmodel.scripts.cli import console
from worldmodel.scripts.diagnosis.advice import after_death
from worldmodel.utils.endings import how_it_ended
from worldmodel.utils.versions import versions

EXTRAS = {
    "train": "several processes or GPUs, TensorBoard",
    "minari": "data sets of Minari and Gymnasium",
    "ray": "the benchmark on a cluster",
    "dev": "tests, style and types of this project",
}
_LIMIT = 120.0  # seconds, after which a check is taken to hang
_PARTS = {"opencv": "OpenCV", "frame": "one frame", "step": "one training step", "plan": "one plan"}
_BY_DURATION = ("step", "plan", "frame", "torch", "opencv")
_AT_A_TIME = 2  # they spend their time on imports, each on one core
_OTHERS = ("triton", "opencv-python", "opencv-python-headless", "av", "tyro", "joblib")
_NEIGHBOURS = ("tensorflow", "tensorflow-cpu", "jax", "numba")  # each brings an LLVM of its own into a process
_WIDTH, _NAMES = 100, 18  # columns of the screen, and of the names in it


@dataclass(frozen=True)
class DoctorOptions:
    """Options of the check-up.

    Attributes:
        limit: seconds after which a check is taken to hang.
    """

    limit: float = _LIMIT


@dataclass(frozen=True)
class Checked:
    """How one check went.

    Attributes:
        well: whether it did what it should.
        line: what it said, or how it ended and what to try.
        seconds: that it took.
    """

    well: bool
    line: str
    seconds: float


def main(options: Annotated[DoctorOptions, tyro.conf.arg(name="")]) -> None:
    """Print the screen; exit status 1 where a part does not work."""
    checks = try_all(options.limit)
    for name, value in facts(checks["torch"]).items():
        _row(name, escape(value))
    drawn = checks["frame"]
    _row("OpenGL", escape(drawn.line) if drawn.well else "[red]draws nothing, see below[/]")
    for extra, lacking in missing_of_extras().items():
        there = "there" if not lacking else f"lacks {', '.join(lacking)}: pip install 'worldmodel\\[{extra}]'"
        _row(f"extra {extra}", f"{there} ({EXTRAS.get(extra, '')})")
    for name, label in _PARTS.items():
        done = checks[name]
        word = "[green]works[/]" if done.well else "[red]does not work[/]"
        _row(label, f"{word}, {done.seconds:.1f} s: {escape(done.line)}")
    if not all(done.well for done in checks.values()):
        sys.exit(1)


def _row(name: str, value: str) -> None:
    for line in Text.from_markup(value).wrap(console, min(console.width, _WIDTH) - _NAMES):
        line.rstrip()
        console.print(Text(f"{name:<{_NAMES}}").append_text(line), soft_wrap=True)
        name = ""


def try_all(limit: float) -> dict[str, Checked]:
    """Try each part in a process of its own, ``limit`` seconds at most; return how it went, by name."""
    with console.status("trying each part alone, half a minute or less"), ThreadPoolExecutor(_AT_A_TIME) as pool:
        commands = [["-m", "worldmodel.scripts.diagnosis.checks", name] for name in _BY_DURATION]
        return dict(zip(_BY_DURATION, pool.map(lambda command: check(command, limit), commands), strict=True))


def check(command: Sequence[str], limit: float) -> Checked:
    """Run Python with these arguments; a crash, an error or a hang becomes one line."""
    start = time.perf_counter()
    try:
        done = subprocess.run(
            [sys.executable, *command], capture_output=True, text=True, timeout=limit, check=False, errors="replace"
        )
    except subprocess.TimeoutExpired:
        return Checked(False, f"nothing came of it in {limit:.0f} s: it hangs", time.perf_counter() - start)
    seconds = time.perf_counter() - start
    if done.returncode == 0:
        return Checked(True, _last_line(done.stdout), seconds)
    ending = how_it_ended(done.returncode)
    if done.returncode > 0:
        return Checked(False, _last_line(done.stderr) or ending, seconds)
    advice = after_death(command[-1], ending)
    return Checked(False, f"ended by {ending}{advice and f'; {advice}'}", seconds)


def facts(torch: Checked) -> dict[str, str]:
    """Return what is installed here, by name; ``torch`` is what the check of torch said."""
    installed = versions((*_OTHERS, *_NEIGHBOURS))
    python = installed.pop("python")
    place = sys.prefix if sys.prefix != sys.base_prefix else f"{sys.prefix}, no virtual environment"
    found = {
        "system": f"{_system()}, {os.cpu_count()} cores, {_memory()}",
        "python": f"{python}, {place}",
        "packages": ", ".join(f"{name} {version}" for name, version in installed.items()),
    }
    threads = ", ".join(f"{name}={os.environ.get(name, 'unset')}" for name in ("OMP_NUM_THREADS", "WORLDMODEL_THREADS"))
    if not torch.well:
        return found | {"torch": f"does not work: {torch.line}"}
    about = json.loads(torch.line)
    wheel = f"wheel for CUDA {about['cuda']}" if about["cuda"] else "wheel without CUDA"
    return found | {
        "torch": f"{wheel}, {'with' if 'triton' in installed else 'without'} triton",
        "threads": f"{about['threads']} of torch, {threads}",
        "GPU": "; ".join(about["gpus"]) or "none that torch sees",
    }


def missing_of_extras() -> dict[str, list[str]]:
    """Return the packages that each optional part of the project lacks here."""
    missing: dict[str, list[str]] = {}
    for requirement in importlib.metadata.requires("worldmodel") or []:
        extra = re.search(r"""extra == ['"](\w+)['"]""", requirement)
        name = re.match(r"[\w.-]+", requirement)
        if extra is None or name is None:
            continue
        lacking = missing.setdefault(extra[1], [])
        try:
            importlib.metadata.version(name[0])
        except importlib.metadata.PackageNotFoundError:
            lacking.append(name[0])
    return missing


def _system() -> str:
    with suppress(OSError):  # only Linux says which distribution it is
        return f"{platform.freedesktop_os_release()['PRETTY_NAME']}, {platform.platform()}"
    return platform.platform()


def _memory() -> str:
    return f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 2**30:.0f} GiB"


def _last_line(text: str) -> str:
    return next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "")


if __name__ == "__main__":
    cli.run(main, "doctor")
