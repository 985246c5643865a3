"""Planning time per environment, beside stable-worldmodel's CEM solver on the same linear dynamics."""

import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
from rich.table import Table
from scipy.optimize import lsq_linear
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from worldmodel.dynamics.linear import LinearGaussianDynamics
from worldmodel.planners import MPC, MPCOptions, QuadraticCost
from worldmodel.planners.costs import RolloutCost
from worldmodel.planners.optimisers import CEM, QP, Bounds, Optimiser
from worldmodel.report.tables import new_table, spread
from worldmodel.scripts import cli
from worldmodel.scripts.speed.plan_baseline import Baseline, baseline, environment
from worldmodel.scripts.speed.result import write_result
from worldmodel.scripts.speed.turns import by_turns, times_faster

_ACTION_WEIGHT = 0.1


@dataclass(frozen=True)
class Plan:
    """Plan by turns with each planner, for the same environments, and compare times and costs.

    Attributes:
        environments: E, that are planned for.
        states: dimensions of the linear dynamics.
        actions: dimensions of an action.
        horizon: steps of a plan.
        samples: candidates per iteration of CEM, here and in the baseline.
        iterations: of CEM.
        elite_fraction: share of the candidates that the Gaussian is fitted to; the baseline's default.
        spread: standard deviation at the start, in half ranges of the action; the baseline's default.
        repeats: how often each way is timed, after one round that is not.
        threads: of either side; the baseline's best may also come from all cores.
        baseline: what to compare with.
        baseline_env: virtual environment of the baseline, made where there is none; None makes it in the output folder.
        seed: decides dynamics, states, goals and noise.
        out: output folder.
    """

    environments: int = 64
    states: int = 8
    actions: int = 2
    horizon: int = 20
    samples: int = 300
    iterations: int = 10
    elite_fraction: float = 0.1
    spread: float = 1.0
    repeats: int = 9
    threads: int = 1
    baseline: Literal["stable-worldmodel", "none"] = "stable-worldmodel"
    baseline_env: Path | None = None
    seed: int = 0
    out: Path = Path("runs/bench/plan")

    @property
    def cem(self) -> CEM:
        """The search that both sides do."""
        return CEM(self.samples, self.iterations, self.elite_fraction, self.spread)


@dataclass(frozen=True)
class PlanTime:
    """Time of one way to plan.

    Attributes:
        way: what plans.
        ms: milliseconds per environment, one entry per repeat.
        above_optimum: mean cost of the plans over that of the exact optima, less 1, one entry per repeat.
        faster_than_default: how many times faster than the baseline by default, one entry per repeat.
        faster_than_best: how many times faster than the baseline's fastest setting, one entry per repeat.
    """

    way: str
    ms: list[float]
    above_optimum: list[float]
    faster_than_default: list[float]
    faster_than_best: list[float]


def plan(options: Plan) -> list[PlanTime]:
    """Time every way to plan, and leave the table in ``result.json``."""
    if options.environments < 1 or options.repeats < 2 or options.threads < 1:
        raise ValueError("--environments and --threads must be at least 1, and --repeats at least 2")
    search, tasks = options.cem, Tasks(options)
    folder = cli.run_folder(options.out, "bench/plan")
    with threadpool_limits(options.threads), _baseline(options, tasks, folder) as theirs:
        ways = {"MPC with CEM": tasks.planner(search), "MPC with QP": tasks.planner(QP(), options.environments)}
        ways |= theirs.ways if theirs else {}
        planned = by_turns(ways, options.repeats, "planning")
    ms = {way: [1e3 * seconds / options.environments for seconds, _ in each] for way, each in planned.items()}
    best = min(theirs.ways, key=lambda way: float(np.median(ms[way]))) if theirs else None
    times = [
        PlanTime(
            way,
            ms[way],
            [tasks.above_optimum(plans) for _, plans in planned[way]],
            times_faster(ms[way], ms[theirs.default]) if theirs else [],
            times_faster(ms[way], ms[best]) if best else [],
        )
        for way in ways
    ]
    at_bound = np.abs(tasks.optima) > 1 - 1e-9
    measured = {
        "actions_at_bound": at_bound.mean(),
        "environments_at_bound": at_bound.any(axis=(1, 2)).mean(),
        "baseline_default": theirs.default if theirs else None,
        "baseline_best": best,
        "baseline_first_look_ms": theirs.first_look_ms if theirs else None,
        "plan": [asdict(one) for one in times],
    }
    shown = [one for one in times if not theirs or one.way not in theirs.ways or one.way in (theirs.default, best)]
    cli.console.print(_table(shown, options))
    write_result(folder, options, measured, {"stable-worldmodel": theirs.version} if theirs else {})
    return times


