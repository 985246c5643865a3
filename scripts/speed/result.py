"""What every benchmark leaves: a table for people, and numbers with the machine and the versions behind them."""

import os
import platform
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from rich.table import Table

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


def new_table(title: str, first: str, others: Sequence[str]) -> Table:
    """Return a table of one name and numbers per row."""
    table = Table(title=title, title_justify="left")
    table.add_column(first, no_wrap=True)
    for column in others:
        table.add_column(column, justify="right", no_wrap=True)
    return table


def spread(values: Sequence[float], digits: int) -> tuple[str, str]:
    """Return the median and the range of values, for people.

    >>> spread([1.0, 2.0, 4.0], digits=1)
    ('2.0', '1.0 to 4.0')
    """
    if not len(values):
        return "", ""
    return f"{np.median(values):.{digits}f}", f"{min(values):.{digits}f} to {max(values):.{digits}f}"


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.machine())
