"""What `scripts/train_agent.py` shows and leaves behind: a table, learning curves, `result.json`."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.table import Table

from worldmodel.agents.curve import draw_curves, return_at
from worldmodel.agents.training import Agent, AgentOptions
from worldmodel.report.figures import save_figure
from worldmodel.scripts.agent_training.encoder import Sight
from worldmodel.scripts.agent_training.options import Observation, TrainAgentOptions
from worldmodel.scripts.cli import console
from worldmodel.stats.intervals import Interval, ratio_interval, t_interval
from worldmodel.utils.files import to_plain, write_json
from worldmodel.utils.stages import Stage
from worldmodel.utils.versions import versions

Agents = dict[Observation, list[Agent]]
"""Agents of all seeds, by what they observe."""


def report(
    options: TrainAgentOptions,
    training: AgentOptions,
    agents: Agents,
    stages: dict[Observation, list[Stage]],
    sight: Sight | None,
    out: Path,
) -> None:
    """Print the table, draw the curves, write everything."""
    random = float(np.mean([agent.random.mean() for group in agents.values() for agent in group]))
    curves = {f"{options.algo} on {obs}": [agent.curve for agent in group] for obs, group in agents.items()}
    save_figure(draw_curves(curves, random), out / "learning.png")
    console.print(_table(options, agents))
    for line in _comparison_lines(agents):
        console.print(line, highlight=False)
    rows = {
        obs: _returns(group) | {"seeds": _rows(options, group, stages[obs])} | _compared(agents, obs)
        for obs, group in agents.items()
    }
    value = {
        "env": options.env,
        "algo": options.algo,
        "options": asdict(options) | {"training": asdict(training)},
        "versions": versions(),
        "encoder": None if sight is None else {"folder": sight.folder, "identifiability": sight.report},
        "unit": "seed" if options.seeds > 1 else "episode",
        "agents": {obs: _plain(row) for obs, row in rows.items()},
    }
    console.print(str(write_json(out / "result.json", to_plain(value))), soft_wrap=True)


@dataclass(frozen=True)
class Ends:
    """Where agents can be compared.

    Attributes:
        steps: most environment steps that the agents of two observations have taken, or those of the only one.
        first: seconds of training when the first agent ended.
        last: when the last one did.
    """

    steps: float
    first: float
    last: float

    @classmethod
    def of(cls, agents: Agents) -> "Ends":
        """Return those of all agents."""
        steps = sorted(min(agent.curve.steps[-1] for agent in group) for group in agents.values())
        seconds = [agent.curve.seconds[-1] for group in agents.values() for agent in group]
        return cls(float(steps[-2:][0]), float(min(seconds)), float(max(seconds)))


def _returns(agents: Sequence[Agent]) -> dict[str, Any]:
    """Returns on test episodes with intervals over seeds; over the episodes where there is a single seed."""
    scores = {name: [getattr(agent, name) for agent in agents] for name in ("best", "last", "random")}
    if len(agents) == 1:
        return {name: t_interval(returns) for name, (returns,) in scores.items()}
    return {name: t_interval([returns.mean() for returns in of]) for name, of in scores.items()}


def _compared(agents: Agents, obs: Observation) -> dict[str, Any]:
    """Returns of evaluations after equal steps and equal time, and the share of the first observation's return."""
    ends, first = Ends.of(agents), next(iter(agents))

    def at(**until: float) -> Interval | None:
        returns = [return_at(agent.curve, **until) for agent in agents[obs]]
        return None if None in returns else t_interval([value for value in returns if value is not None])

    best, of_first = (np.array([agent.best.mean() for agent in agents[kind]]) for kind in (obs, first))
    positive = min(best.min(), of_first.min()) > 0
    reached = min(agent.curve.steps[-1] for agent in agents[obs]) >= ends.steps
    return {
        "at_equal_steps": {"steps": ends.steps, "return": at(steps=ends.steps) if reached else None},
        "when_the_first_ended": {"seconds": ends.first, "return": at(seconds=ends.first)},
        "when_the_last_ended": {"seconds": ends.last, "return": at(seconds=ends.last)},
        f"share_of_{first}": ratio_interval(best / of_first) if positive and obs != first else None,
    }


def _rows(options: TrainAgentOptions, agents: Sequence[Agent], stages: Sequence[Stage]) -> list[dict[str, Any]]:
    return [
        {
            "seed": options.seed + index,
            "model": stage.folder / f"best-{options.algo}.zip",
            "steps": float(agent.curve.steps[-1]),
            "train_seconds": agent.seconds,
            "wall_seconds": stage.seconds,
            "test": {name: getattr(agent, name) for name in ("best", "last", "random")},
            "curve": agent.curve.to_json(),
        }
        for index, (agent, stage) in enumerate(zip(agents, stages, strict=True))
    ]


def _table(options: TrainAgentOptions, agents: Agents) -> Table:
    unit = f"{options.seeds} seeds" if options.seeds > 1 else f"{options.test_episodes} episodes of one seed"
    table = Table(title=f"Return on test episodes, 95% over {unit}", title_justify="left")
    for column in ("policy", "steps", "minutes", "best model", "last model"):
        table.add_column(column, justify="left" if column == "policy" else "right")
    for obs, group in agents.items():
        returns = _returns(group)
        steps = np.mean([agent.curve.steps[-1] for agent in group])
        minutes = np.mean([agent.seconds for agent in group]) / 60
        scores = (returns[name].text(0) for name in ("best", "last"))
        table.add_row(f"{options.algo} on {obs}", f"{steps:.0f}", f"{minutes:.1f}", *scores)
    random = _returns(next(iter(agents.values())))["random"]
    table.add_row("random", "", "", random.text(0), "")
    return table


def _comparison_lines(agents: Agents) -> list[str]:
    """Say in words what several observations are worth, beside each other."""
    if len(agents) == 1:
        return []
    rows = {obs: _compared(agents, obs) for obs in agents}
    ends, first = Ends.of(agents), next(iter(agents))

    def listed(key: str) -> str:
        values = {obs: row[key]["return"] for obs, row in rows.items()}
        return ", ".join(f"{obs} {'-' if value is None else value.text(0)}" for obs, value in values.items())

    shares = {obs: row[f"share_of_{first}"] for obs, row in rows.items()}
    return [
        f"evaluations after {ends.steps:.0f} steps: {listed('at_equal_steps')}",
        f"evaluations after {ends.first / 60:.1f} minutes of training: {listed('when_the_first_ended')}",
        f"evaluations after {ends.last / 60:.1f} minutes, or at the end: {listed('when_the_last_ended')}",
        *(f"best model on {obs}, share of {first}'s return: {share.text(2)}" for obs, share in shares.items() if share),
    ]


def _plain(value: Any) -> Any:
    if isinstance(value, Interval):
        return value.to_json()
    return {name: _plain(part) for name, part in value.items()} if isinstance(value, dict) else value