def _baseline(options: Plan, tasks: "Tasks", folder: Path) -> AbstractContextManager[Baseline | None]:
    if options.baseline == "none":
        return nullcontext()
    python = environment(options.baseline_env or folder / "stable-worldmodel-env")
    return baseline(python, tasks.plain(), options.threads)


def _table(times: list[PlanTime], options: Plan) -> Table:
    table = new_table(
        f"milliseconds per environment, of {options.environments}: {options.states} states, {options.actions} actions, "
        f"horizon {options.horizon}, {options.threads} thread{'s' * (options.threads > 1)} where not said",
        "way",
        ("median", "range", "x default", "range", "x best", "range", "excess cost"),
    )
    for one in times:
        ratios = (*spread(one.faster_than_default, 1), *spread(one.faster_than_best, 1))
        table.add_row(one.way, *spread(one.ms, 3), *ratios, f"{np.mean(one.above_optimum):.1e}")
    return table


class Tasks:
    """A state and a goal for each environment: make Σ_t ‖s_t - goal‖² + 0.1 ‖a_t‖² small with actions in [-1, 1]."""

    def __init__(self, options: Plan) -> None:
        rng = np.random.default_rng(options.seed)
        size, actions = options.states, options.actions
        A = rng.standard_normal((size, size))
        A *= 0.95 / np.abs(np.linalg.eigvals(A)).max()  # a spectral radius of 0.95
        B = 0.3 * rng.standard_normal((size, actions))  # most environments then have actions at a bound
        self.model = LinearGaussianDynamics(A, B, np.zeros(size), np.zeros((size, size)), 1, size, actions)
        self.s, self.goals = rng.standard_normal((2, options.environments, size))
        self.cost = QuadraticCost(action_weight=_ACTION_WEIGHT)
        self.bounds = Bounds.of(-np.ones(actions), np.ones(actions))
        self.options = options

    def planner(self, optimiser: Optimiser, batch: int = MPCOptions.batch) -> Callable[[], tuple[float, np.ndarray]]:
        """Return what plans from nothing, as the baseline does, and returns seconds and plans (E, H, a)."""
        options = MPCOptions(self.options.horizon, warm_start=False, hold="cost", batch=batch)
        mpc = MPC(self.model, self.cost, self.bounds, optimiser, options, seed=self.options.seed)

        def run() -> tuple[float, np.ndarray]:
            start = time.perf_counter()
            plans = mpc.plan(self.s, self.goals)
            return time.perf_counter() - start, plans

        return run

    def above_optimum(self, plans: np.ndarray) -> float:
        """Return the mean cost of plans (E, H, a) over that of the optima, less 1."""
        rolled = RolloutCost(self.model.transition, self.cost, self.s, self.goals[:, None], self.bounds)
        cost, least = rolled.cost(np.stack([plans, self.optima], axis=1)).mean(axis=0)
        return float(cost / least - 1)

    @cached_property
    def optima(self) -> np.ndarray:
        """The exact optima (E, H, a): bounded least squares on what each action alone does to a roll-out."""
        H, a = self.options.horizon, self.options.actions
        each = np.eye(H * a)
        reached = self._rolled(np.zeros((H * a, len(self.model.A))), each.reshape(-1, H, a))
        matrix = np.vstack([reached.T, np.sqrt(_ACTION_WEIGHT) * each])
        away = np.tile(self.goals, H) - self._rolled(self.s, np.zeros((len(self.s), H, a)))
        targets = np.hstack([away, np.zeros((len(away), H * a))])
        plans = [lsq_linear(matrix, target, (-1.0, 1.0), method="bvls", tol=1e-14).x for target in targets]
        return np.reshape(plans, (-1, H, a))

    def _rolled(self, s: np.ndarray, plans: np.ndarray) -> np.ndarray:
        """Return the states (E, H S) after each action of plans (E, H, a) from states (E, S)."""
        states = []
        for actions in plans.swapaxes(0, 1):
            s = self.model.transition(s, actions)
            states.append(s)
        return np.hstack(states)

    def plain(self) -> dict[str, Any]:
        """Return the problem, and the options of the search, as the baseline takes them."""
        problem = {"A": self.model.A, "B": self.model.B, "s": self.s, "goal": self.goals}
        search = {
            "num_samples": self.options.samples,
            "n_steps": self.options.iterations,
            "topk": self.options.cem.elites,
            "var_scale": self.options.spread,  # a standard deviation, whatever its name
            "seed": self.options.seed,
        }
        others = {"horizon": self.options.horizon, "action_weight": _ACTION_WEIGHT, "search": search}
        return {name: matrix.tolist() for name, matrix in problem.items()} | others
