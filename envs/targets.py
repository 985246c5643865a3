"""Targets of the suite's own tasks, and the poses that reach them, by dm_control's inverse kinematics."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from absl import logging
from dm_control import mujoco, suite
from dm_control.utils.inverse_kinematics import qpos_from_site_pose

from worldmodel.envs.goals import GoalTasks
from worldmodel.envs.suite import SuiteEnv

ARMS = ("reacher",)
"""Domains with a target that the tip of an arm reaches."""

_RESTARTS, _STEPS = 6, 50


@dataclass(frozen=True)
class TargetTasks:
    """Episodes of the suite's own task, started within the latent law.

    Attributes:
        tasks: starts from the law, goals by inverse kinematics; ``excluded`` counts targets that no pose within the
            law reaches.
        seeds: of the episodes, which decide the targets (N,).
    """

    tasks: GoalTasks
    seeds: np.ndarray


def target_tasks(env: SuiteEnv, count: int, within: float, seed: int = 0) -> TargetTasks:
    """Draw targets as the task does, and the poses that reach them.

    Args:
        env: an arm with a target.
        count: number of tasks.
        within: largest latent of a goal pose: beyond it the encoder has seen hardly anything.
        seed: of targets and starts.

    Raises:
        ValueError: the domain has no arm with a target.
    """
    if env.domain not in ARMS:
        raise ValueError(f"{env.domain} has no arm with a target: take {', '.join(ARMS)}")
    rng, spec = np.random.default_rng([seed, 3]), env.latent_spec
    starts: list[np.ndarray] = []
    goals: list[np.ndarray] = []
    seeds: list[int] = []
    tried = 0

    def in_law(qpos: np.ndarray) -> bool:
        return bool(np.abs(spec.wrap(spec.to_latents(qpos))).max() <= within)

    while len(goals) < count:
        episode = int(rng.integers(2**31))
        env.reset(seed=episode)
        target = env.physics.named.data.geom_xpos["target"].copy()
        tried += 1
        qpos = reaching_pose(env.domain, target, rng, in_law)
        if qpos is not None:
            starts.append(np.clip(rng.standard_normal(spec.n), -within, within))
            goals.append(spec.wrap(spec.to_latents(qpos)))
            seeds.append(episode)
    return TargetTasks(GoalTasks(np.array(starts), np.array(goals), tried - count), np.array(seeds))


def reaching_pose(
    domain: str, target: np.ndarray, rng: np.random.Generator, fits: Callable[[np.ndarray], bool] | None = None
) -> np.ndarray | None:
    """Return positions (nq,) whose fingertip is at ``target`` (3,), by dm_control's inverse kinematics.

    Args:
        domain: an arm.
        target: where the tip should be, in m.
        rng: of the poses that the search starts from.
        fits: further condition on the positions.

    Returns:
        The positions, or None where several starts found none.
    """
    physics = _arm(domain)
    joints = [physics.model.ptr.joint(index).name for index in range(physics.model.njnt)]
    verbosity = logging.get_verbosity()
    logging.set_verbosity(logging.ERROR)  # a start from which the search fails is no news
    try:
        for _ in range(_RESTARTS):
            physics.data.qpos[:] = rng.uniform(-2, 2, physics.model.nq)
            physics.forward()
            found = qpos_from_site_pose(
                physics, "tip", target_pos=target, joint_names=joints, tol=1e-10, max_steps=_STEPS
            )
            if found.success and (fits is None or fits(found.qpos)):
                return found.qpos.copy()
    finally:
        logging.set_verbosity(verbosity)
    return None


@cache
def _arm(domain: str) -> Any:
    """Return the suite's physics with a site at the fingertip, which inverse kinematics needs and the suite lacks."""
    xml, assets = getattr(suite, domain).get_model_and_assets()
    finger = b'<geom name="finger"'
    text = xml if isinstance(xml, bytes) else xml.encode()
    if finger not in text:
        raise ValueError(f"the model of {domain} has no finger")
    return mujoco.Physics.from_xml_string(text.replace(finger, b'<site name="tip"/>' + finger).decode(), assets)
