"""Planners: from a current embedding and a goal to actions, judged beside the oracle."""

from worldmodel.planners.compare import PlanOutcome
from worldmodel.planners.costs import QuadraticCost
from worldmodel.planners.decoders import NearestDecoder, linear_decoder
from worldmodel.planners.kinematic import KinematicPlans, plan_kinematic
from worldmodel.planners.lqr import LQR, ControlError
from worldmodel.planners.mpc import MPC, MPCOptions
from worldmodel.planners.straight_line import StraightLine

__all__ = [
    "LQR",
    "MPC",
    "ControlError",
    "KinematicPlans",
    "MPCOptions",
    "NearestDecoder",
    "PlanOutcome",
    "QuadraticCost",
    "StraightLine",
    "linear_decoder",
    "plan_kinematic",
]
