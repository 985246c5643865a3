"""Targets that a task draws: hidden, shown, or on joints of their own, so that they are latents like any other."""

from typing import Any
from xml.etree import ElementTree

import mujoco
import numpy as np
from dm_control import suite

_TARGET = "target"
_JOINTS = {"target_x": (1, 0, 0), "target_y": (0, 1, 0)}


def hide_targets(model: mujoco.MjModel) -> None:
    """Make all that is named target... invisible; the physics stay as they are."""
    for view, count, visible in (
        (model.geom, model.ngeom, model.geom_rgba[:, 3]),
        (model.site, model.nsite, model.site_rgba[:, 3]),
        (model.light, model.nlight, model.light_active),
    ):
        visible[[index for index in range(count) if view(index).name.startswith(_TARGET)]] = 0


def target_position(physics: Any) -> np.ndarray:
    """Return where the target is: (3,) float64 in m.

    Raises:
        ValueError: the task draws none.
    """
    data, model = physics.data.ptr, physics.model.ptr
    for kind, places in ((mujoco.mjtObj.mjOBJ_GEOM, data.geom_xpos), (mujoco.mjtObj.mjOBJ_SITE, data.site_xpos)):
        index = mujoco.mj_name2id(model, kind, _TARGET)
        if index >= 0:
            return places[index].copy()
    raise ValueError("this task draws no target")


def give_target_joints(env: Any, domain: str) -> None:
    """Put the target of a freshly loaded dm_control environment on two slides, target_x and target_y.

    Nothing pushes it, so that it stays where an episode puts it. It looks the same; positions and velocities, and with
    them the state that the task observes, have two entries more.

    Raises:
        ValueError: the domain's target is no geom that stands in the world.
    """
    xml, assets = getattr(suite, domain).get_model_and_assets()
    root = ElementTree.fromstring(xml)
    world = root.find("worldbody")
    geom = None if world is None else world.find(f"geom[@name='{_TARGET}']")
    if world is None or geom is None:
        raise ValueError(f"{domain} has no target in the plane that could be a latent")
    body = ElementTree.Element("body", name=_TARGET)
    for name, axis in _JOINTS.items():
        slide = {"name": name, "type": "slide", "axis": " ".join(map(str, axis)), "limited": "false"}
        body.append(ElementTree.Element("joint", slide))
    world.remove(geom)
    body.append(geom)
    world.append(body)
    env._physics = type(env.physics).from_xml_string(ElementTree.tostring(root), assets)


def move_target_to_joints(physics: Any) -> None:
    """Let the joints of the target stand for where the task has put it in its model."""
    place = physics.named.model.geom_pos[_TARGET]
    for axis, name in enumerate(_JOINTS):
        physics.named.data.qpos[name] = place[axis]
        place[axis] = 0
    physics.forward()
