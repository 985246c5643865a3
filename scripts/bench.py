"""How fast things are, measured side by side in one run.

python scripts/bench.py render --env reacher
"""

import os
import platform
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
import tyro
from rich.progress import track
from rich.table import Table

from worldmodel import envs
from worldmodel.files import to_plain, write_json
from worldmodel.scripts import cli
from worldmodel.versions import versions

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


Command = Annotated[Render, tyro.conf.subcommand("render", prefix_name=False)] | Annotated[None, tyro.conf.Suppress]


def main(command: Annotated[Command, tyro.conf.arg(name="")]) -> None:
    """Measure how fast something is here."""
    if isinstance(command, Render):
        render(command)


def render(options: Render) -> list[RenderTime]:
    """Time every way to draw, and leave the table in ``result.json``."""
    if options.frames < 8 or options.repeats < 2:
        raise ValueError(f"--frames {options.frames} --repeats {options.repeats}: at least 8 frames and 2 repeats")
    folder = cli.run_folder(options.out, "bench/render")
    with _ways(options) as (ways, gl_renderer):
        rounds = [
            {way: _ms_per_frame(draw, options) for way, draw in ways.items()}
            for _ in track(range(options.repeats + 1), description="drawing", console=cli.console, transient=True)
        ][1:]
    times = [
        RenderTime(way, [one[way] for one in rounds], [one[_BASELINE] / one[way] for one in rounds])
        for way in rounds[0]
    ]
    result = {
        "options": asdict(options) | {"env": envs.env_id(options.env)},
        "gl_renderer": gl_renderer,
        "cpu": _cpu(),
        "cores": os.cpu_count(),
        "versions": versions(),
        "render": [asdict(one) for one in times],
    }
    cli.console.print(_table(times, f"{envs.env_id(options.env)}, {options.size}x{options.size}, {gl_renderer}"))
    write_json(folder / "result.json", to_plain(result))
    cli.console.print(str(folder / "result.json"), highlight=False)
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


def _table(times: list[RenderTime], title: str) -> Table:
    table = Table(title=title, title_justify="left")
    table.add_column("way")
    for column in ("ms per frame, median", "range", "times faster than dm_control", "range"):
        table.add_column(column, justify="right")
    for one in times:
        ms, faster = np.array(one.ms), np.array(one.faster)
        table.add_row(
            one.way,
            f"{np.median(ms):.2f}",
            f"{ms.min():.2f} to {ms.max():.2f}",
            f"{np.median(faster):.1f}",
            f"{faster.min():.1f} to {faster.max():.1f}",
        )
    return table


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.machine())


if __name__ == "__main__":
    cli.run(main, "bench")
