"""Closed loop: planners drive the simulator, from frames alone, beside their oracle twins on the same tasks."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from worldmodel.dynamics.world_model import WorldModel
from worldmodel.envs.control_tasks import ControlSetting, Success
from worldmodel.envs.goals import GoalTasks
from worldmodel.envs.latents import LatentSpec
from worldmodel.envs.pixels import frames_at
from worldmodel.envs.suite import SuiteEnv
from worldmodel.planners.catalogue import ControlOptions, planner_policy
from worldmodel.planners.driving import Driven, Observes, Policy, UniformPolicy, drive, drive_in_parallel
from worldmodel.planners.lqr import ControlError
from worldmodel.planners.names import PlannerName
from worldmodel.planners.outcomes import PlanOutcome, State
from worldmodel.planners.policy import PlannerPolicy
from worldmodel.stats.intervals import bootstrap, wilson
from worldmodel.utils.workers import dismiss


def control_cost(spec: LatentSpec, driven: Driven, goal: np.ndarray, action_weight: float) -> np.ndarray:
    """Σ‖z - z*‖² + r Σ‖a‖² of every task (N,), over latents after 1..T steps, angles the short way round."""
    away = spec.wrap(driven.path[:, 1:] - goal[:, None])
    return (away**2).sum((1, 2)) + action_weight * (driven.actions**2).sum((1, 2))


@dataclass(frozen=True)
class ClosedLoop:
    """Tasks, what happened in them, and the judgement.

    Attributes:
        tasks: starts and goals.
        driven: what happened, by planner and state, such as ("lqr", "embedding").
        outcomes: one row each, the random policy last.
        refused: planners that a world cannot be controlled by, each with the reason.
    """

    tasks: GoalTasks
    driven: dict[tuple[str, State], Driven]
    outcomes: tuple[PlanOutcome, ...]
    refused: Mapping[str, str] = field(default_factory=dict)


Keep = Callable[[str, State, Callable[[], Driven]], Driven]
"""Is handed a planner, what it plans in and a run to make, and returns the run, perhaps from an earlier one."""


def evaluate(
    env: SuiteEnv,
    planners: Sequence[PlannerName],
    embedding: WorldModel,
    oracle: WorldModel,
    tasks: GoalTasks,
    setting: ControlSetting,
    options: ControlOptions = ControlOptions(),  # noqa: B008 (frozen)
    *,
    steps: int | None = None,
    seeds: Sequence[int] | None = None,
    seed: int = 0,
    processes: int = 1,
    progress: bool = True,
    keep: Keep | None = None,
) -> ClosedLoop:
    """Drive every task by every planner from frames alone, by the same planner on the true state, and at random.

    The goal is given as a frame (to the oracle as latents), and encoded once.

    Args:
        env: what is driven; its step is the control step.
        planners: names of planners.
        embedding: the world that frames show.
        oracle: its twin.
        tasks: starts and goals.
        setting: length of an episode, and what counts as solved.
        options: cost and horizons, the same for all.
        steps: of an episode; None takes the setting's.
        seeds: of what else the task draws, such as its target (N,); None numbers them.
        seed: of sampling planners, the random policy and the bootstrap.
        processes: that drive, draw and see; 0 means one per core.
        progress: draw progress bars.
        keep: may keep runs and give them back.
    """
    length = round(setting.seconds / env.dt) if steps is None else steps
    goals = {"frames": frames_at(env, tasks.goal), "latents": tasks.goal}
    many = processes or os.cpu_count() or 1
    driven: dict[tuple[str, State], Driven] = {}

    def run(name: str, state: State, policy: Policy, observes: Observes) -> None:
        label = f"{name}, {state}" if progress and observes == "frames" else ""

        def make() -> Driven:
            if many > 1 and observes == "frames" and isinstance(policy, PlannerPolicy):
                return drive_in_parallel(env, policy, tasks.start, length, seeds=seeds, label=label, processes=many)
            return drive(env, policy, observes, tasks.start, length, seeds=seeds, label=label)

        driven[name, state] = make() if keep is None else keep(name, state, make)

    worlds: tuple[tuple[State, WorldModel], ...] = (("embedding", embedding), ("oracle", oracle))
    refused: dict[str, str] = {}
    try:
        for name in planners:
            try:
                policies = [
                    planner_policy(name, world, goals[world.observes], env.num_actions, options, seed=seed)
                    for _, world in worlds
                ]
            except ControlError as error:  # before any run
                refused[name] = str(error)
                continue
            for (state, world), policy in zip(worlds, policies, strict=True):
                run(name, state, policy, world.observes)
    finally:
        if many > 1:
            dismiss()
    run("random", "none", UniformPolicy(env.num_actions, seed), "nothing")
    closed = judge(env.latent_spec, tasks, driven, setting.success, env.dt, options, seed=seed)
    return replace(closed, refused=refused)


def judge(
    spec: LatentSpec,
    tasks: GoalTasks,
    driven: dict[tuple[str, State], Driven],
    success: Success,
    dt: float,
    options: ControlOptions,
    *,
    seed: int = 0,
) -> ClosedLoop:
    """Judge every run by its true latents, paired per task with its oracle twin, the random one with the first."""
    goal, outcomes = tasks.goal, []
    cost = {key: control_cost(spec, run, goal, options.action_weight) for key, run in driven.items()}
    first = next(iter(driven))[0]
    for (name, state), run in driven.items():
        twin: tuple[str, State] = (name if state != "none" else first, "oracle" if len(driven) > 1 else "none")
        solved = success.solved(spec, run.path, goal, dt)
        error = np.linalg.norm(spec.wrap(run.path[:, -1] - goal) * spec.scales, axis=-1)
        outcomes.append(
            PlanOutcome(
                planner=name,
                state=state,
                execution="closed-loop",
                tasks=len(tasks),
                success=wilson(int(solved.sum()), len(solved)),
                cost=bootstrap(cost[name, state], seed=seed),
                cost_ratio=bootstrap(cost[name, state] / cost[twin], seed=seed),
                plan_ms=run.act_ms,
                goal_error=bootstrap(error, seed=seed),
            )
        )
    return ClosedLoop(tasks, driven, tuple(outcomes))
