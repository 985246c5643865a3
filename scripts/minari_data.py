"""Write episodes as a Minari data set, or a Minari data set of any environment with frames as episodes.

python scripts/minari_data.py export --data data/reacher --id worldmodel/reacher-v0
python scripts/minari_data.py import --id worldmodel/reacher-v0 --out data/reacher-again
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

import worldmodel as wm
from worldmodel.data.modes import Mode
from worldmodel.scripts import cli
from worldmodel.scripts.cli import console


@dataclass(frozen=True)
class Export:
    """Write a data set of ours as a Minari data set, in the folder MINARI_DATASETS_PATH or ~/.minari/datasets.

    Attributes:
        data: folder of a data set, from scripts/collect.py.
        id: the new name, such as worldmodel/reacher-v0.
    """

    data: Path
    id: str


@dataclass(frozen=True)
class Import:
    """Write a Minari data set, whose observations are or hold RGB frames, as a data set of ours.

    Attributes:
        id: its name, such as worldmodel/reacher-v0.
        out: folder of the new data set.
        frames_key: of its observations, the frames; found where there is one choice.
        states_key: of its observations, the simulator's state (default: "state", where there is one).
        latents_key: of its observations, the true latents (default: "latent", where there is one).
        mode: what to do with a folder that exists: resume, overwrite it, or refuse.
    """

    id: str
    out: Path
    frames_key: str | None = None
    states_key: str | None = None
    latents_key: str | None = None
    mode: Mode = "append"


Command = (
    Annotated[Export, tyro.conf.subcommand("export", prefix_name=False)]
    | Annotated[Import, tyro.conf.subcommand("import", prefix_name=False)]
)


def main(command: Annotated[Command, tyro.conf.arg(name="")]) -> None:
    """Go between data sets of ours and Minari's."""
    if isinstance(command, Export):
        where = wm.export_minari(wm.load_episodes(command.data), command.id)
    else:
        keys = wm.ObservationKeys(command.frames_key, command.states_key, command.latents_key)
        where = wm.import_minari(command.id, command.out, keys, mode=command.mode).path
    console.print(str(where), soft_wrap=True, highlight=False)


if __name__ == "__main__":
    cli.run(main, "minari_data")
