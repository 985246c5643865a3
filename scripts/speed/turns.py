"""Measuring by turns: what else the machine does then strikes all ways alike."""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar

import numpy as np
import torch
from rich.progress import track

from worldmodel.scripts import cli

Measured = TypeVar("Measured")


def by_turns(ways: Mapping[str, Callable[[], Measured]], repeats: int, doing: str) -> dict[str, list[Measured]]:
    """Measure every way once per round: one round that is not kept, then as many as ``repeats``.

    Args:
        ways: what measures itself, by name: a time, or a time and what took it.
        repeats: rounds that are kept.
        doing: what the progress bar says.

    Returns:
        The measured values by name; entries of one place are of one round.
    """
    rounds = [
        {name: measure() for name, measure in ways.items()}
        for _ in track(range(repeats + 1), description=doing, console=cli.console, transient=True)
    ]
    return {name: [one[name] for one in rounds[1:]] for name in ways}


def times_faster(ours: list[float], theirs: list[float]) -> list[float]:
    """Divide the times of two ways, round by round.

    >>> times_faster([1.0, 2.0], [4.0, 4.0])
    [4.0, 2.0]
    """
    return np.divide(theirs, ours).tolist()


def milliseconds(step: Callable[[], Any], steps: int) -> float:
    """Return milliseconds per step; the last one's tensor, if it returns one, is waited for."""
    start = time.perf_counter()
    for _ in range(steps):
        last = step()
    if isinstance(last, torch.Tensor) and last.is_cuda:
        torch.cuda.synchronize(last.device)
    return 1e3 * (time.perf_counter() - start) / steps


@contextmanager
def torch_threads(threads: int) -> Iterator[None]:
    """Let torch compute with so many threads, then with as many as before."""
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        yield
    finally:
        torch.set_num_threads(before)
