"""SIGReg and its gradient, beside the formula through autograd."""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import torch
from torch import Tensor

from worldmodel.encoders.sigreg import random_slices, sigreg, sigreg_direct
from worldmodel.report.tables import new_table, spread
from worldmodel.scripts import cli
from worldmodel.scripts.speed.result import write_result
from worldmodel.scripts.speed.turns import by_turns, milliseconds, times_faster, torch_threads
from worldmodel.utils.devices import resolve_device

Statistic = Callable[[Tensor, Tensor], Tensor]


@dataclass(frozen=True)
class Sigreg:
    """Compute SIGReg and its gradient by turns with the library's function and by the formula, both in float32.

    Attributes:
        shapes: views, samples and dimensions of the embeddings: pixels, synthetic worlds, many dimensions.
        slices: random directions.
        calls: per repeat.
        repeats: how often each is timed, after one round that is not.
        threads: of either side.
        device: auto, cpu or cuda.
        seed: of embeddings and directions.
        out: output folder.
    """

    shapes: tuple[tuple[int, int, int], ...] = ((2, 128, 2), (2, 256, 8), (2, 512, 32))
    slices: int = 256
    calls: int = 5
    repeats: int = 9
    threads: int = 1
    device: str = "auto"
    seed: int = 0
    out: Path = Path("runs/bench/sigreg")


@dataclass(frozen=True)
class SigregTime:
    """Time and precision at one shape.

    Attributes:
        shape: views, samples, dimensions.
        ours: milliseconds for value and gradient, one entry per repeat.
        formula: the same of the formula.
        faster: their ratio within each repeat.
        value_error: of ours, relative to the formula in float64.
        gradient_error: largest of any entry, relative to the largest entry.
        formula_value_error: the same of the formula in float32.
        formula_gradient_error: likewise.
    """

    shape: tuple[int, int, int]
    ours: list[float]
    formula: list[float]
    faster: list[float]
    value_error: float
    gradient_error: float
    formula_value_error: float
    formula_gradient_error: float


def sigreg_times(options: Sigreg) -> list[SigregTime]:
    """Time both, and leave the table in ``result.json``."""
    if options.repeats < 2 or min(options.calls, options.threads, options.slices) < 1 or not options.shapes:
        raise ValueError("--calls, --threads and --slices must be at least 1, --repeats at least 2, and --shapes one")
    device = resolve_device(options.device)
    folder = cli.run_folder(options.out, "bench/sigreg")
    with torch_threads(options.threads):
        times = [_at_shape(shape, options, device) for shape in options.shapes]
    table = new_table(
        f"milliseconds for SIGReg and its gradient: {options.slices} slices, 17 knots, float32, {device.type}",
        "shape",
        ("formula", "range", "ours", "range", "x faster", "range", "value error", "gradient error"),
    )
    for one in times:
        errors = f"{one.value_error:.1e}", f"{one.gradient_error:.1e}"
        name = " x ".join(map(str, one.shape))
        table.add_row(name, *spread(one.formula, 2), *spread(one.ours, 2), *spread(one.faster, 1), *errors)
    cli.console.print(table)
    write_result(folder, options, {"device_type": device.type, "sigreg": [asdict(one) for one in times]}, {})
    return times


def _at_shape(shape: tuple[int, int, int], options: Sigreg, device: torch.device) -> SigregTime:
    generator = torch.Generator().manual_seed(options.seed)
    h = torch.randn(shape, generator=generator).to(device)
    directions = random_slices(shape[-1], options.slices, generator).to(device)

    def measure(statistic: Statistic) -> float:
        return milliseconds(lambda: with_gradient(statistic, h, directions)[1], options.calls)

    ways = {"ours": partial(measure, sigreg), "formula": partial(measure, sigreg_direct)}
    ms = by_turns(ways, options.repeats, " x ".join(map(str, shape)))
    faster = times_faster(ms["ours"], ms["formula"])
    errors = (*relative_errors(sigreg, h, directions), *relative_errors(sigreg_direct, h, directions))
    return SigregTime(shape, ms["ours"], ms["formula"], faster, *errors)


def with_gradient(statistic: Statistic, h: Tensor, directions: Tensor) -> tuple[Tensor, Tensor]:
    """Return the statistic of embeddings (V, N, m) and its gradient."""
    h = h.detach().requires_grad_()
    value = statistic(h, directions)
    (gradient,) = torch.autograd.grad(value, h)
    return value.detach(), gradient


def relative_errors(statistic: Statistic, h: Tensor, directions: Tensor) -> tuple[float, float]:
    """Return the errors of value and gradient, relative to the value and to the gradient's largest entry in float64."""
    value, gradient = with_gradient(statistic, h, directions)
    true_value, true_gradient = with_gradient(sigreg_direct, h.double(), directions.double())
    apart = (gradient - true_gradient).abs().max() / true_gradient.abs().max()
    return float((value - true_value).abs() / true_value), float(apart)
