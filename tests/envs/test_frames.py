import multiprocessing
import pickle
import threading

import mujoco
import numpy as np
import pytest
from dm_control import suite

from worldmodel.envs import gl
from worldmodel.envs.frames import FrameError, FrameRenderer

BALLS = """
<mujoco>
  <worldbody>
    <camera name="above" pos="0 0 3"/>
    <camera name="away" pos="0 0 3" xyaxes="1 0 0 0 -1 0"/>
    <light pos="0 0 3"/>
    <body><joint type="slide" axis="1 0 0"/><geom name="red" size=".3" rgba="1 0 0 1"/></body>
    <body><joint type="slide" axis="0 1 0"/><geom name="blue" size=".2" pos=".6 .6 0" rgba="0 0 1 1"/></body>
  </worldbody>
</mujoco>
"""


@pytest.fixture(scope="module")
def balls() -> mujoco.MjModel:
    return mujoco.MjModel.from_xml_string(BALLS)


def at(model: mujoco.MjModel, *qpos: float) -> mujoco.MjData:
    data = mujoco.MjData(model)
    data.qpos[:] = qpos
    mujoco.mj_forward(model, data)
    return data


def poses(model: mujoco.MjModel, count: int, seed: int = 0) -> np.ndarray:
    return model.qpos0 + 0.3 * np.random.default_rng(seed).standard_normal((count, model.nq))


def difference(one: np.ndarray, other: np.ndarray) -> float:
    return float(np.abs(one.astype(int) - other).mean())


@pytest.mark.parametrize(
    ("domain", "task"), [("reacher", "hard"), ("cartpole", "balance"), ("cheetah", "run"), ("ball_in_cup", "catch")]
)
def test_frame_is_dm_controls_without_shadows_and_mirror_images(domain: str, task: str) -> None:
    env = suite.load(domain, task, task_kwargs={"random": 0})
    env.reset()
    physics = env.physics
    expected = physics.render(64, 64, camera_id=0, render_flag_overrides={"shadow": False, "reflection": False})
    model, data = physics.model.ptr, physics.data.ptr
    frame = FrameRenderer(model).render(data)
    assert difference(frame, expected) < 0.7  # of 255: fewer facets move the brightness of some edge pixels
    assert np.array_equal(FrameRenderer(model).render_poses(data.qpos[None], data)[0], frame)
    assert np.array_equal(
        physics.render(64, 64, camera_id=0, render_flag_overrides={"shadow": False, "reflection": False}), expected
    )  # dm_control's own context is left alone


def test_with_shadows_and_reflections_and_all_facets_it_is_dm_controls_frame() -> None:
    env = suite.load("reacher", "hard", task_kwargs={"random": 0})
    env.reset()
    renderer = FrameRenderer(env.physics.model.ptr, height=160, width=160, shadows=True, reflections=True)
    assert difference(renderer.render(env.physics.data.ptr), env.physics.render(160, 160, camera_id=0)) < 0.01


def test_a_batch_is_its_poses_one_by_one_to_the_byte() -> None:
    model = suite.load("finger", "spin").physics.model.ptr
    qpos = poses(model, 70)  # more than one buffer holds
    renderer = FrameRenderer(model)
    singly = [FrameRenderer(model).render(at(model, *qpos[0]))] + [renderer.render(at(model, *q)) for q in qpos[1:]]
    batch = renderer.render_poses(qpos)
    assert batch.shape == (70, 64, 64, 3) and batch.dtype == np.uint8
    assert np.array_equal(batch, singly)


@pytest.mark.parametrize("size", [(48, 80), (9, 33), (600, 700)])
def test_any_frame_size(balls: mujoco.MjModel, size: tuple[int, int]) -> None:
    frames = FrameRenderer(balls, height=size[0], width=size[1]).render_poses(np.array([[0.0, 0.0], [0.3, 0.0]]))
    assert frames.shape == (2, *size, 3)
    assert not np.array_equal(frames[0], frames[1])


