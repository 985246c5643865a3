"""Stages of a pipeline, each kept on disk under a hash of what determines it.

A second run goes straight to what is new, a changed option redoes only what depends on it, and an interrupted stage is
entered again with its own folder, so that work which resumes (shards, checkpoints) does so.
"""

import dataclasses
import hashlib
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from worldmodel.utils.files import write_json

_DONE = "stage.json"


@dataclass(frozen=True)
class Stage:
    """One finished stage.

    Attributes:
        name: what the stage does, for example ``"collect"``.
        folder: where its files lie.
        digest: hash of what determines it, a part of the key of every stage that depends on it.
        seconds: wall-clock seconds that it took when it ran.
        cached: whether this call found it finished.
    """

    name: str
    folder: Path
    digest: str
    seconds: float
    cached: bool


def digest_of(key: Mapping[str, Any]) -> str:
    """Hash a mapping of options (JSON values, paths and dataclasses) to 12 hexadecimal digits.

    >>> digest_of({"rho": 0.9, "frames": 100}) == digest_of({"frames": 100, "rho": 0.9})
    True
    """
    text = json.dumps(key, sort_keys=True, default=_plain)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def run_stage(root: Path, name: str, key: Mapping[str, Any], build: Callable[[Path], object]) -> Stage:
    """Run ``build(folder)`` unless the folder of this name and key is finished.

    Args:
        root: where stages are kept.
        name: what the stage does.
        key: all that determines the result, the digests of earlier stages among it.
        build: writes the result into the folder that it is given; entered again after an interruption.
    """
    digest = digest_of(key)
    folder = root / f"{name}-{digest}"
    done = folder / _DONE
    if done.exists():
        return Stage(name, folder, digest, json.loads(done.read_text())["seconds"], cached=True)
    folder.mkdir(parents=True, exist_ok=True)
    start = time.perf_counter()
    build(folder)
    seconds = time.perf_counter() - start
    write_json(done, {"name": name, "seconds": seconds, "key": json.loads(json.dumps(key, default=_plain))})
    return Stage(name, folder, digest, seconds, cached=False)


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {"type": type(value).__name__, **dataclasses.asdict(value)}
    if isinstance(value, Path):
        return str(value)
    raise TypeError(f"a stage's key holds JSON values, paths and dataclasses, not {type(value).__name__}")
