"""Planners by name, each with one setting for every world."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from worldmodel.dynamics.world_model import WorldModel
from worldmodel.planners.costs import QuadraticCost
from worldmodel.planners.lqr import LQR
from worldmodel.planners.mpc import MPC, MPCOptions
from worldmodel.planners.names import PLANNERS, PlannerName
from worldmodel.planners.optimisers import CEM, ICEM, MPPI, QP, Bounds, Gradient, Optimiser
from worldmodel.planners.oracle import linear_of
from worldmodel.planners.policy import PlannerPolicy
from worldmodel.planners.straight_line import StraightLine

_OPTIMISERS: dict[str, Callable[[], Optimiser]] = {
    "mpc-qp": QP,
    "mpc-cem": CEM,
    "mpc-icem": ICEM,
    "mpc-mppi": MPPI,
    "mpc-gradient": Gradient,
}


@dataclass(frozen=True)
class ControlOptions:
    """What planners aim for, and how far they look.

    Attributes:
        action_weight: r in the cost Σ‖h - h*‖² + r Σ‖a‖².
        mpc: horizon and batches of the MPC planners.
        line_steps: control steps in which the straight line goes from start to goal.
    """

    action_weight: float = 0.1
    mpc: MPCOptions = field(default_factory=MPCOptions)
    line_steps: int = 20

    @property
    def cost(self) -> QuadraticCost:
        """The cost that planner and oracle minimise."""
        return QuadraticCost(action_weight=self.action_weight)


def planner_policy(
    name: PlannerName,
    world: WorldModel,
    goal: np.ndarray,
    actions: int,
    options: ControlOptions = ControlOptions(),
    *,
    seed: int = 0,
) -> PlannerPolicy:
    """Make the policy of one planner in one world.

    Args:
        name: one of ``PLANNERS``.
        world: what it sees and knows.
        goal: observation of the goal, one for all environments (...) or one each (B, ...).
        actions: width of an action; actions lie in ±1.
        options: cost and horizon.
        seed: of planners that draw samples.

    Raises:
        ControlError: the model cannot be controlled.
        ValueError: there is no such planner.
    """
    bounds = Bounds.of(-np.ones(actions), np.ones(actions))
    planner: Any
    if name in _OPTIMISERS:
        model = world.dynamics.transition if world.linear is not world.dynamics else linear_of(world, name)
        planner = MPC(model, options.cost, bounds, _OPTIMISERS[name](), options.mpc, seed=seed)
    elif name in PLANNERS:
        planner = LQR(linear_of(world, name), options.cost, bounds)
    else:
        raise ValueError(f"unknown planner {name!r}: take one of {', '.join(PLANNERS)}")
    line = StraightLine(options.line_steps) if name == "straight-line" else None
    single = goal.ndim in (1, 3)
    h = world.see(goal[None] if single else goal)
    return PlannerPolicy(world.see, world.dynamics, planner, h[0] if single else h, line)
