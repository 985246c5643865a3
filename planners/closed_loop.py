"""Closed loop: planners drive the simulator, from frames alone, beside their oracle twins on the same tasks."""

import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, Protocol, Self

import joblib
import numpy as np

from worldmodel.envs.control_tasks import ControlSetting, Success
from worldmodel.envs.fleet import Fleet
from worldmodel.envs.goals import GoalTasks
from worldmodel.envs.latents import LatentSpec
from worldmodel.envs.suite import SuiteEnv
from worldmodel.files import write_whole
from worldmodel.intervals import bootstrap, wilson
from worldmodel.planners.catalogue import ControlOptions, PlannerName, planner_policy
from worldmodel.planners.compare import PlanOutcome, State
from worldmodel.planners.kinematic import frames_at
from worldmodel.planners.lqr import ControlError
from worldmodel.planners.policy import Memory, PlannerPolicy
from worldmodel.planners.world import World
from worldmodel.progress import progress_bar
from worldmodel.workers import dismiss, in_parallel

Observes = Literal["frames", "latents", "nothing"]


class Policy(Protocol):
    """Acts in many environments at once."""

    def predict(self, observation: np.ndarray, state: Memory | None = None) -> tuple[np.ndarray, Memory]:
        """Return actions (B, a) in ±1, and what to hand in next time."""


@dataclass(frozen=True)
class Driven:
    """What happened in N episodes of T steps.

    Attributes:
        path: true latents (N, T + 1, n), free hinges within half a period of their mean.
        qpos: positions (N, T + 1, nq).
        actions: (N, T, a).
        rewards: the suite's own (N, T); 0 once an episode is over.
        act_ms: milliseconds per task and step that choosing an action took, seeing included.
    """

    path: np.ndarray
    qpos: np.ndarray
    actions: np.ndarray
    rewards: np.ndarray
    act_ms: float

    def save(self, path: Path) -> Path:
        """Write an ``.npz`` of plain arrays, whole or not at all."""
        return write_whole(path, lambda temporary: np.savez(temporary, **vars(self)))

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read what :meth:`save` wrote."""
        with np.load(path, allow_pickle=False) as file:
            values = {name: file[name] for name in file.files}
        return cls(**values | {"act_ms": float(values["act_ms"])})


def drive(
    env: SuiteEnv,
    policy: Policy,
    observes: Observes,
    start: np.ndarray,
    steps: int,
    *,
    seeds: Sequence[int] | None = None,
    label: str = "",
) -> Driven:
    """Let a policy drive the simulator from latents (N, n), at rest.

    Args:
        env: what is driven.
        policy: sees ``observes`` and acts.
        observes: frames; true latents; or nothing, and nothing is drawn.
        start: (N, n).
        steps: T.
        seeds: of what else the task draws, such as its target (N,); None numbers them.
        label: of the progress bar; empty draws none.
    """
    fleet = Fleet(env)
    fleet.reset(start, seeds)
    path, qpos, actions, rewards = [fleet.latents()], [fleet.qpos], [], []
    memory, acting = None, 0.0
    with progress_bar(label, steps, bool(label)) as advance:
        for _ in range(steps):
            observation = fleet.frames() if observes == "frames" else fleet.latents()
            begin = time.perf_counter()
            action, memory = policy.predict(observation, memory)
            acting += time.perf_counter() - begin
            rewards.append(fleet.step(action))
            actions.append(action)
            path.append(fleet.latents())
            qpos.append(fleet.qpos)
            advance(1)
    track, positions, done, earned = (np.stack(part, axis=1) for part in (path, qpos, actions, rewards))
    return Driven(track, positions, done, earned, 1e3 * acting / (steps * len(fleet)))


def drive_in_parallel(
    env: SuiteEnv,
    policy: PlannerPolicy,
    start: np.ndarray,
    steps: int,
    *,
    seeds: Sequence[int] | None = None,
    label: str = "",
    processes: int = 2,
) -> Driven:
    """Let a policy drive the simulator from frames, as :func:`drive` does, some tasks in each process."""
    numbers = np.arange(len(start)) if seeds is None else np.asarray(seeds)
    chunks = np.array_split(np.arange(len(start)), min(len(start), 2 * processes))
    calls = [
        joblib.delayed(_drive_alone)(env, policy.rows(rows), start[rows], steps, numbers[rows].tolist())
        for rows in chunks
    ]
    parts = []
    with progress_bar(label, len(start), bool(label)) as advance:
        for part in in_parallel(calls, processes, "driving", ordered=True):
            parts.append(part)
            advance(len(part.path))
    return Driven(
        path=np.concatenate([part.path for part in parts]),
        qpos=np.concatenate([part.qpos for part in parts]),
        actions=np.concatenate([part.actions for part in parts]),
        rewards=np.concatenate([part.rewards for part in parts]),
        act_ms=float(np.average([part.act_ms for part in parts], weights=[len(part.path) for part in parts])),
    )


def _drive_alone(env: SuiteEnv, policy: Policy, start: np.ndarray, steps: int, seeds: list[int]) -> Driven:
    try:
        return drive(env, policy, "frames", start, steps, seeds=seeds)
    finally:
        env.close()  # this process's copy


@dataclass(frozen=True)
class RandomPolicy:
    """Independent uniform actions, in every environment its own.

    Attributes:
        actions: width of an action.
        seed: of the draws.
    """

    actions: int
    seed: int = 0

    def predict(self, observation: np.ndarray, state: Memory | None = None) -> tuple[np.ndarray, Memory]:
        """Return actions (B, a)."""
        step = np.zeros(1, int) if state is None else state.step
        rng = np.random.default_rng([self.seed, int(step[0])])
        empty = np.zeros(0)
        return rng.uniform(-1, 1, (len(observation), self.actions)), Memory(empty, empty, empty, step + 1)


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
    embedding: World,
    oracle: World,
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

    worlds: tuple[tuple[State, World], ...] = (("embedding", embedding), ("oracle", oracle))
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
    run("random", "none", RandomPolicy(env.num_actions, seed), "nothing")
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
