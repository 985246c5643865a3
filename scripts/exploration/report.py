"""What `scripts/benchmark.py` shows and leaves behind: tables, a ranking, a figure, `result.json`."""

import csv
import io
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from worldmodel.report.figures import save_figure
from worldmodel.report.tables import Grid
from worldmodel.scripts.cli import console
from worldmodel.scripts.exploration.figure import draw
from worldmodel.scripts.exploration.rows import LAWS, Row
from worldmodel.stats.intervals import Interval
from worldmodel.stats.ranking import Place, rank
from worldmodel.utils.files import to_plain, write_json, write_whole
from worldmodel.utils.versions import versions


def report(out: Path, options: dict[str, Any], names: Sequence[str], cells: list[dict[str, Any]]) -> None:
    """Print and write everything.

    Args:
        out: the folder.
        options: what was asked for.
        names: of the latents.
        cells: one dictionary each, from ``read_cell``.
    """
    numbers = [_numbers(cell, names) for cell in cells]
    rows = _rows(cells, numbers)
    best = best_lags(rows)
    ranking, control = rank_identified(best), rank_controlled(best)
    grids = [
        _data_grid(options, best, names),
        _scores_grid(rows, names, _ceilings(cells, names)),
        _ranking_grid("Ranked by R² on the common Gaussian test set", "behind the best", 3, ranking, best),
        _ranking_grid("Ranked by LQR's cost from frames ÷ oracle's", "÷ the best", 2, control, best),
    ]
    for grid in grids:
        console.print()
        console.print(grid.table())
    _write_text(out / "table.md", "\n\n".join(grid.markdown() for grid in grids) + "\n")
    _write_text(out / "table.csv", _csv(cells, numbers))
    save_figure(draw(rows, best), out / "benchmark.png")
    result = {
        "options": options,
        "versions": versions(),
        "rows": [_row_json(row) for row in rows],
        "ranking": {"r2_gaussian": _places_json(ranking), "cost_ratio": _places_json(control)},
        "cells": cells,
    }
    console.print(f"\nFigure, tables and numbers: {out}")
    console.print(str(write_json(out / "result.json", to_plain(result))), soft_wrap=True, highlight=False)


def _numbers(cell: dict[str, Any], names: Sequence[str]) -> dict[str, float]:
    """Return what is measured of a cell, flat; R² is read as the training is meant: on circles by atan2."""
    data = cell["data"]
    flat: dict[str, Any] = {f"rho_{name}": rho for name, rho in zip(names, data["rho"], strict=True)}
    flat |= {"distance": max(data["distance"]), "anisotropy": data["anisotropy"], "coverage": data["coverage"]}
    flat |= {"return": data["returns"]}
    if "skipped" in cell:
        return _floats(flat)
    circle = "circle" in cell["training"].split("+")
    for law in LAWS:
        scores = cell["identifiability"][law]
        read = list(scores["r2_per_latent"])
        flat |= {f"r2_{law}_{name}": value for name, value in zip(names, read, strict=True)}
        for index, angle in enumerate(scores["r2_angle"]):
            flat |= {f"r2_{law}_{part}{index}": scores[f"r2_{part}"][index] for part in ("cos", "sin", "angle")}
            if circle:
                read[cell["turning"][index]] = angle
        flat[f"r2_{law}"] = float(np.mean(read))
    flat["bound"] = cell["certificate"]["bound"]["mean"] if cell["certificate"] else None
    flat["effort_ratio"] = cell["straight_line"]["effort_ratio"]["mean"]
    lqr = cell["lqr"]
    if "refused" in lqr:
        return _floats(flat | {"success": 0.0})
    for state, prefix in (("embedding", ""), ("oracle", "oracle_"), ("none", "random_")):
        flat[f"{prefix}success"] = lqr[state]["success"]["mean"]
        flat[f"{prefix}cost_ratio"] = lqr[state]["cost_ratio"]["mean"]
    return _floats(flat)


def _floats(values: dict[str, Any]) -> dict[str, float]:
    return {name: float("nan") if value is None else float(value) for name, value in values.items()}


def _rows(cells: list[dict[str, Any]], numbers: list[dict[str, float]]) -> list[Row]:
    """Gather seeds; numbers that a seed lacks are left out."""
    groups: dict[tuple[str, str, int], list[int]] = {}
    for index, cell in enumerate(cells):
        groups.setdefault((cell["explorer"], cell["training"], cell["lag"]), []).append(index)
    rows = []
    for key, members in groups.items():
        shared = set.intersection(*(set(numbers[index]) for index in members))
        values = {n: np.array([numbers[index][n] for index in members]) for n in numbers[members[0]] if n in shared}
        skipped = next((cells[index]["skipped"] for index in members if "skipped" in cells[index]), "")
        rows.append(Row(*key, values, skipped))
    return rows


def best_lags(rows: Sequence[Row]) -> list[Row]:
    """Return the row of the best lag of each explorer and training, chosen on frames that score nothing."""
    chosen: dict[tuple[str, str], Row] = {}
    for row in rows:
        key = row.explorer, row.training
        if not row.skipped and (key not in chosen or row.mean("r2_selection") > chosen[key].mean("r2_selection")):
            chosen[key] = row
    return list(chosen.values())


def rank_identified(best: Sequence[Row]) -> list[Place]:
    """Rank rows by R² on the common Gaussian set."""
    return rank({row.name: row.values["r2_gaussian"].tolist() for row in best}) if best else []


