"""Collect episodes into a folder.

python scripts/collect.py --env reacher --explorer latent-ou:0.9 --frames 20000 --out data/reacher
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import tyro

from worldmodel.data.modes import Mode
from worldmodel.scripts import cli
from worldmodel.scripts.cli import console

_SHOW_TARGET: dict[str, bool | Literal["latent"]] = {"hidden": False, "drawn": True, "latent": "latent"}


@dataclass(frozen=True)
class CollectOptions:
    """Options of a collection.

    Attributes:
        env: a DeepMind Control task: reacher, point_mass, cartpole-swingup, ...
        explorer: what moves the simulator. Posed: latent-ou:RHO (or one RHO per latent, with commas),
            latent-law:LAW:RHO. Through the actuators: action-ou:STD:SECONDS, random, tracking-ou, sac:PATH (a model
            file of stable-baselines3, which can run code when it is loaded), module:Name, file.py:Name,
            mix:EPSILON:FIRST+SECOND.
        frames: frames to collect; more than the folder holds extends it.
        length: frames of an episode (default: 50 posed ones, 4 s driven, 2 s driven within).
        within: for explorers that drive: episodes start at rest within so many latents, and end before one leaves.
        size: height and width of a frame in pixels.
        target: whether the task's target is drawn; as a latent, it is posed like the joints.
        camera: the camera, by number or name.
        frame_skip: control steps that an action lasts.
        processes: worker processes; 0 means one per core.
        mode: what to do with a folder that exists: resume or extend it, overwrite it, or refuse.
        seed: decides all data.
        out: folder of the data set (default: data/<env>).
    """

    env: str = "reacher"
    explorer: str = "latent-ou:0.9"
    frames: int = 20_000
    length: int | None = None
    within: float | None = None
    size: int = 64
    target: Literal["hidden", "drawn", "latent"] = "hidden"
    camera: int | str = 0
    frame_skip: int = 1
    processes: int = 0
    mode: Mode = "append"
    seed: int = 0
    out: Path | None = None


def main(options: Annotated[CollectOptions, tyro.conf.arg(name="")]) -> None:
    """Collect, and print the data card."""
    from worldmodel.agents import collect, explorer
    from worldmodel.report.tables import card_table

    out = options.out or Path("data") / options.env
    episodes = collect(
        options.env,
        explorer(options.explorer),
        options.frames,
        out,
        seed=options.seed,
        length=options.length,
        within=options.within,
        processes=options.processes,
        mode=options.mode,
        height=options.size,
        width=options.size,
        show_target=_SHOW_TARGET[options.target],
        camera=options.camera,
        frame_skip=options.frame_skip,
    )
    console.print(card_table(episodes.card))
    console.print(str(out), soft_wrap=True, highlight=False)


if __name__ == "__main__":
    cli.run(main, "collect")
