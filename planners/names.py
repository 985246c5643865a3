"""Planners by name."""

from typing import Literal, get_args

PlannerName = Literal["straight-line", "lqr", "mpc-qp", "mpc-cem", "mpc-icem", "mpc-mppi", "mpc-gradient"]
PLANNERS: tuple[PlannerName, ...] = get_args(PlannerName)
