import itertools
import math

import mujoco
import numpy as np
import pytest
from dm_control import suite

from worldmodel.envs.frames import FrameRenderer
from worldmodel.envs.latents import Coordinate, LatentSpec, coordinate, latent_spec

CURATED = [
    ("reacher", "hard"),
    ("point_mass", "easy"),
    ("cartpole", "balance"),
    ("pendulum", "swingup"),
    ("acrobot", "swingup"),
    ("finger", "spin"),
    ("finger", "turn_hard"),
    ("ball_in_cup", "catch"),
    ("cheetah", "run"),
    ("hopper", "hop"),
    ("walker", "walk"),
]
DERIVED = [("cartpole", "three_poles"), ("manipulator", "bring_ball"), ("stacker", "stack_2"), ("swimmer", "swimmer6")]
HINGED = [task for task in CURATED + DERIVED if task[0] not in ("point_mass", "ball_in_cup")]
FREE = [("dog", "walk"), ("fish", "swim"), ("humanoid", "walk"), ("humanoid_CMU", "walk"), ("quadruped", "walk")]


def load(domain: str, task: str) -> tuple[mujoco.MjModel, LatentSpec]:
    env = suite.load(domain, task, task_kwargs={"random": 0})
    env.reset()
    model = env.physics.model.ptr
    return model, latent_spec(domain, task, model)


@pytest.mark.parametrize(("domain", "task"), CURATED + DERIVED)
def test_latents_and_positions_are_inverse_and_the_rest_stays(domain: str, task: str) -> None:
    model, spec = load(domain, task)
    z = np.random.default_rng(0).normal(size=(3, 5, spec.n))
    base = np.arange(model.nq, dtype=float)
    qpos = spec.to_qpos(z, base)
    rest = np.setdiff1d(np.arange(model.nq), spec.qpos_indices)
    assert np.allclose(spec.to_latents(qpos), z)
    assert (qpos[..., rest] == base[rest]).all()


@pytest.mark.parametrize(("domain", "task"), CURATED + DERIVED)
def test_every_joint_is_a_latent_or_left_out_with_a_reason(domain: str, task: str) -> None:
    model, spec = load(domain, task)
    assert {*spec.names, *spec.left_out} == {model.joint(index).name for index in range(model.njnt)}
    assert all(spec.left_out.values())


@pytest.mark.parametrize(("domain", "task"), CURATED + DERIVED)
def test_scales_follow_the_rule(domain: str, task: str) -> None:
    _, spec = load(domain, task)
    for c in spec.coordinates:
        if c.limits:
            assert c.scale <= (c.limits[1] - c.limits[0]) / 6 + 1e-9
            assert c.limits[0] <= c.mean - 2 * c.scale and c.mean + 2 * c.scale <= c.limits[1]
        elif c.unit == "rad":
            assert c.scale / c.period <= 0.7 / (2 * math.pi) + 1e-9
    assert (spec.ceiling() > 0.9994).all()


@pytest.mark.parametrize(("domain", "task"), HINGED)
def test_a_period_is_that_of_the_picture(domain: str, task: str) -> None:
    model, spec = load(domain, task)
    free = [i for i, c in enumerate(spec.coordinates) if c.period]
    turn = spec.periods[free] / spec.scales[free]
    z = np.einsum("t,i,ij->itj", (0, 1, 0.5), turn, np.eye(spec.n)[free])  # (hinge, turns, n)
    for i, (here, full, half) in zip(free, _frames(model, spec.to_qpos(z, model.qpos0)), strict=True):
        assert np.abs(full - here).mean() < 0.1 * np.abs(half - here).mean(), spec.names[i]


@pytest.mark.parametrize(("domain", "task"), CURATED)
def test_every_latent_shows(domain: str, task: str) -> None:
    model, spec = load(domain, task)
    values = (-2, -1, 0, 1, 2)
    z = np.einsum("v,ij->ivj", values, np.eye(spec.n))  # (latent, value, n)
    frames = _frames(model, spec.to_qpos(z, model.qpos0))
    for name, row in zip(spec.names, frames, strict=True):
        for a, b in itertools.pairwise(row):
            changed = (np.abs(a - b).max(axis=-1) > 10).sum()
            assert changed >= 4, (name, changed)


