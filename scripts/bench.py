"""How fast things are, measured side by side in one run.

python scripts/bench.py render --env reacher
python scripts/bench.py plan
python scripts/bench.py identify
"""

from typing import Annotated

import tyro

from worldmodel.scripts import cli
from worldmodel.scripts.bench_identify import Identify, identify
from worldmodel.scripts.bench_plan import Plan, plan
from worldmodel.scripts.bench_render import Render, render

Command = (
    Annotated[Render, tyro.conf.subcommand("render", prefix_name=False)]
    | Annotated[Plan, tyro.conf.subcommand("plan", prefix_name=False)]
    | Annotated[Identify, tyro.conf.subcommand("identify", prefix_name=False)]
)


def main(command: Annotated[Command, tyro.conf.arg(name="")]) -> None:
    """Measure how fast something is here."""
    match command:
        case Render():
            render(command)
        case Plan():
            plan(command)
        case Identify():
            identify(command)


if __name__ == "__main__":
    cli.run(main, "bench")
