"""Explorers of the benchmark: those of `agents.explorer`, and two that it prepares first.

- ``sac`` and ``ppo`` without a path: an agent of stable-baselines3 is trained on the task's state, on a small budget.
- ``seek:PLANNER``: a planner drives to one goal after another; it knows the true state, and dynamics fitted to the
  common driven data.
"""

import re
from pathlib import Path
from typing import get_args

from worldmodel.agents import explorer
from worldmodel.agents.collection import rehearse
from worldmodel.agents.explorers import Explorer
from worldmodel.agents.names import Algorithm
from worldmodel.agents.policies import SB3Policy
from worldmodel.data.store import load_episodes
from worldmodel.envs import SuiteEnv
from worldmodel.planners.catalogue import ControlOptions
from worldmodel.planners.names import PLANNERS
from worldmodel.planners.oracle import oracle_world, true_trajectories
from worldmodel.planners.seeking import GoalSeeker
from worldmodel.scripts.agent_training.job import train_seed
from worldmodel.scripts.agent_training.options import TrainAgentOptions
from worldmodel.scripts.exploration.setup import Setup
from worldmodel.utils.stages import Stage

_SEEK = "seek:"


def check(text: str, env: SuiteEnv) -> None:
    """Refuse an explorer that cannot be made, or does not fit the task, before any long work.

    Raises:
        ValueError: so it is.
    """
    if text.startswith(_SEEK):
        if text.removeprefix(_SEEK) not in PLANNERS:
            raise ValueError(f"{text!r}: write seek:PLANNER with one of {', '.join(PLANNERS)}")
    elif text not in get_args(Algorithm):
        rehearse(explorer(text), env)


def prepare(text: str, setup: Setup, driven: Stage) -> Explorer:
    """Make an explorer that was checked.

    Args:
        text: as it was asked for.
        setup: what all cells share.
        driven: the common driven data.
    """
    if text.startswith(_SEEK):
        return _seeker(text.removeprefix(_SEEK), setup, driven)
    if text in get_args(Algorithm):
        return SB3Policy(str(_expert(text, setup)), text)
    return explorer(text)


def _seeker(planner: str, setup: Setup, driven: Stage) -> GoalSeeker:
    env, setting = setup.control()
    episodes = load_episodes(driven.folder / "episodes")
    train, selection = (true_trajectories(part) for part in (episodes.train, episodes.selection))
    world = oracle_world(env.latent_spec, train, selection)
    options = ControlOptions(action_weight=setting.action_weight)
    return GoalSeeker(planner, world, env.dt, options=options)  # type: ignore[arg-type]  # checked


def _expert(algo: str, setup: Setup) -> Path:
    """Train the agent, or take the one of an earlier run."""
    options = TrainAgentOptions(
        env=setup.env,
        algo=algo,  # type: ignore[arg-type]  # checked
        frame_skip=2,  # nearer to the control steps that it will drive at
        seed=setup.seed,
        device=setup.device,
    )
    return train_seed(options, setup.out, setup.seed).folder / f"best-{algo}.zip"


def short_name(text: str) -> str:
    """Return an explorer's text without the folders of its files.

    >>> short_name("mix:0.2:sac:runs/expert/best-sac.zip+random")
    'mix:0.2:sac:best-sac.zip+random'
    """
    return re.sub(r"[^:+]*/", "", text)
