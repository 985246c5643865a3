"""The identifiability laboratory: the theory's experiments on synthetic worlds.

python scripts/identify.py two-d
python scripts/identify.py scaling --latents 2 8 32
python scripts/identify.py gennorm --objectives lejepa
"""

from typing import Annotated

import tyro

from worldmodel.scripts import cli
from worldmodel.scripts.laboratory.bound import BoundGrid, bound
from worldmodel.scripts.laboratory.dimension import Dimension, dimension
from worldmodel.scripts.laboratory.gennorm import GenNorm, gennorm
from worldmodel.scripts.laboratory.scaling import Scaling, scaling
from worldmodel.scripts.laboratory.two_d import TwoD, two_d

Command = (
    Annotated[TwoD, tyro.conf.subcommand("two-d", prefix_name=False)]
    | Annotated[Scaling, tyro.conf.subcommand("scaling", prefix_name=False)]
    | Annotated[GenNorm, tyro.conf.subcommand("gennorm", prefix_name=False)]
    | Annotated[BoundGrid, tyro.conf.subcommand("bound", prefix_name=False)]
    | Annotated[Dimension, tyro.conf.subcommand("dimension", prefix_name=False)]
)


def main(command: Annotated[Command, tyro.conf.arg(name="")]) -> None:
    """Test objectives against the theorems of linear identifiability, on worlds whose latents are known."""
    match command:
        case TwoD():
            two_d(command)
        case Scaling():
            scaling(command)
        case GenNorm():
            gennorm(command)
        case BoundGrid():
            bound(command)
        case Dimension():
            dimension(command)


if __name__ == "__main__":
    cli.run(main, "identify")
