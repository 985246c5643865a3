"""What `scripts/plan.py` shows and leaves behind: tables, `result.json`, figures and a film."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rich import box
from rich.table import Table

from worldmodel.data.datacard import DataCard
from worldmodel.data.episodes import Episodes
from worldmodel.encoders.history import TrainingHistory
from worldmodel.envs import SuiteEnv
from worldmodel.envs.pixels import frames_at
from worldmodel.measures.certificate import Certificate
from worldmodel.measures.identifiability import Identifiability
from worldmodel.planners.closed_loop import ClosedLoop
from worldmodel.planners.kinematic import KinematicPlans
from worldmodel.planners.outcomes import PlanOutcome, State, effort
from worldmodel.report import figures
from worldmodel.report.video import side_by_side, write_mp4
from worldmodel.scripts.cli import console
from worldmodel.scripts.planning.control import Control, SuiteReturn
from worldmodel.scripts.planning.options import PlanOptions
from worldmodel.stats.intervals import Interval
from worldmodel.utils.files import to_plain, write_json
from worldmodel.utils.stages import Stage
from worldmodel.utils.versions import versions

_FILMED, _FILMED_STEPS = 4, 60  # tasks, control steps of each


def show(
    names: Sequence[str], report: Identifiability, proof: Certificate, plans: KinematicPlans, control: Control | None
) -> None:
    """Print how well the state is identified, and what the plans reached."""
    console.print()
    console.print(_encoder_table(names, report))
    console.print(
        f"orthogonality error {report.orthogonality_error:.3f}; true E‖h - Qz‖² {report.true_error:.4f}, certified "
        f"without the true state to be at most {proof.bound.mean:.3f} [{proof.bound.low:.3f}, {proof.bound.high:.3f}]",
        highlight=False,
    )
    if control is not None:
        console.print()
        console.print(_forecast_table(control))
    console.print()
    console.print(_plans_table(plans, control))
    test = plans.outcomes[0].equivalence
    if test is not None:
        verdict = "equivalent to the oracle's" if test.equivalent else "not shown to be equivalent to the oracle's"
        console.print(f"effort: {verdict} within {test.margin:.0%} (TOST p = {test.p:.2g})", highlight=False)
    if control is not None:
        for planner, reason in control.closed.refused.items():
            console.print(f"{planner}: not run, the fitted dynamics are {reason}", highlight=False)
    if control is not None and control.values is not None:
        values = control.values
        console.print(
            f"LQR's optimal cost to go, from frames ÷ on the true state: {_text(values.ratio, 3)}, R² {values.r2:.3f}",
            highlight=False,
        )
    if control is not None and control.suite_return is not None:
        reward = control.suite_return
        console.print(
            f"the suite's own return, {reward.planner} to {reward.targets} targets ({reward.excluded} beyond the "
            f"latent law left out): from frames {_text(reward.embedding, 0)}, oracle {_text(reward.oracle, 0)}, random "
            f"{_text(reward.random, 0)}",
            highlight=False,
        )


def _encoder_table(names: Sequence[str], report: Identifiability) -> Table:
    table = _table("Linear identifiability, held-out episodes", "latent", "R² of z from h", "ceiling", "R² of h from z")
    for index, name in enumerate(names):
        ceiling = f"{report.ceiling_per_latent[index]:.4f}" if report.ceiling_per_latent else "–"
        table.add_row(name, f"{report.r2_per_latent[index]:.4f}", ceiling, "")
    table.add_section()
    table.add_row("mean", f"{report.r2_hz:.4f}", "", f"{report.r2_zh:.4f}")
    return table


def _forecast_table(control: Control) -> Table:
    seen, true = control.forecasts["embedding"], control.forecasts["oracle"]
    steps = [f"{ahead} step{'s' if ahead > 1 else ''}" for ahead in seen.steps]
    table = _table("Held-out error without feedback, RMS", "dynamics of", *steps)
    table.add_row("embedding", *(f"{error:.3f}" for error in seen.error))
    table.add_row("  holding still", *(f"{error:.3f}" for error in seen.holding_still))
    table.add_row("true latents", *(f"{error:.3f}" for error in true.error))
    if control.similarity is not None:
        table.caption = f"one model in two coordinates, h = Q z: relative difference {control.similarity.relative:.2f}"
        table.caption_justify = "left"
    return table


def _plans_table(plans: KinematicPlans, control: Control | None) -> Table:
    title = f"Plans of {len(plans.tasks)} tasks, mean and 95% interval"
    columns = ("planner", "on", "success", "effort ÷ oracle", "cost ÷ oracle", "path RMS", "end error", "ms")
    table = _table(title, *columns)
    _add_plans(table, "kinematic", plans.outcomes)
    if control is not None:
        _add_plans(table, "closed loop", control.closed.outcomes)
    return table


def _add_plans(table: Table, execution: str, outcomes: Sequence[PlanOutcome]) -> None:
    table.add_section()
    table.add_row(f"[italic]{execution}[/]")
    for plan in outcomes:
        table.add_row(
            plan.planner,
            plan.state,
            _text(plan.success, 2),
            _text(plan.effort_ratio, 3),
            _text(plan.cost_ratio, 3),
            _text(plan.path_rms, 3),
            "–" if plan.goal_error is None else f"{plan.goal_error.mean:.3f}",
            f"{plan.plan_ms:.2f}",
        )


def write_result(
    out: Path,
    options: PlanOptions,
    card: DataCard,
    dim: int,
    report: Identifiability,
    proof: Certificate,
    plans: KinematicPlans,
    control: Control | None,
    seconds: dict[str, Any],
    stages: Sequence[Stage],
) -> Path:
    """Write ``result.json``: all numbers of the run."""
    data = card.to_json()
    result: dict[str, Any] = {
        "env": card.env,
        "seed": options.seed,
        "options": {name: value for name, value in vars(options).items() if name not in ("out", "processes")},
        "versions": versions(),
        "stages": {stage.name: stage.to_json() for stage in stages},
        "wall_seconds": seconds,
        "data": {key: data[key] for key in ("explorer", "frames", "rho", "gaussianity", "render_ms_per_frame")},
        "encoder": {"dim": dim, **report.to_json(), "certificate": proof.to_json()},
        "excluded_tasks": plans.tasks.excluded,
        "plans": [plan.to_json() for plan in (*plans.outcomes, *(control.closed.outcomes if control else ()))],
        "dynamics": None if control is None else _dynamics(control, options),
        "suite_return": None if control is None or control.suite_return is None else _returns(control.suite_return),
    }
    return write_json(out / "result.json", to_plain(result))


def _dynamics(control: Control, options: PlanOptions) -> dict[str, Any]:
    card, values = control.data.card, control.values
    return {
        "kind": options.dynamics,
        "explorer": card.explorer,
        "frames": card.frames,
        "period": card.dt,
        "forecast": {state: vars(forecast) for state, forecast in control.forecasts.items()},
        "excitation": None if control.excitation is None else vars(control.excitation),
        "similarity": None if control.similarity is None else vars(control.similarity),
        "refused": dict(control.closed.refused),
        "value_equivalence": None if values is None else {"ratio": values.ratio.to_json(), "r2": values.r2},
    }


def _returns(reward: SuiteReturn) -> dict[str, Any]:
    return {name: v.to_json() if isinstance(v, Interval) else v for name, v in vars(reward).items()}


def draw(
    out: Path,
    env: SuiteEnv,
    episodes: Episodes,
    h_train: np.ndarray,
    h_heldout: np.ndarray,
    history: TrainingHistory | None,
    plans: KinematicPlans,
    control: Control | None,
) -> None:
    """Draw the figures and the film."""
    names = env.latent_spec.names
    spread = np.linspace(0, episodes.num_frames - 1, 40).astype(int)
    title = f"{episodes.card.env}, {episodes.card.explorer}: 40 of {episodes.num_frames} frames"
    figures.save_figure(figures.frame_sheet(episodes.frames[spread], title), out / "frames.png")
    if history is not None:
        figures.save_figure(figures.training_curve(history), out / "training.png")
    scatter = figures.identifiability_scatter(
        h_train, episodes.train.latents, h_heldout, episodes.heldout.latents, names
    )
    figures.save_figure(scatter, out / "identifiability.png")
    figures.save_figure(figures.plan_paths(plans.oracle, plans.embedding, names), out / "paths.png")

    ratio = effort(env.latent_spec, plans.embedding) / effort(env.latent_spec, plans.oracle)
    mean = plans.outcomes[0].effort_ratio
    if mean is not None:
        figure = figures.ratio_histogram(ratio, mean.mean, mean.low, mean.high, "control effort ÷ oracle's, per task")
        figures.save_figure(figure, out / "effort.png")

    oracle, embedding = (frames_at(env, paths[:_FILMED]) for paths in (plans.oracle, plans.embedding))
    longest = int(effort(env.latent_spec, plans.oracle[:_FILMED]).argmax())
    strip = figures.film_strip(oracle[longest], embedding[longest], "Straight line of one task")
    figures.save_figure(strip, out / "plan.png")
    clips = [_with_pauses(frames) for frames in (oracle, embedding)]
    film = [side_by_side(clips, ["posed: oracle (true state)", "posed: embedding (pixels)"])]
    if control is not None:
        film += [_driven(env, control.closed, name) for name in _planners(control.closed)]
    write_mp4(out / "plan.mp4", np.concatenate(film), fps=25)


def _planners(closed: ClosedLoop) -> list[str]:
    return [name for name, state in closed.driven if state == "embedding"]


def _driven(env: SuiteEnv, closed: ClosedLoop, name: str) -> np.ndarray:
    """Film a planner in the simulator, oracle beside embedding, the goal shining through."""
    clips, goals = [], frames_at(env, closed.tasks.goal[:_FILMED]).astype(np.float32)
    states: tuple[State, State] = ("oracle", "embedding")
    for state in states:
        qpos = closed.driven[name, state].qpos[:_FILMED, :_FILMED_STEPS]
        frames = env.renderer.render_poses(qpos.reshape(-1, qpos.shape[-1]), env.physics.data.ptr)
        frames = frames.reshape(*qpos.shape[:2], *frames.shape[1:])
        shone = (0.75 * frames + 0.25 * goals[:, None]).astype(np.uint8)
        clips.append(_with_pauses(shone))
    return side_by_side(clips, [f"{name}: oracle", f"{name}: pixels"])


def _with_pauses(frames: np.ndarray, pause: int = 8) -> np.ndarray:
    """Join the clips (N, T, H, W, 3) of several tasks, holding the last frame of each."""
    held = np.concatenate([frames, np.repeat(frames[:, -1:], pause, axis=1)], axis=1)
    return held.reshape(-1, *frames.shape[2:])


def _table(title: str, *columns: str) -> Table:
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for column in columns:
        table.add_column(column, justify="left" if column in ("latent", "planner", "on") else "right")
    return table


def _text(interval: Interval | None, digits: int) -> str:
    return "–" if interval is None else interval.text(digits)
