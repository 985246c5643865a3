"""How fast things are, measured side by side in one run.

python scripts/bench.py all
python scripts/bench.py render --env reacher
python scripts/bench.py train
python scripts/bench.py sigreg
python scripts/bench.py encode
python scripts/bench.py plan
python scripts/bench.py identify
python scripts/bench.py reach
python scripts/bench.py growth
"""

from typing import Annotated

import tyro

from worldmodel.scripts import cli
from worldmodel.scripts.speed.all import All, run_all
from worldmodel.scripts.speed.encode import Encode, encode
from worldmodel.scripts.speed.growth import Growth, growth
from worldmodel.scripts.speed.identify import Identify, identify
from worldmodel.scripts.speed.plan import Plan, plan
from worldmodel.scripts.speed.reach import Reach, reach
from worldmodel.scripts.speed.render import Render, render
from worldmodel.scripts.speed.sigreg import Sigreg, sigreg_times
from worldmodel.scripts.speed.train import Train, train

Command = (
    Annotated[All, tyro.conf.subcommand("all", prefix_name=False)]
    | Annotated[Render, tyro.conf.subcommand("render", prefix_name=False)]
    | Annotated[Train, tyro.conf.subcommand("train", prefix_name=False)]
    | Annotated[Sigreg, tyro.conf.subcommand("sigreg", prefix_name=False)]
    | Annotated[Encode, tyro.conf.subcommand("encode", prefix_name=False)]
    | Annotated[Plan, tyro.conf.subcommand("plan", prefix_name=False)]
    | Annotated[Identify, tyro.conf.subcommand("identify", prefix_name=False)]
    | Annotated[Reach, tyro.conf.subcommand("reach", prefix_name=False)]
    | Annotated[Growth, tyro.conf.subcommand("growth", prefix_name=False)]
)


def main(command: Annotated[Command, tyro.conf.arg(name="")]) -> None:
    """Measure how fast something is here."""
    match command:
        case All():
            run_all(command)
        case Render():
            render(command)
        case Train():
            train(command)
        case Sigreg():
            sigreg_times(command)
        case Encode():
            encode(command)
        case Plan():
            plan(command)
        case Identify():
            identify(command)
        case Reach():
            reach(command)
        case Growth():
            growth(command)


if __name__ == "__main__":
    cli.run(main, "bench")
