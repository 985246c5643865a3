"""Files that are written whole or not at all."""

import hashlib
import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np


def write_whole(path: Path, write: Callable[[Path], object]) -> Path:
    """Let ``write`` fill a temporary neighbour of ``path``, then rename it in one step.

    A reader sees the old file or the new one, never a part. The temporary name keeps the suffix, since many writers
    choose their format by it. What a failed ``write`` left behind is removed.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.stem}.{os.getpid()}.tmp{path.suffix}")
    try:
        write(temporary)
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
    return path


def write_json(path: Path, value: Any) -> Path:
    """Write strict JSON (NaN is refused: pass values through :func:`to_plain`), indented for people."""
    text = json.dumps(value, indent=2, allow_nan=False) + "\n"
    return write_whole(path, lambda temporary: temporary.write_text(text))


def to_plain(value: Any) -> Any:
    """Turn arrays, tuples and paths into what JSON holds; what is not finite becomes ``None``."""
    if isinstance(value, Mapping):
        return {str(key): to_plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [to_plain(item) for item in value]
    if isinstance(value, np.ndarray):
        return to_plain(value.tolist())
    if isinstance(value, np.generic):
        return to_plain(value.item())
    if isinstance(value, Path):
        return str(value)
    return None if isinstance(value, float) and not np.isfinite(value) else value


def file_digest(path: Path) -> str:
    """Hash the content of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:12]
