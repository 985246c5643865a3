import mujoco
import numpy as np
import pytest
from dm_control import suite

from worldmodel.envs import gl
from worldmodel.envs.frames import FrameError, FrameRenderer
from worldmodel.envs.sky import SKYBOX

LID = """
<mujoco>
  <statistic extent="1"/>
  <visual><map znear=".01" zfar="{zfar}"/></visual>
  <asset><texture type="skybox" builtin="gradient" rgb1="0 0 1" rgb2="0 0 .5" width="32" height="192"/></asset>
  <worldbody>
    <camera pos="0 0 2"/>
    <light pos="0 0 2"/>
    <body><joint type="slide" axis="1 0 0"/><geom type="box" size="2 2 .1" rgba="1 0 0 {alpha}"/></body>
    <geom type="sphere" size=".2" pos="0 0 .3" rgba="0 1 0 1"/>
  </worldbody>
</mujoco>
"""
OPEN, SHUT = [2.0], [0.0]


def lid(zfar: float = 50, alpha: float = 1) -> mujoco.MjModel:
    return mujoco.MjModel.from_xml_string(LID.format(zfar=zfar, alpha=alpha))


def with_sky(model: mujoco.MjModel) -> FrameRenderer:
    """A renderer that draws the sky whether it shows or not."""
    renderer = FrameRenderer(model)
    renderer._scene.flags[SKYBOX] = True
    return renderer


def leaves_sky_out(renderer: FrameRenderer) -> bool:
    return not renderer._scene.flags[SKYBOX]


@pytest.mark.parametrize(
    ("task", "hidden"),
    [("reacher-hard", True), ("point_mass-easy", True), ("cartpole-swingup", False), ("quadruped-walk", False)],
)
def test_frames_are_the_same_to_the_byte_whether_the_sky_is_drawn_or_left_out(task: str, hidden: bool) -> None:
    physics = suite.load(*task.split("-"), task_kwargs={"random": 0}).physics
    model = physics.model.ptr
    poses = model.qpos0 + 0.3 * np.random.default_rng(0).standard_normal((8, model.nq))
    renderer = FrameRenderer(model)
    assert np.array_equal(renderer.render_poses(poses), with_sky(model).render_poses(poses))
    assert leaves_sky_out(renderer) == hidden


def test_sky_that_shows_in_one_pose_is_drawn_in_any_batch() -> None:
    model = lid()
    shut, opened = with_sky(model).render_poses(np.array([SHUT, OPEN]))
    assert opened[0, 0, 2] > opened[0, 0, 0] and shut[0, 0, 2] < shut[0, 0, 0]  # blue, red
    renderer = FrameRenderer(model)
    for poses, frames in [([SHUT], [shut]), ([SHUT, OPEN], [shut, opened]), ([OPEN, SHUT], [opened, shut])]:
        assert np.array_equal(renderer.render_poses(np.array(poses)), frames)
    assert np.array_equal(FrameRenderer(model).render_poses(np.array([OPEN])), [opened])


def test_sky_shows_through_what_is_transparent() -> None:
    model, poses = lid(alpha=0.5), np.array([SHUT])
    assert np.array_equal(FrameRenderer(model).render_poses(poses), with_sky(model).render_poses(poses))


@pytest.mark.parametrize("zfar", [2.2, 4.0, 50.0])
def test_what_lies_beyond_the_sky_is_hidden_by_it(zfar: float) -> None:
    model, poses = lid(zfar), np.array([SHUT])  # the lid is 1.9 away, the sky 0.7 times zfar
    renderer = FrameRenderer(model)
    assert np.array_equal(renderer.render_poses(poses), with_sky(model).render_poses(poses))
    assert leaves_sky_out(renderer) == (zfar > 10)


def test_a_lost_context_is_an_error_though_sky_is_looked_for() -> None:
    renderer, data = FrameRenderer(lid()), mujoco.MjData(lid())
    mujoco.mj_forward(renderer.model, data)
    renderer.render(data)
    gl.call(renderer._canvas._glcontext.free)  # type: ignore[union-attr]
    with pytest.raises(FrameError, match="context"):
        renderer.render(data)
