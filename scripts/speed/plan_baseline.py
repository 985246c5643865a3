"""stable-worldmodel's CEM solver as a baseline: in its own environment, in a process of its own."""

import json
import os
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from worldmodel.utils.endings import how_it_ended

# The base install asks for torchvision, which need not fit the torch that is here: take the packages alone. All else
# that the solver imports (torch, numpy, gymnasium), the project has.
_PACKAGES = ("stable-worldmodel==0.1.1", "loguru==0.7.3")
_BATCHES = (1, 2, 4, 8, 16, 32, 64)
_PATIENCE = 2.0  # a setting that takes so many times as long as the fastest is not timed again


class Setting(NamedTuple):
    """How the baseline is run.

    Attributes:
        tuned: roll out in the fastest way that was found, not as one would write it.
        batch: environments that it solves together.
        threads: of torch.
    """

    tuned: bool
    batch: int
    threads: int

    def __str__(self) -> str:
        threads = f"{self.threads} thread{'s' * (self.threads > 1)}"
        return f"baseline{', tuned' * self.tuned}, batch {self.batch}, {threads}"


@dataclass(frozen=True)
class Baseline:
    """The baseline, ready to plan.

    Attributes:
        ways: what plans for all environments and returns seconds and plans (E, H, a), by name.
        default: name of the way in which it plans by default.
        version: of the package.
        first_look_ms: milliseconds per environment at first sight, of every setting that was tried.
    """

    ways: Mapping[str, Callable[[], tuple[float, np.ndarray]]]
    default: str
    version: str
    first_look_ms: dict[str, float]


@contextmanager
def baseline(python: Path, problem: Mapping[str, Any], threads: int) -> Iterator[Baseline]:
    """Start the baseline.

    Args:
        python: of its environment.
        problem: A, B, the states s and goals of E environments, horizon, action weight, and options of the search.
        threads: of its default way. When tuned, it is tried with these and with all cores, in batches of every size.
    """
    command = [python, Path(__file__).with_name("plan_child.py")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        about = _ask(child, problem)

        def run(setting: Setting, environments: int) -> tuple[float, np.ndarray]:
            answer = _ask(child, setting._asdict() | {"environments": environments})
            return answer["seconds"], np.array(answer["plans"])

        every = len(problem["s"])
        default = Setting(False, about["batch"], threads)
        batches = [batch for batch in _BATCHES if batch <= every]
        tuned = [Setting(True, batch, n) for n in sorted({threads, os.cpu_count() or 1}) for batch in batches]
        ms = {}
        for one in (default, *tuned):
            some = min(every, max(one.batch, 8))  # environments that are enough for a first look
            ms[one] = 1e3 * run(one, some)[0] / some
        kept = [one for one in ms if one == default or ms[one] < _PATIENCE * min(ms.values())]
        ways = {str(one): partial(run, one, every) for one in kept}
        yield Baseline(ways, str(default), about["version"], {str(one): each for one, each in ms.items()})


def _ask(child: "subprocess.Popen[str]", question: Mapping[str, Any]) -> dict[str, Any]:
    assert child.stdin is not None and child.stdout is not None
    answer = ""
    with suppress(BrokenPipeError):  # it has ended before it was asked
        child.stdin.write(json.dumps(question) + "\n")
        child.stdin.flush()
        answer = child.stdout.readline()
    if not answer:
        ending = how_it_ended(child.wait())
        raise RuntimeError(f"the baseline has ended early ({ending}): --baseline none measures without it")
    return json.loads(answer)


def environment(folder: Path) -> Path:
    """Return the Python of the baseline's environment, which is made or completed where needed."""
    python = folder / "bin" / "python"
    if not python.exists():
        venv.create(folder, symlinks=True)
    # A .pth file lends it the project's packages, so that torch is not installed twice; its own come first.
    (site,) = folder.glob("lib/python*/site-packages")
    lent = dict.fromkeys(sysconfig.get_path(name) for name in ("purelib", "platlib"))
    (site / "project.pth").write_text("\n".join(lent) + "\n")
    install = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", "--no-deps", *_PACKAGES]
    done = subprocess.run(install, capture_output=True, text=True, check=False)
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or [f"pip: {how_it_ended(done.returncode)}"])[-1]
        raise RuntimeError(f"the baseline cannot be installed ({reason}): --baseline none measures without it")
    return python
