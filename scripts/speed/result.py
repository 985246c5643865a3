"""What every benchmark leaves: numbers with the machine and the versions behind them."""

import os
import platform
from dataclasses import asdict
from pathlib import Path
from typing import Any

from worldmodel.scripts import cli
from worldmodel.utils.files import to_plain, write_json
from worldmodel.utils.versions import versions


def write_result(folder: Path, options: Any, measured: dict[str, Any], other_versions: dict[str, str]) -> None:
    """Write ``result.json``; of the options, folders are left out, which say nothing on another machine."""
    result = {
        "options": {name: value for name, value in asdict(options).items() if not isinstance(value, Path)},
        "cpu": _cpu(),
        "cores": os.cpu_count(),
        "versions": versions() | other_versions,
    }
    write_json(folder / "result.json", to_plain(result | measured))
    cli.console.print(str(folder / "result.json"), highlight=False)


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.machine())
