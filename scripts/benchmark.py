"""Which way of moving yields the better world model? Every explorer's data trains the same encoder on the same budget.

python scripts/benchmark.py --env reacher --explorers latent-ou:0.9 tracking-ou action-ou random --lags 1 16
"""

from typing import Annotated

import tyro

from worldmodel.scripts import cli
from worldmodel.scripts.exploration.options import BenchmarkOptions


def main(options: Annotated[BenchmarkOptions, tyro.conf.arg(name="")]) -> None:
    """Collect, train and score every cell, then rank the explorers."""
    from worldmodel.scripts.exploration.job import run

    run(options)


if __name__ == "__main__":
    cli.run(main, "benchmark")
