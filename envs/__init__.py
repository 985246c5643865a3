"""Environments: every task of the DeepMind Control suite over Gymnasium, with latents and fast frames."""

from worldmodel.envs import gl
from worldmodel.envs.installed import import_simulator

gl.configure()  # before anything imports mujoco
import_simulator()

from worldmodel.envs.control_tasks import ControlSetting, control_goals, control_setting  # noqa: E402
from worldmodel.envs.fleet import Fleet  # noqa: E402
from worldmodel.envs.frames import FrameError, FrameRenderer  # noqa: E402
from worldmodel.envs.goals import GoalTasks, Tolerance, reached, sample_tasks  # noqa: E402
from worldmodel.envs.latents import Coordinate, LatentSpec, coordinate, latent_spec  # noqa: E402
from worldmodel.envs.pixels import PixelObservation  # noqa: E402
from worldmodel.envs.registration import DEFAULT_TASKS, env_id, make, suite_of, task_names  # noqa: E402
from worldmodel.envs.suite import SuiteEnv  # noqa: E402

__all__ = [
    "DEFAULT_TASKS",
    "ControlSetting",
    "Coordinate",
    "Fleet",
    "FrameError",
    "FrameRenderer",
    "GoalTasks",
    "LatentSpec",
    "PixelObservation",
    "SuiteEnv",
    "Tolerance",
    "control_goals",
    "control_setting",
    "coordinate",
    "env_id",
    "latent_spec",
    "make",
    "reached",
    "sample_tasks",
    "suite_of",
    "task_names",
]
