"""Let a policy drive the simulator in many tasks at once, here or in several processes."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol, Self

import joblib
import numpy as np

from worldmodel.envs.fleet import Fleet
from worldmodel.envs.suite import SuiteEnv
from worldmodel.planners.policy import Memory, PlannerPolicy
from worldmodel.utils.files import write_whole
from worldmodel.utils.progress import progress_bar
from worldmodel.utils.workers import in_parallel

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
class UniformPolicy:
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
