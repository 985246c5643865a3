"""Work that fans out."""

import os
import signal
import subprocess
import sys
import time

import joblib
import pytest

from worldmodel.utils.workers import dismiss, in_fresh_process, in_parallel, register

PARENT = """
import os, sys, time
import joblib
from worldmodel.utils.workers import in_parallel

def work(index):
    print(os.getpid(), flush=True)
    time.sleep(60)

list(in_parallel([joblib.delayed(work)(index) for index in range(2)], 2, "testing"))
"""


def power(base: int, *, exponent: int) -> int:
    return base**exponent


def test_results_come_in_order() -> None:
    calls = [joblib.delayed(power)(base, exponent=2) for base in range(5)]
    try:
        assert list(in_parallel(calls, 2, "testing", ordered=True)) == [0, 1, 4, 9, 16]
    finally:
        dismiss()


def test_workers_end_with_the_process_that_was_killed() -> None:
    parent = subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    workers = [int(parent.stdout.readline()) for _ in range(2)]
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    deadline = time.monotonic() + 30
    while any(alive(worker) for worker in workers) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not any(alive(worker) for worker in workers)


def alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    with open(f"/proc/{process}/stat") as file:
        return file.read().rpartition(")")[2].split()[0] != "Z"


def test_a_backend_that_is_not_installed_names_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray.util.joblib", None)
    with pytest.raises(ValueError, match=r"worldmodel\[ray\]"):
        register("ray")


def end(by: signal.Signals) -> None:
    os.kill(os.getpid(), by)


@pytest.mark.parametrize(
    ("by", "advice"), [(signal.SIGSEGV, "worldmodel doctor"), (signal.SIGKILL, "fewer --processes")]
)
def test_a_worker_that_dies_by_a_signal_is_named_with_what_to_try(by: signal.Signals, advice: str) -> None:
    calls = [joblib.delayed(end)(by), joblib.delayed(power)(2, exponent=2)]
    with pytest.raises(RuntimeError, match=rf"a worker died while testing; .* \({by.name}; .*{advice}"):
        list(in_parallel(calls, 2, "testing"))


def test_a_fresh_process_is_another_one_and_its_death_is_named() -> None:
    assert in_fresh_process("testing", os.getpid) != os.getpid()
    with pytest.raises(RuntimeError, match=r"a worker died while testing.*SIGABRT"):
        in_fresh_process("testing", os.abort)
