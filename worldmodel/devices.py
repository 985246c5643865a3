"""Where to compute, with how many threads, and in which precision."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

import torch


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


@contextmanager
def one_core_spared() -> Iterator[None]:
    """Let torch compute on all cores but one, then give it its threads back.

    The threads of an operation wait for each other. Where other work holds one of the cores, the waiting one spins, and
    each of the hundreds of operations of a training step takes a time slice of the system (4 ms) instead of
    microseconds: seen on two cores, 5000 ms a step with two threads and 85 ms with one. Where nothing else ran, the
    second thread gained nothing either.
    """
    before = torch.get_num_threads()
    torch.set_num_threads(max(1, min(before, (os.cpu_count() or 1) - 1)))
    try:
        yield
    finally:
        torch.set_num_threads(before)
