"""The benchmark: every cell collected for, trained, scored and ranked."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

import joblib

from worldmodel.agents.explorers import Explorer
from worldmodel.scripts import cli
from worldmodel.scripts.cli import console
from worldmodel.scripts.exploration import report as benchmark_report
from worldmodel.scripts.exploration.cell import Cell, read_cell, run_cell
from worldmodel.scripts.exploration.control import run_baselines
from worldmodel.scripts.exploration.explorers import check, prepare, short_name
from worldmodel.scripts.exploration.options import BenchmarkOptions
from worldmodel.scripts.exploration.setup import Common, Setup, collect_common, collect_data
from worldmodel.scripts.exploration.training import Recipe
from worldmodel.utils.devices import resolve_device
from worldmodel.utils.progress import progress_bar
from worldmodel.utils.stages import Stage
from worldmodel.utils.workers import HOURS, dismiss, in_parallel, register

_LEAST = {"seeds": 1, "frames": 1_000, "steps": 1, "driven": 1_000, "tasks": 1, "test_frames": 100}


def run(options: BenchmarkOptions) -> None:
    """Collect, train and score every cell, then rank the explorers."""
    out = cli.run_folder(options.out, f"benchmark-{options.env}")
    shared = {name: value for name, value in asdict(options).items() if name in Setup.__dataclass_fields__}
    setup = Setup(**shared | {"out": out / "stages"})
    names = _check(options, setup)
    jobs = options.jobs or os.cpu_count() or 1
    spec = setup.make().latent_spec
    console.print(f"{options.env}: latents {', '.join(spec.names)}; {jobs} jobs at a time; into {out}", highlight=False)
    try:
        common = collect_common(setup, jobs)
        explorers = {name: prepare(text, setup, common.driven) for name, text in names.items()}
        data = _collect(options, setup, explorers, jobs)
        cells = _score(options, setup, common, explorers, data, jobs)
    finally:
        dismiss()
    benchmark_report.report(out, _plain_options(options), spec.names, cells)


def _check(options: BenchmarkOptions, setup: Setup) -> dict[str, str]:
    """Refuse what would fail later, before any long work; return the explorers by their short names."""
    resolve_device(options.device)
    register(options.backend)
    for name, least in _LEAST.items():
        if getattr(options, name) < least:
            raise ValueError(f"{name} is {getattr(options, name)}; it must be at least {least}")
    if not options.explorers or not options.lags or not options.trainings:
        raise ValueError("give at least one explorer, one lag and one training")
    if min(options.lags) < 1:
        raise ValueError(f"lag is {min(options.lags)}; it must be at least 1 control step")
    for training in options.trainings:
        Recipe.of(training)
    names = {short_name(text): text for text in options.explorers}
    if len(names) < len(options.explorers):
        raise ValueError(f"explorers come twice: {', '.join(options.explorers)}")
    env = setup.make()
    for text in options.explorers:
        check(text, env)
    env.close()
    return names


def _collect(
    options: BenchmarkOptions, setup: Setup, explorers: dict[str, Explorer], jobs: int
) -> dict[tuple[str, int], Stage]:
    wanted = [(name, seed) for name in explorers for seed in _seeds(options)]
    calls = [joblib.delayed(collect_data)(setup, explorers[name], options.lags, seed) for name, seed in wanted]
    return dict(zip(wanted, _fan_out(options, calls, jobs, "data"), strict=True))


def _score(
    options: BenchmarkOptions,
    setup: Setup,
    common: Common,
    explorers: dict[str, Explorer],
    data: dict[tuple[str, int], Stage],
    jobs: int,
) -> list[dict[str, Any]]:
    cells = [
        Cell(name, training, lag, seed)
        for seed in _seeds(options)  # outermost, so that whoever interrupts has whole seeds
        for name in explorers
        for training in options.trainings
        for lag in options.lags
    ]
    baselines = run_baselines(setup, common.driven)
    calls = [
        joblib.delayed(run_cell)(setup, common, baselines, data[c.explorer, c.seed], explorers[c.explorer], c)
        for c in cells
    ]
    stages = _fan_out(options, calls, jobs, "cells")
    return [read_cell(stage, cell) for stage, cell in zip(stages, cells, strict=True)]


def _fan_out(options: BenchmarkOptions, calls: Sequence[Any], jobs: int, label: str) -> Iterator[Stage]:
    """Yield the stages in the order of the calls, with a progress bar."""
    running = in_parallel(calls, jobs, label, ordered=True, patience=HOURS, backend=options.backend)
    with progress_bar(label, len(calls)) as advance:
        for stage in running:
            advance(1, "from an earlier run" if stage.cached else "")
            yield stage


def _seeds(options: BenchmarkOptions) -> range:
    return range(options.seed, options.seed + options.seeds)


def _plain_options(options: BenchmarkOptions) -> dict[str, Any]:
    """Return the options that say what was measured; where and how fast it was measured is left out."""
    left_out = ("out", "jobs", "backend", "device")
    shown = {name: value for name, value in asdict(options).items() if name not in left_out}
    return shown | {"explorers": [short_name(text) for text in options.explorers]}
