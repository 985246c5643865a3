"""The `worldmodel` console command: `worldmodel plan --env reacher` is `python scripts/plan.py --env reacher`."""

from collections.abc import Callable
from typing import Any

from worldmodel.scripts import bench, benchmark, cli, collect, identify, minari_data, plan, train, train_agent


def main() -> None:
    """Run one of the command lines by name."""
    commands: dict[str, Callable[..., Any]] = {
        "plan": plan.main,
        "collect": collect.main,
        "train": train.main,
        "train-agent": train_agent.main,
        "benchmark": benchmark.main,
        "minari-data": minari_data.main,
        "identify": identify.main,
        "bench": bench.main,
    }
    cli.run(commands, "worldmodel")


if __name__ == "__main__":
    main()