def rank_controlled(best: Sequence[Row]) -> list[Place]:
    """Rank rows that control in every seed by the factor of their costs; places hold factors, not differences."""
    costs = {row.name: row.values["cost_ratio"] for row in best if row.interval("cost_ratio") is not None}
    logarithms = {name: np.log(values).tolist() for name, values in costs.items()}
    places = rank(logarithms, larger_is_better=False) if costs else []
    factors = [(place.score.exp(), None if place.behind is None else place.behind.exp()) for place in places]
    return [replace(place, score=one, behind=two) for place, (one, two) in zip(places, factors, strict=True)]


def _data_grid(options: dict[str, Any], best: Sequence[Row], names: Sequence[str]) -> Grid:
    header = ("explorer", "lag", *(f"ρ {name}" for name in names), "anisotropy", "distance", "coverage", "return")
    rows = []
    for row in best:
        if row.training != best[0].training:
            continue
        rho = (f"{row.mean(f'rho_{name}'):.3f}" for name in names)
        shape = (f"{row.mean(number):.2f}" for number in ("anisotropy", "distance", "coverage"))
        earned = row.mean("return")
        rows.append((row.explorer, str(row.lag), *rho, *shape, "–" if np.isnan(earned) else f"{earned:.3g}"))
    title = f"{options['env']}: data of each explorer, {options['frames']} frames, at its best lag"
    caption = "ρ across a pair; distance to a Gaussian (Kolmogorov-Smirnov, worst latent); coverage of [-2, 2]ⁿ"
    return Grid(title, header, rows, caption)


def _ceilings(cells: list[dict[str, Any]], names: Sequence[str]) -> str:
    """Return the best R² of each latent that any encoder could reach on the Gaussian set."""
    scores = next((cell["identifiability"]["gaussian"] for cell in cells if "skipped" not in cell), None)
    values = scores["ceiling_per_latent"] if scores else ()
    return ", ".join(f"{name} {value:.4f}" for name, value in zip(names, values, strict=False))


def _scores_grid(rows: Sequence[Row], names: Sequence[str], ceilings: str) -> Grid:
    joints = tuple(f"{name}" for name in names)
    header = ("explorer", "lag", "R² own", "R² Gaussian", *joints, "R² uniform", "bound", "effort", "LQR", "cost")
    body = []
    for row in rows:
        if row.skipped:
            body.append((row.name, str(row.lag), row.skipped, *[""] * (len(header) - 3)))
            continue
        joint = (f"{row.mean(f'r2_gaussian_{name}'):.3f}" for name in names)
        laws = (_text(row.interval(f"r2_{law}"), 3) for law in ("own", "gaussian", "uniform"))
        own, gaussian, uniform = laws
        ends = (f"{row.mean('bound'):.2f}", f"{row.mean('effort_ratio'):.2f}", f"{row.mean('success'):.0%}")
        cost = row.interval("cost_ratio")
        body.append((row.name, str(row.lag), own, gaussian, *joint, uniform, *ends, _text(cost, 2)))
    oracle, random = _baselines(rows)
    caption = (
        "means over seeds (of costs geometric) with 95% t intervals; columns of joints: linear R² on the Gaussian set "
        f"(ceilings: {ceilings}); bound: the certificate; effort and cost ÷ the oracle's; LQR: tasks solved from frames"
        + oracle
        + random
    )
    return Grid("What the encoders learnt", header, body, caption)


def _baselines(rows: Sequence[Row]) -> tuple[str, str]:
    done = [row for row in rows if "oracle_success" in row.values]
    if not done:
        return "", ""
    oracle = f" (oracle {done[0].mean('oracle_success'):.0%}"
    return (
        oracle,
        f", random {done[0].mean('random_success'):.0%} at a cost of {done[0].mean('random_cost_ratio'):.3g})",
    )


def _ranking_grid(title: str, behind: str, digits: int, places: Sequence[Place], best: Sequence[Row]) -> Grid:
    lags = {row.name: str(row.lag) for row in best}
    rows = []
    for number, place in enumerate(places, 1):
        distance = "" if place.behind is None else _text(place.behind, digits)
        p = "" if place.behind is None else f"{place.p:.3f}"
        verdict = "best" if place.behind is None else "cannot be told from the best" if place.tied else "behind"
        rows.append((str(number), place.name, lags[place.name], _text(place.score, digits), distance, p, verdict))
    caption = "lags chosen on frames of their own; paired over seeds, p corrected for the number of tests (Holm)"
    return Grid(title, ("place", "explorer", "lag", "score", behind, "p", ""), rows, caption)


def _text(interval: Interval | None, digits: int) -> str:
    return "–" if interval is None else interval.text(digits)


def _csv(cells: list[dict[str, Any]], numbers: list[dict[str, float]]) -> str:
    """One line per cell."""
    columns = list(dict.fromkeys(name for row in numbers for name in row))
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["explorer", "training", "lag", "seed", *columns, "skipped"])
    for cell, row in zip(cells, numbers, strict=True):
        values = (f"{row[name]:.6g}" if np.isfinite(row.get(name, np.nan)) else "" for name in columns)
        what = (cell[name] for name in ("explorer", "training", "lag", "seed"))
        writer.writerow([*what, *values, cell.get("skipped", "")])
    return text.getvalue()


def _row_json(row: Row) -> dict[str, Any]:
    what = {"explorer": row.explorer, "training": row.training, "lag": row.lag, "skipped": row.skipped or None}
    intervals = {number: row.interval(number) for number in row.values}
    return what | {number: interval.to_json() for number, interval in intervals.items() if interval is not None}


def _places_json(places: Sequence[Place]) -> list[dict[str, Any]]:
    return [
        {
            "name": place.name,
            "score": place.score.to_json(),
            "behind": None if place.behind is None else place.behind.to_json(),
            "p": place.p,
            "tied": place.tied,
        }
        for place in places
    ]


def _write_text(path: Path, text: str) -> None:
    write_whole(path, lambda temporary: temporary.write_text(text))