@pytest.mark.parametrize(("domain", "task"), [("walker", "walk"), ("cheetah", "run"), ("hopper", "hop")])
def test_a_root_that_the_camera_follows_is_left_out(domain: str, task: str) -> None:
    _, spec = load(domain, task)
    assert list(spec.left_out) == ["rootx"]
    assert "follows it" in spec.left_out["rootx"]


@pytest.mark.parametrize(("domain", "task"), FREE)
def test_free_joints_are_refused_with_what_can_be_done(domain: str, task: str) -> None:
    with pytest.raises(ValueError, match=rf"{domain}-{task} has free or ball joints .* give latent_spec=LatentSpec"):
        load(domain, task)


def test_hinges_of_a_model_with_a_free_joint_can_be_chosen() -> None:
    model = suite.load("fish", "swim", task_kwargs={"random": 0}).physics.model.ptr
    spec = LatentSpec("fish", "swim", (coordinate(model, "tail1"), coordinate(model, "tail2")))
    assert spec.names == ("tail1", "tail2")
    with pytest.raises(ValueError, match="neither a hinge nor a slide"):
        coordinate(model, "root")


def test_the_ceiling_is_one_for_limited_joints_and_known_for_radians() -> None:
    _, spec = load("reacher", "hard")
    assert spec.ceiling().round(4).tolist() == [0.9995, 1.0]
    assert spec.rescaled(1.0).ceiling().round(4).tolist() == [0.9489, 0.9489]
    assert spec.rescaled(1.0).scales.tolist() == [1.0, 1.0]
    assert spec.rescaled(0.5).periods.tolist() == [2 * math.pi, math.inf]


def test_differences_take_the_short_way_round_free_hinges_only() -> None:
    _, spec = load("reacher", "hard")
    difference = spec.difference(np.array([[3.0, 2.7], [7.0, 0.0]]), np.array([-3.0, -2.7]))
    assert difference == pytest.approx(np.array([[6 - 2 * math.pi, 5.4], [10 - 4 * math.pi, 2.7]]))


def test_wrapping_forgets_turns() -> None:
    _, spec = load("reacher", "hard")
    z = np.array([1.0, -1.0])
    turned = z + np.array([4 * math.pi / 0.7, 0.0])
    assert spec.wrap(turned) == pytest.approx(z)


def test_what_makes_no_specification_is_refused() -> None:
    c = Coordinate("a", "a", 0, 0.0, 1.0, None, "m")
    with pytest.raises(ValueError, match="at least one coordinate"):
        LatentSpec("d", "t", ())
    with pytest.raises(ValueError, match="come twice"):
        LatentSpec("d", "t", (c, c))
    with pytest.raises(ValueError, match="has to be positive"):
        LatentSpec("d", "t", (Coordinate("a", "a", 0, 0.0, 0.0, None, "m"),))


def test_arrays_that_do_not_fit_are_refused() -> None:
    model, spec = load("reacher", "hard")
    with pytest.raises(ValueError, match=r"has 2 \(shoulder, wrist\)"):
        spec.to_qpos(np.zeros(3), model.qpos0)
    with pytest.raises(ValueError, match="not all finite"):
        spec.to_qpos(np.array([np.nan, 0]), model.qpos0)
    with pytest.raises(ValueError, match="too short"):
        spec.to_latents(np.zeros(1))


def _frames(model: mujoco.MjModel, poses: np.ndarray) -> np.ndarray:
    """Frames (..., H, W, 3) of poses (..., nq)."""
    renderer = FrameRenderer(model)
    frames = renderer.render_poses(poses.reshape(-1, model.nq)).astype(int)
    renderer.close()
    return frames.reshape(*poses.shape[:-1], *frames.shape[1:])
