"""How cost grows with frames, latents, samples and environments."""

import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import get_args

import numpy as np
import torch
from matplotlib.figure import Figure

from worldmodel.report.figures import save_figure
from worldmodel.report.tables import new_table
from worldmodel.scripts import cli
from worldmodel.scripts.speed.growth_parts import Axis, Call, Part, Setting, parts
from worldmodel.scripts.speed.result import write_result
from worldmodel.scripts.speed.turns import by_turns, milliseconds
from worldmodel.utils.devices import one_core_spared, resolve_device

_LEAST_SECONDS = 0.03  # that a measurement takes: short calls are repeated
_LATE = 3  # sizes at the end, over which the exponent is taken


@dataclass(frozen=True)
class Growth:
    """Time parts of the library at growing sizes, and fit t ∝ size^p to the last of them.

    Attributes:
        axes: what grows: frames that are collected, loaded or embedded; dimensions of embedding or state; pairs of a
            batch or candidates of a search; environments that are stepped or planned for together.
        largest: sizes up to this share of each part's largest are measured.
        repeats: how often each size is timed, after one round that is not.
        device: auto, cpu or cuda, of networks and objectives.
        seed: of data, weights and noise.
        out: output folder.
    """

    axes: tuple[Axis, ...] = get_args(Axis)
    largest: float = 1.0
    repeats: int = 3
    device: str = "auto"
    seed: int = 0
    out: Path = Path("runs/bench/growth")


@dataclass(frozen=True)
class Curve:
    """Times of one part.

    Attributes:
        axis: what grows.
        what: is called.
        sizes: ascending.
        ms: milliseconds per call, one list of repeats per size.
        exponent: p of t ∝ size^p over the last sizes, by their medians.
    """

    axis: str
    what: str
    sizes: list[int]
    ms: list[list[float]]
    exponent: float


def growth(options: Growth) -> list[Curve]:
    """Time every part at every size, and leave table, figure and ``result.json``."""
    if options.repeats < 2 or not 0 < options.largest <= 1 or not options.axes:
        raise ValueError("--repeats must be at least 2, --largest a share of 1, and --axes one at least")
    device = resolve_device(options.device)
    folder = cli.run_folder(options.out, "bench/growth")
    setting = Setting(folder / "data", device, options.seed)
    with torch.random.fork_rng():
        torch.manual_seed(options.seed)
        curves = [_curve(part, options) for part in parts(setting) if part.axis in options.axes]
    shutil.rmtree(setting.folder, ignore_errors=True)
    table = new_table(
        f"milliseconds per call, {device.type}; p of t ∝ size^p over the last {_LATE} sizes",
        "what grows",
        ("part", "from", "ms", "to", "ms", "p"),
    )
    for curve in curves:
        ends = [cell for i in (0, -1) for cell in (str(curve.sizes[i]), f"{np.median(curve.ms[i]):.3g}")]
        table.add_row(curve.axis, curve.what, *ends, f"{curve.exponent:.2f}")
    cli.console.print(table)
    save_figure(_figure(curves), folder / "growth.png")
    write_result(folder, options, {"device_type": device.type, "growth": [asdict(curve) for curve in curves]}, {})
    return curves


def _curve(part: Part, options: Growth) -> Curve:
    sizes = [size for size in part.sizes if size <= max(options.largest * part.sizes[-1], part.sizes[0])]
    ways = {str(size): _timed(part.prepare(size)) for size in sizes}
    ms = list(by_turns(ways, options.repeats, f"{part.axis}: {part.what}").values())
    return Curve(part.axis, part.what, sizes, ms, exponent(sizes, ms))


def _timed(call: Call) -> Callable[[], float]:
    """Return what measures milliseconds per call, over as many calls as a first look says."""
    call()
    start = time.perf_counter()
    call()
    calls = max(1, round(_LEAST_SECONDS / (time.perf_counter() - start)))

    def measure() -> float:
        with one_core_spared():
            return milliseconds(call, calls)

    return measure


def exponent(sizes: Sequence[int], ms: Sequence[Sequence[float]]) -> float:
    """Return p of t ∝ size^p by least squares of the logarithms, over the last sizes' medians; NaN for a single size.

    >>> round(exponent([1, 2, 4, 8], [[9.0], [4.0], [16.0], [64.0]]), 6)
    2.0
    """
    late = slice(-_LATE, None)
    if len(sizes) < 2:
        return float("nan")
    return float(np.polyfit(np.log(sizes[late]), np.log([np.median(one) for one in ms[late]]), 1)[0])


def _figure(curves: Sequence[Curve]) -> Figure:
    axes = list(dict.fromkeys(curve.axis for curve in curves))
    figure = Figure(figsize=(3.6 * len(axes), 3.9), layout="constrained")
    for plot, axis in zip(figure.subplots(1, len(axes), squeeze=False)[0], axes, strict=True):
        for curve in curves:
            if curve.axis == axis:
                middle, low, high = (np.array([of(one) for one in curve.ms]) for of in (np.median, np.min, np.max))
                (line,) = plot.plot(
                    curve.sizes, middle, "o-", ms=3, lw=1.2, label=f"{curve.what}: {curve.exponent:.2f}"
                )
                plot.fill_between(curve.sizes, low, high, color=line.get_color(), alpha=0.2, lw=0)
        plot.set(xscale="log", yscale="log", xlabel=axis, ylabel="ms per call")
        plot.legend(
            frameon=False,
            fontsize=7,
            title="part: exponent at the end",
            title_fontsize=7,
            loc="lower center",
            bbox_to_anchor=(0.5, 1.0),
        )
        plot.spines[["top", "right"]].set_visible(False)
    return figure
