"""The `worldmodel` console command: `worldmodel plan --env reacher` is `python scripts/plan.py --env reacher`.

A command is imported when it is called: help comes at once, and `doctor` works where others cannot be imported.
"""

import sys
from importlib import import_module

COMMANDS = {
    "plan": "the main job: from pixels to a plan, with proof",
    "collect": "collect episodes of an environment",
    "train": "train an encoder on collected episodes",
    "train-agent": "train agents of stable-baselines3, and compare what they observe",
    "benchmark": "rank ways of moving by the world model that they yield",
    "minari-data": "write and read data sets of Minari",
    "identify": "test objectives against the theorems, on synthetic worlds",
    "bench": "measure how fast something is here",
    "doctor": "say on one screen what is installed and what works here",
}


def main() -> None:
    """Run one of the command lines by name."""
    name, *arguments = sys.argv[1:] or ["--help"]
    if name in ("-h", "--help"):
        print("usage: worldmodel COMMAND [OPTIONS]\n")
        print("\n".join(f"  {command:<12} {what}" for command, what in COMMANDS.items()))
        print("\nworldmodel COMMAND --help lists the options of one.")
    elif name in COMMANDS:
        from worldmodel.scripts import cli

        with cli.one_line_for_errors(f"worldmodel {name}"):
            module = import_module(f"worldmodel.scripts.{name.replace('-', '_')}")
        cli.run(module.main, f"worldmodel {name}", arguments)
    else:
        print(f"worldmodel: there is no command {name!r}: choose {', '.join(COMMANDS)}", file=sys.stderr)
        sys.exit(2)


if __name__ == "__main__":
    main()
