"""Tables for people, and for files."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from rich.table import Table

from worldmodel.data.datacard import DataCard


@dataclass(frozen=True)
class Grid:
    """A table, for people and for files.

    Attributes:
        title: above it.
        header: names of the columns.
        rows: cells as text.
        caption: below it.
    """

    title: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    caption: str = ""

    def table(self) -> Table:
        """Return it for the terminal."""
        table = Table(title=self.title, title_justify="left", caption=self.caption or None, caption_justify="left")
        for index, column in enumerate(self.header):
            table.add_column(column, justify="right" if index and column else "left")
        for row in self.rows:
            table.add_row(*row)
        return table

    def markdown(self) -> str:
        """Return it for a file."""
        lines = [self.header, ["---"] + ["---:"] * (len(self.header) - 1), *self.rows]
        body = "\n".join("| " + " | ".join(line) + " |" for line in lines)
        return f"**{self.title}**\n\n{body}" + (f"\n\n{self.caption}" if self.caption else "")


def new_table(title: str, first: str, others: Sequence[str]) -> Table:
    """Return a table of one name and numbers per row."""
    table = Table(title=title, title_justify="left")
    table.add_column(first, no_wrap=True)
    for column in others:
        table.add_column(column, justify="right", no_wrap=True)
    return table


def plain_table(table: Table) -> list[dict[str, str]]:
    """Return the rows of a table as they are printed, by column."""
    columns = [(str(column.header), list(column.cells)) for column in table.columns]
    return [{name: str(cells[row]) for name, cells in columns} for row in range(table.row_count)]


def spread(values: Sequence[float], digits: int) -> tuple[str, str]:
    """Return the median and the range of values, for people.

    >>> spread([1.0, 2.0, 4.0], digits=1)
    ('2.0', '1.0 to 4.0')
    """
    if not len(values):
        return "", ""
    return f"{np.median(values):.{digits}f}", f"{min(values):.{digits}f} to {max(values):.{digits}f}"


def card_table(card: DataCard) -> Table:
    """Lay out a data card, one row per latent and per action."""
    shape = card.gaussianity
    title = f"{card.env}, {card.explorer}: {card.episodes} episodes, {card.frames} frames"
    drawn = "" if card.render_ms_per_frame is None else f"; drawn in {card.render_ms_per_frame:.2f} ms a frame"
    earned = "" if card.returns is None else f"; mean return of an episode {card.returns:.3g}"
    caption = f"anisotropy {shape.anisotropy:.2f}, coverage {shape.coverage:.2f}{earned}{drawn} by {card.gl_renderer}"
    table = Table(title=title, title_justify="left", caption=caption, caption_justify="left")
    for column in ("latent", "mean", "std", "rho", "skewness", "excess kurtosis", "distance to Gaussian"):
        table.add_column(column, justify="left" if column == "latent" else "right")
    rows = zip(card.mean, card.std, card.rho, shape.skewness, shape.excess_kurtosis, shape.distance, strict=True)
    for name, values in zip(card.latent_names, rows, strict=True):
        table.add_row(name, *(f"{value:.3f}" for value in values))
    for index, (std, rho) in enumerate(zip(card.action_std, card.action_autocorrelation, strict=True)):
        table.add_row(f"action {index}", "", f"{std:.3f}", f"{rho:.3f}", "", "", "")
    return table
