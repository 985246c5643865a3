"""Progress bars with the time left."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Column


class Advance(Protocol):
    """Moves a bar on."""

    def __call__(self, steps: int, note: str = "") -> None:
        """Count ``steps`` more, and show a note of the latest values."""
        ...


@contextmanager
def progress_bar(label: str, total: int, shown: bool = True, done: int = 0) -> Iterator[Advance]:
    """Yield ``advance(steps, note)``, drawn as a bar with the time left and a note of the latest values."""
    columns = (
        TextColumn("{task.description:<8}"),
        BarColumn(bar_width=10),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(compact=True),
        TextColumn("left"),
        TextColumn("{task.fields[note]}", table_column=Column(no_wrap=True)),
    )
    with Progress(*columns, disable=not shown) as progress:
        task = progress.add_task(label, total=total, completed=done, note="")

        def advance(steps: int, note: str = "") -> None:
            progress.update(task, advance=steps, note=note)

        yield advance
