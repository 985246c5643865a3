"""The `worldmodel` console command: `worldmodel plan --env reacher` is `python scripts/plan.py --env reacher`."""

from worldmodel.scripts import bench, cli, collect, plan, train


def main() -> None:
    """Run one of the command lines by name."""
    cli.run({"plan": plan.main, "collect": collect.main, "train": train.main, "bench": bench.main}, "worldmodel")


if __name__ == "__main__":
    main()
