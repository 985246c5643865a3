"""Every benchmark in a row, and one table of what came out."""

import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from worldmodel.report.tables import new_table, spread
from worldmodel.scripts import cli
from worldmodel.scripts.speed.encode import Encode, encode
from worldmodel.scripts.speed.identify import Identify, identify
from worldmodel.scripts.speed.plan import Plan, plan
from worldmodel.scripts.speed.plan_baseline import environment
from worldmodel.scripts.speed.reach import Reach, reach
from worldmodel.scripts.speed.render import Render, render
from worldmodel.scripts.speed.result import write_result
from worldmodel.scripts.speed.sigreg import Sigreg, sigreg_times
from worldmodel.scripts.speed.train import OURS, Train, train
from worldmodel.utils.devices import resolve_device
from worldmodel.utils.workers import in_fresh_process


@dataclass(frozen=True)
class All:
    """Run every part with its own defaults, reach with one seed: under ten minutes on two cores.

    Attributes:
        parts: what to run, in this order.
        device: auto, cpu or cuda, where a part computes with torch's networks.
        plan_baseline: what plan compares with; stable-worldmodel is installed from the network at first.
        seed: of every part.
        out: output folder; each part has its own in it.
    """

    parts: tuple[Literal["render", "train", "sigreg", "encode", "plan", "identify", "reach"], ...] = (
        "render",
        "train",
        "sigreg",
        "encode",
        "plan",
        "identify",
        "reach",
    )
    device: str = "auto"
    plan_baseline: Literal["stable-worldmodel", "none"] = "stable-worldmodel"
    seed: int = 0
    out: Path = Path("runs/bench/all")


@dataclass(frozen=True)
class Finding:
    """One row of the table.

    Attributes:
        part: of the benchmark.
        ours: what was measured.
        against: what it is compared with.
        measured: times faster, or seconds where it says so, one entry per repeat.
        target: what the median should be at least, or at most where it is seconds; None: there is none.
        unit: times or seconds.
    """

    part: str
    ours: str
    against: str
    measured: list[float]
    target: float | None = None
    unit: Literal["times", "seconds"] = "times"


def run_all(options: All) -> list[Finding]:
    """Run each part in a process of its own, and leave the table and all of their results in one ``result.json``."""
    resolve_device(options.device)
    folder = cli.run_folder(options.out, "bench/all")
    if "plan" in options.parts and options.plan_baseline != "none":
        environment(folder / "plan" / "stable-worldmodel-env")  # where that fails, it does so before any long work
    findings: list[Finding] = []
    seconds: dict[str, float] = {}
    for part in options.parts:
        start = time.perf_counter()
        # Not in this process: memory that other parts left is quicker to get.
        findings += in_fresh_process(f"running {part}", PARTS[part], options, folder / part)
        seconds[part] = time.perf_counter() - start
    table = new_table(
        f"in {sum(seconds.values()):.0f} s", "part", ("ours", "against", "times faster", "range", "target")
    )
    for one in findings:
        sign, unit = (">=", "") if one.unit == "times" else ("<=", " s")
        median, between = spread(one.measured, 1)
        target = "" if one.target is None else f"{sign} {one.target:g}{unit}"
        table.add_row(one.part, one.ours, one.against, f"{median}{unit}", between, target)
    cli.console.print(table)
    results = {part: json.loads((folder / part / "result.json").read_text()) for part in options.parts}
    measured = {"seconds": seconds, "summary": [asdict(one) for one in findings], "parts": results}
    write_result(folder, options, measured, {})
    return findings


def _render(options: All, out: Path) -> list[Finding]:
    *_, singly, batched = render(Render(seed=options.seed, out=out))
    return [Finding("render", one.way, "dm_control's render", one.faster) for one in (singly, batched)]


def _train(options: All, out: Path) -> list[Finding]:
    times = train(Train(device=options.device, seed=options.seed, out=out))
    return [Finding("train", one.way, "published step", one.faster, 4) for one in times if one.way.startswith(OURS)]


def _sigreg(options: All, out: Path) -> list[Finding]:
    times = sigreg_times(Sigreg(device=options.device, seed=options.seed, out=out))
    return [Finding("sigreg", " x ".join(map(str, one.shape)), "formula", one.faster, 5) for one in times]


def _encode(options: All, out: Path) -> list[Finding]:
    times = encode(Encode(device=options.device, seed=options.seed, out=out))
    return [Finding("encode", f"frames together: {one.batch}", "SB3's NatureCNN", one.faster) for one in times]


def _plan(options: All, out: Path) -> list[Finding]:
    times = plan(Plan(baseline=options.plan_baseline, seed=options.seed, out=out))
    ours = [one for one in times if one.way.startswith("MPC")]
    return [Finding("plan", one.way, "stable-worldmodel's best", one.faster_than_best) for one in ours]


def _identify(options: All, out: Path) -> list[Finding]:
    rates = identify(Identify(seed=options.seed, out=out))
    return [Finding("identify", f"N = {one.latents}", "published loop", one.faster) for one in rates]


def _reach(options: All, out: Path) -> list[Finding]:
    runs = reach(Reach(seeds=(options.seed,), device=options.device, out=out))
    reached = f"R² {Reach.target} reached by {sum(run.reached for run in runs)} of {len(runs)}"
    return [Finding("reach", reached, "the clock", [run.seconds for run in runs], 90, "seconds")]


PARTS: dict[str, Callable[[All, Path], list[Finding]]] = {
    "render": _render,
    "train": _train,
    "sigreg": _sigreg,
    "encode": _encode,
    "plan": _plan,
    "identify": _identify,
    "reach": _reach,
}
