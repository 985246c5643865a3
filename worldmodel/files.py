"""Files that are written whole or not at all."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any


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
    """Write strict JSON (no NaN: a missing number is ``null``), indented for people."""
    text = json.dumps(value, indent=2, allow_nan=False) + "\n"
    return write_whole(path, lambda temporary: temporary.write_text(text))
