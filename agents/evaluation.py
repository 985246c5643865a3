"""Evaluation episodes apart from training, and the time that training itself takes."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.type_aliases import PolicyPredictor
from stable_baselines3.common.vec_env import VecEnv

from worldmodel.agents.curve import LearningCurve
from worldmodel.utils.files import write_whole


class Stopwatch:
    """Seconds that pass while it is not paused.

    Args:
        seconds: what an interrupted run had counted.
    """

    def __init__(self, seconds: float = 0.0) -> None:
        self._start = time.perf_counter() - seconds

    @property
    def seconds(self) -> float:
        """Seconds until now."""
        return time.perf_counter() - self._start

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Leave out what happens meanwhile."""
        seconds = self.seconds
        try:
            yield
        finally:
            self._start = time.perf_counter() - seconds


class RandomPolicy:
    """Draws uniform actions, for SB3's ``evaluate_policy``.

    Args:
        envs: what it acts in.
        seed: of the actions.
    """

    def __init__(self, envs: VecEnv, seed: int) -> None:
        self._shape = (envs.num_envs, *(envs.action_space.shape or ()))
        self._rng = np.random.default_rng(seed)

    def predict(self, observation: Any, *_: Any, **__: Any) -> tuple[np.ndarray, None]:
        """Return one action in ±1 for each environment, whatever the observation."""
        return self._rng.uniform(-1, 1, self._shape).astype(np.float32), None


def episode_returns(model: PolicyPredictor, envs: VecEnv, seed: int) -> np.ndarray:
    """Play one episode in each environment, the same ones for the same seed: returns (episodes,).

    Actions are the most likely ones. The environments have a Monitor.
    """
    envs.seed(seed)
    returns, _ = evaluate_policy(model, envs, envs.num_envs, deterministic=True, return_episode_rewards=True)
    return np.array(returns)


class Evaluation(BaseCallback):
    """Evaluates now and then, on the same episodes every time, and keeps the best model.

    Args:
        envs: environments of their own, one episode each.
        seed: of the episodes.
        every: environment steps of training between evaluations.
        watch: counts training time; paused meanwhile.
        best: file that the best model is saved to, whole or not at all.
        curve: evaluations before an interruption.
    """

    def __init__(
        self, envs: VecEnv, seed: int, every: int, watch: Stopwatch, best: Path, curve: LearningCurve | None = None
    ) -> None:
        super().__init__()
        self.envs, self.seed, self.every, self.watch, self.best = envs, seed, every, watch, best
        self.curve = LearningCurve.empty() if curve is None else curve

    def _on_step(self) -> bool:
        if self.num_timesteps >= self.every * (len(self.curve.steps) + 1):
            self.evaluate()
        return True

    def _on_training_end(self) -> None:
        if self.num_timesteps not in self.curve.steps:
            self.evaluate()

    def evaluate(self) -> None:
        """Evaluate now."""
        best_before = self.curve.mean.max(initial=-np.inf)
        with self.watch.paused():
            returns = episode_returns(self.model, self.envs, self.seed)
        self.curve = self.curve.extended(self.num_timesteps, self.watch.seconds, returns)
        self.logger.record("eval/mean_reward", float(returns.mean()))
        self.logger.dump(self.num_timesteps)
        if returns.mean() > best_before:
            write_whole(self.best, self.model.save)
