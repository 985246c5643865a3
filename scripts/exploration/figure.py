"""The benchmark's figure: what each explorer's encoder identifies, and what control from frames then costs."""

from collections.abc import Sequence

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter, ScalarFormatter

from worldmodel.scripts.exploration.rows import Row

_SHOWN = (
    ("own", "own held-out episodes", "o"),
    ("gaussian", "common Gaussian", "s"),
    ("uniform", "common uniform", "^"),
)
_LEAST = 1e-4  # of 1 - R², on a logarithmic axis


def draw(rows: Sequence[Row], best: Sequence[Row]) -> Figure:
    """Draw R² and control cost of each explorer at its best lag, and of all cells against each other."""
    order = sorted(best, key=lambda row: row.mean("r2_gaussian"))
    colours = dict(zip((row.name for row in best), colormaps["tab10"](np.arange(len(best)) % 10), strict=True))
    figure = Figure(figsize=(14, 1.6 + 0.42 * max(6, len(order))), layout="constrained")
    left, middle, right = figure.subplots(1, 3, width_ratios=(1.2, 1, 1.2))
    _identified(left, order)
    _controlled(middle, order)
    _together(right, [row for row in rows if not row.skipped], colours)
    return figure


def _identified(axis: Axes, order: Sequence[Row]) -> None:
    for shift, (law, label, marker) in zip((0.2, 0.0, -0.2), _SHOWN, strict=True):
        for place, row in enumerate(order):
            interval = row.interval(f"r2_{law}")
            if interval is None:
                continue
            colour = f"C{[name for name, *_ in _SHOWN].index(law)}"
            if np.isfinite(interval.low):
                axis.plot([interval.low, interval.high], [place + shift] * 2, color=colour, lw=1.5, alpha=0.6)
            axis.plot(interval.mean, place + shift, marker, color=colour, ms=5, label=label if place == 0 else None)
    axis.set(xlim=(-0.05, 1.02), xlabel="R² of the latents from the embedding", title="Identified")
    axis.set_yticks(range(len(order)), [f"{row.name} · lag {row.lag}" for row in order])
    axis.legend(frameon=False, fontsize=8, loc="upper left")  # the best, at the top, are at the right
    _plain(axis)


def _controlled(axis: Axes, order: Sequence[Row]) -> None:
    random = next((row.mean("random_cost_ratio") for row in order if "random_cost_ratio" in row.values), np.nan)
    for place, row in enumerate(order):
        interval = row.interval("cost_ratio")
        if interval is None:
            continue
        if np.isfinite(interval.low):
            axis.plot([interval.low, interval.high], [place] * 2, color="C3", lw=1.5, alpha=0.6)
        axis.plot(interval.mean, place, "o", color="C3", ms=5)
        axis.annotate(
            f"{row.mean('success'):.0%}", (interval.mean, place), (0, 6), textcoords="offset points", fontsize=8
        )
    axis.axvline(1, color="C0", ls="--", lw=1)
    if np.isfinite(random):
        axis.axvline(random, color="#999999", ls=":", lw=1, label="random policy")
        axis.legend(frameon=False, fontsize=8)
    axis.set(xscale="log", xlim=(0.6, 3_000), xlabel="LQR's cost ÷ oracle's, and tasks solved")
    axis.set_title("Controlled from frames")
    axis.set_yticks(range(len(order)), [""] * len(order))
    axis.set_ylim(-0.6, len(order) - 0.4)
    _plain(axis)


def _together(axis: Axes, rows: Sequence[Row], colours: dict[str, np.ndarray]) -> None:
    for name, colour in colours.items():
        own = [row for row in rows if row.name == name and "cost_ratio" in row.values]
        if own:
            gap = np.concatenate([1 - row.values["r2_gaussian"] for row in own]).clip(_LEAST)
            cost = np.concatenate([row.values["cost_ratio"] for row in own])
            axis.plot(gap, cost, "o", color=colour, ms=5, alpha=0.8, label=name, lw=0)
    axis.set(xscale="log", yscale="log", xlabel="1 - R² on the common Gaussian set", ylabel="LQR's cost ÷ oracle's")
    axis.set_title("Together: every lag and seed")
    axis.invert_xaxis()
    axis.legend(frameon=False, fontsize=8)
    _plain(axis)


def _plain(axis: Axes) -> None:
    axis.spines[["top", "right"]].set_visible(False)
    for each, scale in ((axis.xaxis, axis.get_xscale()), (axis.yaxis, axis.get_yscale())):
        if scale == "log":
            each.set_major_formatter(ScalarFormatter())
            each.set_minor_formatter(NullFormatter())
