"""Closed loop of the benchmark: LQR from frames, beside LQR on the true latents and a random policy."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np

from worldmodel.data.store import load_episodes
from worldmodel.dynamics.states import encode_episodes
from worldmodel.dynamics.world_model import WorldModel
from worldmodel.encoders.encoder import Encoder
from worldmodel.envs import SuiteEnv
from worldmodel.envs.control_tasks import ControlSetting, control_goals
from worldmodel.envs.goals import GoalTasks
from worldmodel.envs.pixels import frames_at
from worldmodel.planners.catalogue import ControlOptions, planner_policy
from worldmodel.planners.closed_loop import judge
from worldmodel.planners.driving import Driven, UniformPolicy, drive
from worldmodel.planners.oracle import embedding_world, oracle_world, true_trajectories
from worldmodel.planners.outcomes import PlanOutcome, State
from worldmodel.scripts.exploration.setup import Setup
from worldmodel.utils.stages import Stage, run_stage


@dataclass(frozen=True)
class ControlTask:
    """What LQR is asked to do, with what it minimises."""

    env: SuiteEnv
    setting: ControlSetting
    goals: GoalTasks
    options: ControlOptions

    @classmethod
    def of(cls, setup: Setup) -> Self:
        """Draw the tasks."""
        env, setting = setup.control()
        env.reset(seed=setup.seed)
        goals = control_goals(env.latent_spec, setup.tasks, np.random.default_rng([setup.seed, 2]))
        return cls(env, setting, goals, ControlOptions(action_weight=setting.action_weight))

    def lqr(self, world: WorldModel, seed: int) -> Driven:
        """Let LQR drive in a world."""
        goal = self.goals.goal if world.observes == "latents" else frames_at(self.env, self.goals.goal)
        policy = planner_policy("lqr", world, goal, self.env.num_actions, self.options, seed=seed)
        return drive(self.env, policy, world.observes, self.goals.start, self._steps)

    def random(self, seed: int) -> Driven:
        """Act at random."""
        policy = UniformPolicy(self.env.num_actions, seed)
        return drive(self.env, policy, "nothing", self.goals.start, self._steps)

    @property
    def _steps(self) -> int:
        return round(self.setting.seconds / self.env.dt)


def run_baselines(setup: Setup, driven: Stage) -> Stage:
    """Let the oracle and a random policy do the tasks, once for all cells."""

    def build(folder: Path) -> None:
        task = ControlTask.of(setup)
        episodes = load_episodes(driven.folder / "episodes")
        train, selection = (true_trajectories(part) for part in (episodes.train, episodes.selection))
        task.lqr(oracle_world(task.env.latent_spec, train, selection), setup.seed).save(folder / "oracle.npz")
        task.random(setup.seed).save(folder / "random.npz")
        task.env.close()

    key = setup.key("seed", "tasks") | {"driven": driven.digest}
    return run_stage(setup.out, "baselines", key, build, made_by=[ControlTask])


def control(setup: Setup, driven: Stage, baselines: Stage, encoder: Encoder) -> dict[str, Any]:
    """Let LQR drive to goals from frames alone, by dynamics fitted to the common driven data.

    Returns:
        Outcomes by state (embedding, oracle, none), or why the embedding was refused.
    """
    task = ControlTask.of(setup)
    try:
        return _judged(setup, task, driven, baselines, encoder)
    except ValueError as error:  # an embedding that allows no dynamics, or dynamics that allow no control
        return {"refused": str(error)}
    finally:
        task.env.close()


def _judged(setup: Setup, task: ControlTask, driven: Stage, baselines: Stage, encoder: Encoder) -> dict[str, Any]:
    episodes = load_episodes(driven.folder / "episodes")
    train, selection = (encode_episodes(encoder, part) for part in (episodes.train, episodes.selection))
    runs: dict[tuple[str, State], Driven] = {
        ("lqr", "embedding"): task.lqr(embedding_world(encoder, train, selection), setup.seed),
        ("lqr", "oracle"): Driven.load(baselines.folder / "oracle.npz"),
        ("random", "none"): Driven.load(baselines.folder / "random.npz"),
    }
    spec, success = task.env.latent_spec, task.setting.success
    closed = judge(spec, task.goals, runs, success, task.env.dt, task.options, seed=setup.seed)
    return {outcome.state: untimed(outcome) for outcome in closed.outcomes}


def untimed(outcome: PlanOutcome) -> dict[str, Any]:
    """Return an outcome without its times: an interrupted run leaves the same numbers as one that was not."""
    return {name: value for name, value in outcome.to_json().items() if name != "plan_ms"}
