"""Where to compute, with how many threads, and in which precision."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch
from torch import Tensor


def resolve_device(name: str) -> torch.device:
    """Turn ``auto``, ``cpu``, ``cuda`` or ``cuda:1`` into a device that is there.

    Raises:
        ValueError: the device is unknown or out of reach.
    """
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError:
        raise ValueError(f"unknown device {name!r}: use auto, cpu or cuda") from None
    if device.type == "cuda" and not torch.cuda.is_available():
        raise ValueError("device 'cuda' asked for, but torch sees no GPU: use --device cpu, or auto")
    return device


def has_fast_bfloat16(device: torch.device) -> bool:
    """Say whether bfloat16 convolutions run in hardware there."""
    if device.type == "cuda":
        return torch.cuda.is_bf16_supported()
    return bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())


def sent(array: np.ndarray, device: torch.device) -> Tensor:
    """Send an array to a device; a GPU fetches it from pinned memory, without the host waiting for it."""
    tensor = torch.from_numpy(array)
    return tensor.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else tensor.to(device)


@contextmanager
def one_core_spared() -> Iterator[None]:
    """Let torch compute on all cores but one, or with as many threads as ``WORLDMODEL_THREADS`` says; then undo it.

    The threads of an operation wait for each other. Where other work holds one of the cores, each of the hundreds of
    operations of a training step takes a time slice of the system (4 ms) instead of microseconds, whether the waiting
    threads spin or sleep: seen on two cores, 4000 to 5700 ms a step with two threads and 85 with one. On a machine that
    does nothing else the second thread makes a step 1.4 times faster; who has one to himself can say so. It never
    gives more than torch has: workers that share the cores keep their one thread.

    Raises:
        ValueError: ``WORLDMODEL_THREADS`` is not a number of threads.
    """
    before = torch.get_num_threads()
    torch.set_num_threads(max(1, min(before, _wanted_threads() or (os.cpu_count() or 1) - 1)))
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _wanted_threads() -> int | None:
    text = os.environ.get("WORLDMODEL_THREADS", "")
    if text and not (text.isdecimal() and int(text) > 0):
        raise ValueError(f"WORLDMODEL_THREADS is {text!r}; it must be a number of threads, 1 or more")
    return int(text) if text else None
