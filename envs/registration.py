"""Names of the environments: every task of the suite is registered with Gymnasium when this module is imported."""

import difflib
from collections.abc import Mapping
from typing import Any

import gymnasium as gym
from dm_control import suite

from worldmodel.envs.pixels import PixelObservation
from worldmodel.envs.suite import SuiteEnv

DEFAULT_TASKS: Mapping[str, str] = {
    "acrobot": "swingup",
    "ball_in_cup": "catch",
    "cartpole": "balance",
    "cheetah": "run",
    "dog": "walk",
    "finger": "spin",
    "fish": "swim",
    "hopper": "hop",
    "humanoid": "walk",
    "humanoid_CMU": "walk",
    "lqr": "lqr_2_1",
    "manipulator": "bring_ball",
    "pendulum": "swingup",
    "point_mass": "easy",
    "quadruped": "walk",
    "reacher": "hard",
    "stacker": "stack_2",
    "swimmer": "swimmer6",
    "walker": "walk",
}
"""The task that the bare name of a domain stands for."""


def task_names() -> tuple[str, ...]:
    """Every task of the suite as <domain>-<task>."""
    return tuple(f"{domain}-{task}" for domain, task in suite.ALL_TASKS)


def env_id(name: str) -> str:
    """The Gymnasium id that a name stands for.

    >>> env_id("reacher"), env_id("reacher-easy"), env_id("worldmodel/walker-run-v0")
    ('worldmodel/reacher-hard-v0', 'worldmodel/reacher-easy-v0', 'worldmodel/walker-run-v0')

    Args:
        name: A domain (its default task is taken), <domain>-<task>, or the id itself.

    Raises:
        ValueError: If there is no such task; the line names the nearest ones.
    """
    short = name.removeprefix("worldmodel/").removesuffix("-v0")
    if short in DEFAULT_TASKS:
        short = f"{short}-{DEFAULT_TASKS[short]}"
    if short not in task_names():
        nearest = difflib.get_close_matches(short, [*DEFAULT_TASKS, *task_names()], n=3, cutoff=0.4)
        hint = f"nearest: {', '.join(nearest)}" if nearest else f"there are: {', '.join(DEFAULT_TASKS)}"
        raise ValueError(f"unknown environment {name!r}; {hint}")
    return f"worldmodel/{short}-v0"


def make(name: str, *, pixels: bool = False, target: bool = False, **options: Any) -> gym.Env[Any, Any]:
    """Makes an environment by any of its names.

    >>> env = make("cartpole", pixels=True, height=48)
    >>> env.reset(seed=0)[0].shape
    (48, 64, 3)
    >>> env.close()

    Args:
        name: As for `env_id`.
        pixels: Whether frames are the observation.
        target: Whether the place of the target stands beside the frame (see `PixelObservation`).
        **options: Those of `worldmodel.envs.suite.SuiteEnv`, such as frame_skip or height.

    Raises:
        ValueError: If there is no such task or an option does not fit it.
        TypeError: If there is no such option.
    """
    env = gym.make(env_id(name), **options)
    return PixelObservation(env, target) if pixels else env


def suite_of(env: gym.Env[Any, Any]) -> SuiteEnv:
    """The task's own environment inside wrappers.

    Raises:
        TypeError: If it is no environment of this toolkit.
    """
    if not isinstance(env.unwrapped, SuiteEnv):
        raise TypeError(f"{env} is no task of the DeepMind Control suite as envs.make makes them")
    return env.unwrapped


def _register() -> None:
    """Registers without the wrappers that check every step: the environment checks order, shapes and time itself."""
    for domain, task in suite.ALL_TASKS:
        gym.register(
            f"worldmodel/{domain}-{task}-v0",
            entry_point="worldmodel.envs.suite:SuiteEnv",
            kwargs={"domain": domain, "task": task},
            order_enforce=False,
            disable_env_checker=True,
        )


_register()
