"""Train agents of stable-baselines3, one for each seed, and compare what they observe.

python scripts/train_agent.py --env reacher-easy --algo sac --obs embedding
python scripts/train_agent.py --env reacher-easy --obs state embedding pixels --seeds 3 --jobs 2 --minutes 20
"""

from typing import Annotated

import tyro

from worldmodel.scripts import cli
from worldmodel.scripts.agent_training.options import TrainAgentOptions


def main(options: Annotated[TrainAgentOptions, tyro.conf.arg(name="")]) -> None:
    """Train, and show what the agents reach beside a random policy."""
    from worldmodel.scripts.agent_training.job import run

    run(options)


if __name__ == "__main__":
    cli.run(main, "train_agent")
