"""Stages of a pipeline, each kept on disk under a hash of what determines it.

That are the options it was called with, the content of what it reads, and the code that makes it. A second run goes
straight to what is new, a changed option redoes only what depends on it, and an interrupted stage is entered again with
its own folder, so that work which resumes (shards, checkpoints) does so.
"""

import dataclasses
import hashlib
import json
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from worldmodel.utils.files import write_json
from worldmodel.utils.fingerprint import code_of, fingerprint
from worldmodel.utils.versions import versions

_DONE = "stage.json"
_NAMED = 3  # changes that are told; the rest is counted


@dataclass(frozen=True)
class Stage:
    """One finished stage.

    Attributes:
        name: what the stage does, for example ``"collect"``.
        folder: where its files lie.
        digest: hash of what determines it, a part of the key of every stage that depends on it.
        seconds: wall-clock seconds that it took when it ran.
        cached: whether this call found it finished.
        versions: of the packages that made it.
        changed: why it ran though another of its name was finished: what differs.
        outdated: what has changed since it was made, where it was kept all the same.
    """

    name: str
    folder: Path
    digest: str
    seconds: float
    cached: bool
    versions: Mapping[str, str] = field(default_factory=dict)
    changed: tuple[str, ...] = ()
    outdated: tuple[str, ...] = ()

    def told(self) -> str:
        """Say in one line how it went."""
        if self.outdated:
            return f"{self.name}: kept ({self.seconds:.0f} s then), though {_few(self.outdated)} changed since"
        if self.cached:
            return f"{self.name}: kept from an earlier run ({self.seconds:.0f} s then)"
        again = f" (again: {_few(self.changed)} changed)" if self.changed else ""
        return f"{self.name}: done in {self.seconds:.0f} s{again}"

    def to_json(self) -> dict[str, Any]:
        """Return what a result says of the stage that made its numbers."""
        told = {"digest": self.digest, "seconds": self.seconds, "versions": dict(self.versions)}
        return told | ({"outdated": list(self.outdated)} if self.outdated else {})


def digest_of(key: Mapping[str, Any]) -> str:
    """Hash a mapping of options (JSON values, paths, dataclasses, functions and classes) to 12 hexadecimal digits.

    >>> digest_of({"rho": 0.9, "frames": 100}) == digest_of({"frames": 100, "rho": 0.9})
    True
    """
    text = json.dumps(key, sort_keys=True, default=_plain)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def run_stage(
    root: Path,
    name: str,
    key: Mapping[str, Any],
    build: Callable[[Path], object],
    *,
    made_by: Iterable[Callable[..., Any]] = (),
    keep: bool = False,
) -> Stage:
    """Run ``build(folder)`` unless the folder of this name, key and code is finished.

    Args:
        root: where stages are kept.
        name: what the stage does.
        key: all that determines the result, the digests of earlier stages among it.
        build: writes the result into the folder that it is given; entered again after an interruption.
        made_by: functions and classes that do the work: a change of a module of this project that they reach makes it
            another stage.
        keep: use a finished stage of the same name and key though its code has changed since.
    """
    key, code = json.loads(json.dumps(key, default=_plain)), fingerprint(made_by)
    digest = digest_of({"key": key, "code": code})
    folder = root / f"{name}-{digest}"
    if (folder / _DONE).exists():
        return _finished(folder, name)
    others = _others(root, name)
    if keep:
        for other, about in others:
            if about["key"] == key:
                return dataclasses.replace(_finished(other, name), outdated=_changes(about, key, code))
    folder.mkdir(parents=True, exist_ok=True)
    start = time.perf_counter()
    build(folder)
    seconds = time.perf_counter() - start
    about = {"name": name, "seconds": seconds, "key": key, "code": code, "versions": versions()}
    write_json(folder / _DONE, about)
    changed = _changes(others[0][1], key, code) if others else ()
    return Stage(name, folder, digest, seconds, False, about["versions"], changed)


def _finished(folder: Path, name: str) -> Stage:
    about = json.loads((folder / _DONE).read_text())
    digest = folder.name.removeprefix(f"{name}-")
    return Stage(name, folder, digest, about["seconds"], True, about.get("versions", {}))


def _others(root: Path, name: str) -> list[tuple[Path, dict[str, Any]]]:
    """Return finished stages of the name with what is on record of them, the newest first."""
    done = sorted(root.glob(f"{name}-*/{_DONE}"), key=lambda path: path.stat().st_mtime, reverse=True)
    known = [(path.parent, json.loads(path.read_text())) for path in done]
    return [(folder, about) for folder, about in known if about["name"] == name]


def _changes(about: Mapping[str, Any], key: Mapping[str, Any], code: Mapping[str, str]) -> tuple[str, ...]:
    """Name what differs from a finished stage: options first, then modules."""
    before = about.get("code", {})
    modules = sorted(module for module in before.keys() | code.keys() if before.get(module) != code.get(module))
    return (*_differences("", about["key"], key), *(f"the code of {module}" for module in modules))


def _differences(path: str, old: Any, new: Any) -> list[str]:
    if old == new:
        return []
    if isinstance(old, dict) and isinstance(new, dict):
        names = sorted(old.keys() | new.keys())
        return [one for name in names for one in _differences(f"{path}.{name}", old.get(name), new.get(name))]
    return [path.removeprefix(".")]


def _few(changes: tuple[str, ...]) -> str:
    more = len(changes) - _NAMED
    return ", ".join(changes[:_NAMED]) + (f" and {more} more" if more > 0 else "")


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        kind = type(value)
        fields = {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
        ours = kind.__module__.partition(".")[0] == __name__.partition(".")[0]
        return {"type": kind.__name__, **({} if ours else {"code": code_of(kind)}), **fields}
    if isinstance(value, Path):
        return str(value)
    if callable(value):
        return {"name": getattr(value, "__qualname__", type(value).__qualname__), "code": code_of(value)}
    tolist = getattr(value, "tolist", None)
    if tolist is not None:
        return tolist()
    raise TypeError(f"a stage's key holds JSON values, paths, dataclasses and functions, not {type(value).__name__}")
