"""Snapshots of an agent in training: model, replay buffer, curve and best model, whole or not at all."""

import json
import shutil
import time
from dataclasses import dataclass
from pathlib import Path

from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.off_policy_algorithm import OffPolicyAlgorithm
from stable_baselines3.common.vec_env import VecEnv

from worldmodel.agents.curve import LearningCurve
from worldmodel.agents.evaluation import Evaluation

_MODEL, _REPLAY, _COUNTERS = "model.zip", "replay_buffer.pkl", "counters.json"


@dataclass(frozen=True)
class Resumed:
    """An interrupted agent.

    Attributes:
        model: as it was at the snapshot.
        curve: its evaluations until then.
        seconds: of training until then.
    """

    model: BaseAlgorithm
    curve: LearningCurve
    seconds: float


class Snapshots(BaseCallback):
    """Takes a snapshot now and then, between two rollouts, so that no half-collected rollout is lost.

    Each is a folder that gets its name once it is complete; the one before is removed then.

    Args:
        folder: where they lie.
        evaluation: its curve and best model are part of a snapshot.
        every: seconds between snapshots.
    """

    def __init__(self, folder: Path, evaluation: Evaluation, every: float) -> None:
        super().__init__()
        self.folder, self.evaluation, self.every = folder, evaluation, every
        self._last = time.monotonic()

    def _on_step(self) -> bool:
        return True

    def _on_rollout_start(self) -> None:
        taken = (self.folder / self._name).exists()  # the one that this run goes on from
        if time.monotonic() - self._last >= self.every and not taken:
            with self.evaluation.watch.paused():
                self.take()
            self._last = time.monotonic()

    @property
    def _name(self) -> str:
        return f"{self.model.num_timesteps:09d}"

    def take(self) -> None:
        """Take a snapshot now."""
        self.folder.mkdir(parents=True, exist_ok=True)
        temporary = self.folder / ".incomplete"
        shutil.rmtree(temporary, ignore_errors=True)
        temporary.mkdir()
        self.model.save(temporary / _MODEL)
        if isinstance(self.model, OffPolicyAlgorithm):
            self.model.save_replay_buffer(temporary / _REPLAY)
        best, evaluation = self.evaluation.best, self.evaluation
        if best.exists():
            shutil.copy(best, temporary / best.name)
        counters = {"curve": evaluation.curve.to_json(), "seconds": evaluation.watch.seconds}
        (temporary / _COUNTERS).write_text(json.dumps(counters))
        before = _complete(self.folder)
        temporary.rename(self.folder / self._name)
        for old in before:
            shutil.rmtree(old)


def resume(folder: Path, kind: type[BaseAlgorithm], envs: VecEnv, best: Path, device: str, seed: int) -> Resumed | None:
    """Go on from the latest snapshot in ``folder``; None where there is none.

    Args:
        folder: of the snapshots.
        kind: the algorithm.
        envs: environments to go on in; they begin a new episode.
        best: where the best model until then is put.
        device: of the networks.
        seed: of what is drawn from here on.
    """
    complete = _complete(folder)
    if not complete:
        return None
    latest = complete[-1]
    model = kind.load(latest / _MODEL, env=envs, device=device, seed=seed)
    if isinstance(model, OffPolicyAlgorithm):
        model.load_replay_buffer(latest / _REPLAY)
    best.unlink(missing_ok=True)  # found after the snapshot: the run goes on from before
    if (latest / best.name).exists():
        shutil.copy(latest / best.name, best)
    counters = json.loads((latest / _COUNTERS).read_text())
    return Resumed(model, LearningCurve.from_json(counters["curve"]), counters["seconds"])


def _complete(folder: Path) -> list[Path]:
    return sorted(path for path in folder.glob("*") if path.name.isdigit())
