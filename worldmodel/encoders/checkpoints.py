"""Checkpoints of a training run: tensors and plain values, never code."""

import pickle
from pathlib import Path
from typing import Any

import torch

from worldmodel.utils.files import write_whole


def save_checkpoint(path: Path, state: dict[str, Any]) -> None:
    """Write a checkpoint whole or not at all."""
    write_whole(path, lambda temporary: torch.save(state, temporary))


def load_checkpoint(path: Path, device: torch.device | str = "cpu") -> dict[str, Any]:
    """Read a checkpoint with ``weights_only=True`` semantics, wherever it was written.

    Raises:
        ValueError: the file is damaged or foreign.
    """
    try:
        return torch.load(path, map_location=device, weights_only=True)
    except (RuntimeError, pickle.UnpicklingError, EOFError, ValueError, KeyError) as error:
        raise ValueError(f"{path} is not a readable checkpoint; delete it to start again ({error})") from error