def test_the_top_row_is_first_and_colours_are_rgb(balls: mujoco.MjModel) -> None:
    blue = FrameRenderer(balls, hidden_geoms=["red"]).render(at(balls, 0, 0)).astype(int)
    rows, columns = np.nonzero(blue[..., 2] > blue[..., 0] + 50)
    assert rows.mean() < 32 < columns.mean()  # it lies at x > 0 and y > 0


def test_antialiasing_smooths_edges(balls: mujoco.MjModel) -> None:
    colours = [
        len(np.unique(FrameRenderer(balls, antialias=smooth).render(at(balls, 0, 0)).reshape(-1, 3), axis=0))
        for smooth in (False, True)
    ]
    assert colours[1] > colours[0]


def test_two_renderers_by_turns_each_keep_their_own_frame(balls: mujoco.MjModel) -> None:
    other = suite.load("reacher", "hard").physics.model.ptr
    first, second = FrameRenderer(balls), FrameRenderer(other, height=40)
    expected = first.render(at(balls, 0.2, 0)), second.render(at(other, 1.0, 0.5))
    for _ in range(3):
        assert np.array_equal(first.render(at(balls, 0.2, 0)), expected[0])
        assert np.array_equal(second.render(at(other, 1.0, 0.5)), expected[1])
    second.close()
    assert np.array_equal(first.render(at(balls, 0.2, 0)), expected[0])


