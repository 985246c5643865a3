"""The main job: from pixels to a plan, with proof.

Collects frames, trains the pixel encoder, measures how linearly it identifies the true state, plans in its embedding,
and judges the plans against the same planner on the true state (the oracle).

    python scripts/plan.py --env reacher
"""

from typing import Annotated

import tyro

from worldmodel.scripts import cli
from worldmodel.scripts.planning.options import PlanOptions


def main(options: Annotated[PlanOptions, tyro.conf.arg(name="")]) -> None:
    """Collect, train, measure, plan, and show it beside the oracle."""
    from worldmodel.scripts.planning.job import run

    run(options)


if __name__ == "__main__":
    cli.run(main, "plan")
