"""Frames per second, beside dm_control's own."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np

from worldmodel import envs
from worldmodel.report.tables import new_table, spread
from worldmodel.scripts import cli
from worldmodel.scripts.speed.result import write_result
from worldmodel.scripts.speed.turns import by_turns, times_faster

_BASELINE = "dm_control physics.render"


@dataclass(frozen=True)
class Render:
    """Draw frames in four ways by turns, and compare them with dm_control's.

    Attributes:
        env: a DeepMind Control task: reacher, point_mass, cartpole-swingup, ...
        size: height and width of a frame in pixels.
        frames: frames of one repeat, drawn in a batch; an eighth of them where they are drawn one at a time.
        repeats: how often each way is timed, after one round that is not.
        seed: decides the poses.
        out: output folder.
    """

    env: str = "reacher"
    size: int = 64
    frames: int = 256
    repeats: int = 9
    seed: int = 0
    out: Path = Path("runs/bench/render")


@dataclass(frozen=True)
class RenderTime:
    """Time of one way to draw.

    Attributes:
        way: what draws.
        ms: milliseconds per frame, one entry per repeat.
        faster: how many times faster than dm_control, one entry per repeat, each over the same round's dm_control.
    """

    way: str
    ms: list[float]
    faster: list[float]


def render(options: Render) -> list[RenderTime]:
    """Time every way to draw, and leave the table in ``result.json``."""
    if options.frames < 8 or options.repeats < 2:
        raise ValueError(f"--frames {options.frames} --repeats {options.repeats}: at least 8 frames and 2 repeats")
    folder = cli.run_folder(options.out, "bench/render")
    with _ways(options) as (ways, gl_renderer):
        timed = {way: partial(_ms_per_frame, draw, options) for way, draw in ways.items()}
        ms = by_turns(timed, options.repeats, "drawing")
    times = [RenderTime(way, each, times_faster(each, ms[_BASELINE])) for way, each in ms.items()]
    env_id = envs.env_id(options.env)
    table = new_table(
        f"{env_id}, {options.size}x{options.size}, {gl_renderer}",
        "way",
        ("ms per frame, median", "range", "times faster than dm_control", "range"),
    )
    for one in times:
        table.add_row(one.way, *spread(one.ms, 2), *spread(one.faster, 1))
    cli.console.print(table)
    measured = {"gl_renderer": gl_renderer, "render": [asdict(one) for one in times]}
    write_result(folder, replace(options, env=env_id), measured, {})
    return times


@contextmanager
def _ways(options: Render) -> Iterator[tuple[dict[str, Callable[[int], int]], str]]:
    """What to time: functions that draw about so many frames and say how many; and the GL renderer."""
    from shimmy.dm_control_compatibility import DmControlCompatibilityV0

    env = envs.make(options.env, render_mode="rgb_array", height=options.size, width=options.size)
    suite = env.unwrapped
    assert isinstance(suite, envs.SuiteEnv)
    env.reset(seed=options.seed)
    size = {"height": options.size, "width": options.size, "camera_id": 0}
    shimmy = DmControlCompatibilityV0(suite._env, render_mode="rgb_array", render_kwargs=size)
    noise = np.random.default_rng(options.seed).standard_normal((options.frames, suite.model.nq))
    poses = suite.physics.data.qpos + 0.3 * noise

    def singly(draw: Callable[[], object]) -> Callable[[int], int]:
        def frames(count: int) -> int:
            for pose in poses[: count // 8]:
                suite.physics.data.qpos[:] = pose
                suite.physics.forward()
                draw()
            return count // 8

        return frames

    ways = {
        _BASELINE: singly(lambda: suite.physics.render(**size)),
        "Gymnasium env.render() over shimmy": singly(shimmy.render),
        "FrameRenderer.render": singly(suite.render),
        "FrameRenderer.render_poses": lambda count: len(
            suite.renderer.render_poses(poses[:count], suite.physics.data.ptr)
        ),
    }
    yield ways, suite.renderer.gl_renderer
    env.close()


def _ms_per_frame(draw: Callable[[int], int], options: Render) -> float:
    start = time.perf_counter()
    count = draw(options.frames)
    return 1e3 * (time.perf_counter() - start) / count
