"""Kinematic plans: a straight line in the embedding, decoded to poses, beside the same line on the true latents."""

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from worldmodel.dynamics.states import Encodes
from worldmodel.envs.goals import GoalTasks
from worldmodel.envs.pixels import frames_at
from worldmodel.envs.suite import SuiteEnv
from worldmodel.planners.decoders import Decoder
from worldmodel.planners.outcomes import PlanOutcome, judge_path
from worldmodel.planners.straight_line import StraightLine


@dataclass(frozen=True)
class KinematicPlans:
    """Plans of N tasks as latents (N, K + 1, n), with their judgement.

    Attributes:
        tasks: start-goal pairs.
        embedding: paths planned in the embedding, decoded.
        oracle: paths planned on the true latents by the same code.
        outcomes: one row per planner: embedding, oracle, random baseline.
    """

    tasks: GoalTasks
    embedding: np.ndarray
    oracle: np.ndarray
    outcomes: tuple[PlanOutcome, ...]


def plan_kinematic(
    encoder: Encodes, decoder: Decoder, env: SuiteEnv, tasks: GoalTasks, planner: StraightLine, seed: int = 0
) -> KinematicPlans:
    """Plan every task from the frames of its start and goal, and on the true latents, by the same code.

    The random baseline goes straight from the start to the goal of another task (with a single task there is none,
    and it goes to its own).

    Args:
        encoder: frames to embeddings.
        decoder: embeddings to latents, fitted on training episodes.
        env: draws the frames of start and goal; nothing else of it is used.
        tasks: start-goal pairs.
        planner: what plans, in the embedding and on the latents alike.
        seed: of the baseline and the bootstrap.
    """
    start, goal = frames_at(env, tasks.start), frames_at(env, tasks.goal)

    path, embedding_ms = _plan(planner, encoder.encode, decoder, start, goal)
    oracle, oracle_ms = _plan(planner, _as_it_is, _as_it_is, tasks.start, tasks.goal)
    others = np.random.default_rng(seed).permutation(len(tasks))
    random = planner.plan(tasks.start, np.roll(tasks.goal[others], 1, axis=0)[np.argsort(others)])
    spec = env.latent_spec
    outcomes = (
        judge_path("straight-line", "embedding", spec, tasks, path, oracle, embedding_ms, seed=seed),
        judge_path("straight-line", "oracle", spec, tasks, oracle, oracle, oracle_ms, seed=seed),
        judge_path("random", "none", spec, tasks, random, oracle, 0.0, seed=seed),
    )
    return KinematicPlans(tasks, path, oracle, outcomes)


def _plan(
    planner: StraightLine,
    encode: Callable[[np.ndarray], np.ndarray],
    decode: Decoder,
    start: np.ndarray,
    goal: np.ndarray,
) -> tuple[np.ndarray, float]:
    """Plan what ``encode`` sees, read as latents (N, K + 1, n), with the milliseconds per task that all of it took."""
    begin = time.perf_counter()
    path = decode(planner.plan(encode(start), encode(goal)))
    return path, 1e3 * (time.perf_counter() - begin) / len(path)


def _as_it_is(latents: np.ndarray) -> np.ndarray:
    return latents
