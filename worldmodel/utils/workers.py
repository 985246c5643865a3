"""Work that fans out over processes, here or on a cluster, and ends in a named error when one of them dies or hangs."""

import multiprocessing
import os
import re
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, ParamSpec, TypeVar

import joblib
from joblib.externals.loky import ProcessPoolExecutor, get_reusable_executor
from joblib.externals.loky.process_executor import TerminatedWorkerError

from worldmodel.utils.backends import Backend
from worldmodel.utils.endings import how_it_ended, what_to_try

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")

_HUNG_SECONDS = 600.0  # a worker that finishes nothing for so long is taken for dead

HOURS = 4 * 3600.0
"""Seconds of patience with work that trains something."""
_WATCHED = threading.Event()


def in_parallel(
    calls: Sequence[Any],
    processes: int,
    what: str,
    *,
    ordered: bool = False,
    patience: float | None = None,
    backend: Backend = "loky",
) -> Iterator[Any]:
    """Yield the results of ``joblib.delayed`` calls as they come, or in their order.

    loky starts fresh interpreters, so each has an OpenGL context of its own. They stay for the next call, until
    :func:`dismiss`.

    Args:
        calls: what to do, each independent of the others.
        processes: how many at a time.
        what: names the work in errors.
        ordered: yield results in the order of the calls.
        patience: seconds without any result after which a worker is taken for dead (default: 10 minutes).
        backend: where workers run.

    Raises:
        ValueError: the backend is not installed.
        RuntimeError: a worker died or hangs.
    """
    register(backend)
    patience = _HUNG_SECONDS if patience is None else patience
    order = "generator" if ordered else "generator_unordered"
    order = order if backend == "loky" else "list"  # all that joblib's Ray backend offers: results come at the end
    parallel = joblib.Parallel(processes, backend=backend, return_as=order, batch_size=1, timeout=patience)
    try:
        yield from parallel(joblib.delayed(_attended)(call) for call in calls)
    except TerminatedWorkerError as error:
        raise RuntimeError(_death(error, what)) from error
    except multiprocessing.TimeoutError as error:
        raise RuntimeError(f"nothing done in {patience:.0f} s of {what}: a worker hangs; try again") from error


def in_fresh_process(
    what: str, function: Callable[Arguments, Result], *args: Arguments.args, **kwargs: Arguments.kwargs
) -> Result:
    """Call a function in a process that did nothing before and does nothing after; ``what`` names it in errors.

    Raises:
        RuntimeError: the process died.
    """
    with ProcessPoolExecutor(1) as pool:
        try:
            return pool.submit(function, *args, **kwargs).result()
        except TerminatedWorkerError as error:
            raise RuntimeError(_death(error, what)) from error


def _death(error: TerminatedWorkerError, what: str) -> str:
    endings = [how_it_ended(int(code)) for code in re.findall(r"\w\((-?\d+)\)", str(error))]
    how = ", ".join(dict.fromkeys(endings)) or "nobody knows how"
    advice = what_to_try(*endings)
    return f"a worker died while {what}; the same command resumes ({how}{advice and f'; {advice}'})"


def register(backend: Backend) -> None:
    """Make a backend known to joblib.

    Raises:
        ValueError: it is not installed.
    """
    if backend == "ray":
        try:
            from ray.util.joblib import register_ray
        except ImportError:
            raise ValueError("the backend ray is not installed: pip install 'worldmodel[ray]'") from None
        register_ray()


def dismiss() -> None:
    """Let the workers go: idle ones would hold half a gigabyte each for minutes."""
    get_reusable_executor().shutdown(wait=False)


def _attended(call: Any) -> Any:
    """Do one of ``joblib.delayed``'s calls, and end with the process that waits for it."""
    _end_with_parent()
    function, arguments, options = call
    return function(*arguments, **options)


def _end_with_parent() -> None:
    """Let this worker end as soon as the process that started it is gone; elsewhere than in a worker, do nothing.

    Where the parent was killed, nobody waits for the result, and the next run does the same work.
    """
    if not multiprocessing.current_process().name.startswith("Loky") or _WATCHED.is_set():
        return
    _WATCHED.set()
    parent = os.getppid()

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1.0)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
