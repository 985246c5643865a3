"""What `scripts/plan.py` shows and leaves behind: the tables, `result.json`, the figures and the film."""

from collections.abc import Sequence
from typing import Any

from rich.table import Table

from worldmodel.identifiability import Identifiability
from worldmodel.planners.compare import PlanOutcome
from worldmodel.scripts.cli import console


def encoder_table(names: Sequence[str], report: Identifiability) -> Table:
    """Lay out how well each latent is identified, beside the best that any encoder could reach."""
    table = Table(title="Linear identifiability on held-out episodes", title_justify="left")
    for column in ("latent", "R² from h", "ceiling", "R² of h from z"):
        table.add_column(column, justify="left" if column == "latent" else "right")
    for index, name in enumerate(names):
        table.add_row(name, f"{report.r2_per_latent[index]:.4f}", f"{report.ceiling_per_latent[index]:.4f}", "")
    table.add_section()
    table.add_row("all", f"{report.r2_hz:.4f}", "", f"{report.r2_zh:.4f}")
    return table


def plans_table(plans: Sequence[PlanOutcome]) -> Table:
    """Lay out every planner on the embedding beside its oracle twin and the random baseline."""
    table = Table(title="Plans, mean and 95% interval over tasks", title_justify="left")
    for column in ("planner", "state", "tasks", "success", "effort ÷ oracle", "cost ÷ oracle", "path RMS", "ms/plan"):
        table.add_column(column, justify="left" if column in ("planner", "state") else "right")
    for plan in plans:
        row: dict[str, Any] = plan.to_json()
        table.add_row(
            plan.planner,
            plan.state,
            str(plan.tasks),
            interval_text(row["success"], 2),
            interval_text(row["effort_ratio"], 3),
            interval_text(row["cost_ratio"], 3),
            interval_text(row["path_rms"], 4),
            f"{plan.plan_ms:.3f}",
        )
    return table


def interval_text(interval: dict[str, Any] | None, digits: int) -> str:
    """Write an interval as ``mean [low, high]``.

    >>> interval_text({"mean": 1.02, "ci95": [1.01, 1.03]}, 2)
    '1.02 [1.01, 1.03]'
    """
    if interval is None:
        return "–"
    low, high = interval["ci95"]
    return f"{interval['mean']:.{digits}f} [{low:.{digits}f}, {high:.{digits}f}]"


def show(*tables: Table) -> None:
    """Print tables, one blank line before each."""
    for table in tables:
        console.print()
        console.print(table)
