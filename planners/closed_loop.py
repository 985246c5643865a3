"""Closed loop: planners drive the simulator, from frames alone, beside their oracle twins on the same tasks."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from worldmodel.envs.control_tasks import ControlTasks
from worldmodel.envs.fleet import Fleet
from worldmodel.envs.latents import LatentSpec
from worldmodel.envs.suite import SuiteEnv
from worldmodel.intervals import bootstrap, wilson
from worldmodel.planners.catalogue import ControlOptions, PlannerName, planner_policy
from worldmodel.planners.compare import PlanOutcome, State
from worldmodel.planners.kinematic import frames_at
from worldmodel.planners.policy import Memory
from worldmodel.planners.world import World
from worldmodel.progress import progress_bar


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


def drive(
    env: SuiteEnv, policy: Policy, observes: str, start: np.ndarray, steps: int, label: str = "", *, seed: int = 0
) -> Driven:
    """Let a policy drive the simulator from latents (N, n), at rest.

    Args:
        env: what is driven.
        policy: sees ``observes`` and acts.
        observes: "frames", "latents" or "nothing".
        start: (N, n).
        steps: T.
        label: of the progress bar; empty draws none.
        seed: of what else the task draws.
    """
    fleet = Fleet(env)
    fleet.reset(start, np.random.SeedSequence(seed).generate_state(len(start)))
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
    stacked = [np.stack(part, axis=1) for part in (path, qpos, actions, rewards)]
    return Driven(*stacked, act_ms=1e3 * acting / (steps * len(fleet)))


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
        tasks: what was asked.
        driven: what happened, by planner and state, such as ("lqr", "embedding").
        outcomes: one row each, the random policy last.
    """

    tasks: ControlTasks
    driven: dict[tuple[str, State], Driven]
    outcomes: tuple[PlanOutcome, ...]


def evaluate(
    env: SuiteEnv,
    planners: Sequence[PlannerName],
    embedding: World,
    oracle: World,
    tasks: ControlTasks,
    options: ControlOptions = ControlOptions(),  # noqa: B008 (frozen)
    *,
    seed: int = 0,
    progress: bool = True,
) -> ClosedLoop:
    """Drive every task by every planner from frames alone, by the same planner on the true state, and at random.

    The goal is given as a frame (to the oracle as latents), and encoded once.

    Args:
        env: what is driven; its step is the control step.
        planners: names of planners.
        embedding: the world that frames show.
        oracle: its twin.
        tasks: starts, goals and what counts as solved.
        options: cost and horizons, the same for all.
        seed: of sampling planners, the random policy, the task's own draws and the bootstrap.
        progress: draw progress bars.
    """
    goal, steps, actions = tasks.goals.goal, round(tasks.seconds / env.dt), env.num_actions
    goal_frames = frames_at(env, goal)
    driven: dict[tuple[str, State], Driven] = {}
    for name in planners:
        for state, world, seen in (("embedding", embedding, goal_frames), ("oracle", oracle, goal)):
            policy = planner_policy(name, world, seen, actions, options, seed=seed)
            label = name if progress and state == "embedding" else ""
            driven[name, state] = drive(env, policy, world.observes, tasks.goals.start, steps, label, seed=seed)
    driven["random", "none"] = drive(env, RandomPolicy(actions, seed), "nothing", tasks.goals.start, steps, seed=seed)
    return judge(env.latent_spec, tasks, driven, env.dt, options, seed=seed)


def judge(
    spec: LatentSpec,
    tasks: ControlTasks,
    driven: dict[tuple[str, State], Driven],
    dt: float,
    options: ControlOptions,
    *,
    seed: int = 0,
) -> ClosedLoop:
    """Judge every run by its true latents, paired per task with the oracle twin (the first planner's for the random)."""
    goal, outcomes = tasks.goals.goal, []
    cost = {key: control_cost(spec, run, goal, options.action_weight) for key, run in driven.items()}
    first = next(iter(driven))[0]
    for (name, state), run in driven.items():
        twin = (name if state != "none" else first, "oracle")
        solved = tasks.success.solved(spec, run.path, goal, dt)
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