def test_threads_draw_the_same_frames_at_the_same_time(balls: mujoco.MjModel) -> None:
    renderer, qpos, drawn = FrameRenderer(balls), poses(balls, 80), {}
    expected = renderer.render_poses(qpos)

    def draw(number: int) -> None:
        mine = renderer if number % 2 else FrameRenderer(balls)
        drawn[number] = mine.render_poses(qpos)

    threads = [threading.Thread(target=draw, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(drawn) == 4 and all(np.array_equal(frames, expected) for frames in drawn.values())


def test_a_spawned_process_draws_the_same_frames(balls: mujoco.MjModel) -> None:
    renderer, qpos = FrameRenderer(balls, camera="above", hidden_geoms=["blue"]), poses(balls, 3)
    expected = renderer.render_poses(qpos)
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert np.array_equal(pool.apply_async(renderer.render_poses, (qpos,)).get(timeout=60), expected)
    assert np.array_equal(pickle.loads(pickle.dumps(renderer)).render_poses(qpos), expected)


def test_close_twice_does_no_harm_and_the_next_frame_comes_all_the_same(balls: mujoco.MjModel) -> None:
    with FrameRenderer(balls) as renderer:
        frame = renderer.render(at(balls, 0, 0))
        renderer.close()
    renderer.close()
    assert np.array_equal(renderer.render(at(balls, 0, 0)), frame)


def test_thirty_renderers_forgotten_unclosed_leave_room_for_another(balls: mujoco.MjModel) -> None:
    for _ in range(30):
        frame = FrameRenderer(balls, height=8, width=8).render(at(balls, 0, 0))
    assert frame.std() > 0


def test_blank_frames_are_refused(balls: mujoco.MjModel) -> None:
    with pytest.raises(FrameError, match="blank"):
        FrameRenderer(balls, hidden_geoms=["red", "blue"]).render(at(balls, 0, 0))
    with pytest.raises(FrameError, match="frame 1 is blank"):
        FrameRenderer(balls).render_poses(np.array([[0, 0], [50, 50]]))


def test_a_lost_context_is_an_error_and_no_frame(balls: mujoco.MjModel) -> None:
    renderer = FrameRenderer(balls)
    renderer.render(at(balls, 0, 0))
    gl.call(renderer._canvas._glcontext.free)  # type: ignore[union-attr]
    with pytest.raises(FrameError, match="context"):
        renderer.render(at(balls, 0, 0))
    renderer.close()
    assert renderer.render(at(balls, 0, 0)).std() > 0


def test_poses_that_differ_and_look_the_same_are_refused() -> None:
    wall = '<geom type="box" size="9 9 .1" pos="0 0 1" rgba="1 1 1 1"/><geom size=".3" pos="0 0 1" rgba="0 1 0 1"/>'
    model = mujoco.MjModel.from_xml_string(BALLS.replace("<worldbody>", f"<worldbody>{wall}"))
    with pytest.raises(FrameError, match="3 different poses gave one and the same frame"):
        FrameRenderer(model).render_poses(np.array([[0, 0], [0.2, 0], [0.4, 0]]))


def test_poses_that_differ_invisibly_may_look_the_same(balls: mujoco.MjModel) -> None:
    qpos = np.array([[0, 0], [0, 1e-6], [1e-6, 0]])
    assert len(FrameRenderer(balls).render_poses(qpos)) == 3
    moved = np.array([[0, 0], [0, 0.4]])
    assert len(FrameRenderer(balls, hidden_geoms=["blue"]).render_poses(moved)) == 2  # only what is hidden moved


def test_hidden_geoms_are_not_drawn_and_the_model_is_as_it_was() -> None:
    model = suite.load("reacher", "hard", task_kwargs={"random": 0}).physics.model.ptr
    before = model.geom_rgba.copy(), model.geom_group.copy(), model.vis.quality.numslices, model.vis.global_.offwidth
    shown, hidden = FrameRenderer(model), FrameRenderer(model, hidden_geoms=["target"])
    data = at(model, 0, 0)
    frames = shown.render(data), hidden.render(data)
    after = model.geom_rgba, model.geom_group, model.vis.quality.numslices, model.vis.global_.offwidth
    assert all(np.array_equal(a, b) for a, b in zip(before, after, strict=True))
    model.geom("target").rgba[3] = 0
    assert np.array_equal(frames[1], shown.render(data))  # a change of the model shows in the next frame
    assert not np.array_equal(*frames)


def test_the_base_is_not_changed_and_gives_what_is_no_position() -> None:
    xml = BALLS.replace("<worldbody>", '<worldbody><body mocap="true" name="m"><geom size=".1" rgba="0 1 0 1"/></body>')
    model = mujoco.MjModel.from_xml_string(xml)
    base = at(model, 0.1, 0.2)
    base.mocap_pos[0] = [-0.7, -0.7, 0]
    mujoco.mj_forward(model, base)
    before = pickle.dumps(base)
    frames = FrameRenderer(model).render_poses(np.array([[0.1, 0.2]]), base)
    assert pickle.dumps(base) == before
    assert np.array_equal(frames[0], FrameRenderer(model).render(base))
    assert not np.array_equal(frames[0], FrameRenderer(model).render_poses(np.array([[0.1, 0.2]]))[0])


def test_a_model_without_cameras_is_seen_by_the_free_one() -> None:
    model = mujoco.MjModel.from_xml_string("<mujoco><worldbody><geom size='.1'/></worldbody></mujoco>")
    assert np.array_equal(FrameRenderer(model).render(at(model)), FrameRenderer(model, camera=-1).render(at(model)))


def test_gl_renderer_is_the_drivers_name(balls: mujoco.MjModel) -> None:
    assert len(FrameRenderer(balls).gl_renderer) > 3


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"height": 0}, "at least 1"),
        ({"camera": 2}, "no camera 2"),
        ({"camera": "side"}, "above, away"),
        ({"hidden_geoms": ["green"]}, "red, blue"),
        ({"hidden_geoms": "red"}, "several names"),
    ],
)
def test_bad_options_are_one_line(balls: mujoco.MjModel, options: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        FrameRenderer(balls, **options)


def test_bad_poses_are_one_line(balls: mujoco.MjModel) -> None:
    renderer = FrameRenderer(balls)
    with pytest.raises(ValueError, match=r"this model takes \(B, 2\)"):
        renderer.render_poses(np.zeros((3, 4)))
    with pytest.raises(ValueError, match="pose 1 is not all finite"):
        renderer.render_poses(np.array([[0, 0], [np.nan, 0]]))
    other = suite.load("cheetah", "run").physics
    with pytest.raises(ValueError, match="another model"):
        renderer.render(other.data.ptr)
    with pytest.raises(FrameError, match="buffer"):
        FrameRenderer(balls, height=1, width=100_000).render(at(balls, 0, 0))
    assert renderer.render_poses(np.zeros((0, 2))).shape == (0, 64, 64, 3)
