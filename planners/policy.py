"""A planner as a policy: from observations to actions, with the ``predict`` of stable-baselines3."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol

import numpy as np

from worldmodel.dynamics.states import Estimator
from worldmodel.planners.straight_line import StraightLine

See = Callable[[np.ndarray], np.ndarray]
"""Observations (B, ...) to embeddings (B, m)."""


class Planner(Protocol):
    """Chooses actions that lead from states to references."""

    def act(self, s: np.ndarray, references: np.ndarray, *, environments: Sequence[int] | None = None) -> np.ndarray:
        """Return actions (B, a) of states (B, S) towards goals (B, m) or along paths (B, L, m)."""

    def reset(self, environments: Sequence[int] | None = None) -> None:
        """Forget what was planned for some environments, or for all."""


class Memory(NamedTuple):
    """What a policy carries from one step to the next, by environment.

    Attributes:
        s: states (B, S).
        a: actions chosen last (B, a).
        path: embeddings to be at after 1..L steps from the start (B, L, m), the last one held.
        step: steps since the start (B,).
    """

    s: np.ndarray
    a: np.ndarray
    path: np.ndarray
    step: np.ndarray


@dataclass(frozen=True, eq=False)
class PlannerPolicy:
    """Sees, estimates, plans, acts; an episode starts at rest.

    It keeps nothing itself but what its planner keeps: :class:`Memory` goes in and out of ``predict``, as SB3's
    recurrent policies do it, so ``stable_baselines3.common.evaluation.evaluate_policy`` drives it.

    Attributes:
        see: observations to embeddings.
        estimator: keeps the state, from embeddings and actions.
        planner: chooses actions.
        goal: embedding to reach: one for all environments (m,) or one each (B, m).
        line: go there along a straight line, in so many steps; None goes as the planner likes.
        numbers: of the environments (B,), by which a planner tells them apart; None counts them.
    """

    see: See
    estimator: Estimator
    planner: Planner
    goal: np.ndarray
    line: StraightLine | None = None
    numbers: np.ndarray | None = None

    def rows(self, chosen: np.ndarray) -> "PlannerPolicy":
        """Return the policy of some of the environments."""
        numbers = chosen if self.numbers is None else self.numbers[chosen]
        return replace(self, goal=self.goal if self.goal.ndim == 1 else self.goal[chosen], numbers=numbers)

    def predict(
        self,
        observation: np.ndarray,
        state: Memory | None = None,
        episode_start: np.ndarray | None = None,
        deterministic: bool = True,
    ) -> tuple[np.ndarray, Memory]:
        """Return actions (B, a) float32 and what to hand in with the next observations.

        Args:
            observation: (B, ...), or of one environment: a single frame (H, W, 3) or vector; then the action is (a,).
            state: what the last call returned; None starts all episodes.
            episode_start: (B,) where a new episode starts.
            deterministic: of no effect; every planner draws from seeded generators of its own.
        """
        single = observation.ndim in (1, 3)
        h = self.see(observation[None] if single else observation).astype(np.float64)
        begun = np.ones(len(h), bool) if state is None else np.zeros(len(h), bool)
        if state is not None and episode_start is not None:
            begun |= np.asarray(episode_start, bool)
        memory = self._remember(h, state, begun)
        numbers = None if self.numbers is None else self.numbers.tolist()
        a = np.asarray(self.planner.act(memory.s, self._ahead(memory), environments=numbers), np.float32)
        return (a[0] if single else a), memory._replace(a=a.astype(np.float64), step=memory.step + 1)

    def _remember(self, h: np.ndarray, state: Memory | None, begun: np.ndarray) -> Memory:
        if begun.any():
            rows = np.flatnonzero(begun)
            self.planner.reset((rows if self.numbers is None else self.numbers[rows]).tolist())
            fresh, goal = self.estimator.start(h), self.estimator.start(np.broadcast_to(self.goal, h.shape))
            here, there = fresh[:, : h.shape[1]], goal[:, : h.shape[1]]  # as the estimator will see them
            path = there[:, None] if self.line is None else self.line.plan(here, there)[:, 1:]
            if state is None:
                return Memory(fresh, np.zeros(0), path, np.zeros(len(h), int))
            kept = self.estimator.step(state.s, state.a, h)
            return Memory(
                np.where(begun[:, None], fresh, kept),
                state.a,
                np.where(begun[:, None, None], path, state.path),
                np.where(begun, 0, state.step),
            )
        assert state is not None
        return state._replace(s=self.estimator.step(state.s, state.a, h))

    def _ahead(self, memory: Memory) -> np.ndarray:
        """Return what is left of the paths (B, L, m), the goal repeated where they end."""
        length = memory.path.shape[1]
        if length == 1:
            return memory.path[:, 0]
        ahead = np.minimum(memory.step[:, None] + np.arange(length), length - 1)
        return np.take_along_axis(memory.path, ahead[:, :, None], axis=1)
