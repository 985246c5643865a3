"""Work that fans out over processes, and ends in a named error when one of them dies or hangs."""

import multiprocessing
from collections.abc import Iterator, Sequence
from typing import Any

import joblib
from joblib.externals.loky import get_reusable_executor
from joblib.externals.loky.process_executor import TerminatedWorkerError

_HUNG_SECONDS = 600.0  # a worker that finishes nothing for so long is taken for dead


def in_parallel(calls: Sequence[Any], processes: int, what: str, *, ordered: bool = False) -> Iterator[Any]:
    """Yield the results of ``joblib.delayed`` calls as they come, or in their order.

    loky starts fresh interpreters, so each has an OpenGL context of its own. They stay for the next call, until
    :func:`dismiss`.

    Args:
        calls: what to do, each independent of the others.
        processes: how many at a time.
        what: names the work in errors.
        ordered: yield results in the order of the calls.

    Raises:
        RuntimeError: a worker died or hangs.
    """
    order = "generator" if ordered else "generator_unordered"
    parallel = joblib.Parallel(processes, return_as=order, batch_size=1, timeout=_HUNG_SECONDS)
    try:
        yield from parallel(calls)
    except TerminatedWorkerError as error:
        raise RuntimeError(f"a worker died while {what}; the same command resumes ({error})") from error
    except multiprocessing.TimeoutError as error:
        raise RuntimeError(f"nothing done in {_HUNG_SECONDS:.0f} s of {what}: a worker hangs; try again") from error


def dismiss() -> None:
    """Let the workers go: idle ones would hold half a gigabyte each for minutes."""
    get_reusable_executor().shutdown(wait=False)
