"""The `worldmodel` console command: `worldmodel plan --env reacher` is `python scripts/plan.py --env reacher`."""

from collections.abc import Callable

from worldmodel.scripts import bench, benchmark, cli, collect, minari_data, plan, train, train_agent


def main() -> None:
    """Run one of the command lines by name."""
    commands: dict[str, Callable[..., None]] = {
        "plan": plan.main,
        "collect": collect.main,
        "train": train.main,
        "train-agent": train_agent.main,
        "benchmark": benchmark.main,
        "minari-data": minari_data.main,
        "bench": bench.main,
    }
    cli.run(commands, "worldmodel")


if __name__ == "__main__":
    main()
