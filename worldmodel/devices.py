"""Where to compute, and in which precision."""

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
