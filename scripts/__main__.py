"""The `worldmodel` console command: `worldmodel plan --env reacher` is `python scripts/plan.py --env reacher`."""

from collections.abc import Callable
from typing import Any

from worldmodel.scripts import bench, cli, collect, identify, plan, train


def main() -> None:
    """Run one of the command lines by name."""
    commands: dict[str, Callable[..., Any]] = {
        "plan": plan.main,
        "collect": collect.main,
        "train": train.main,
        "identify": identify.main,
        "bench": bench.main,
    }
    cli.run(commands, "worldmodel")


if __name__ == "__main__":
    main()
