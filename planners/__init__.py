"""Planners: from a current embedding and a goal to actions, judged beside the oracle."""

from worldmodel.planners.catalogue import PLANNERS, ControlOptions, planner_policy
from worldmodel.planners.closed_loop import ClosedLoop, evaluate
from worldmodel.planners.compare import PlanOutcome
from worldmodel.planners.costs import QuadraticCost
from worldmodel.planners.decoders import NearestDecoder, linear_decoder
from worldmodel.planners.kinematic import KinematicPlans, plan_kinematic
from worldmodel.planners.lqr import LQR, ControlError
from worldmodel.planners.mpc import MPC, MPCOptions
from worldmodel.planners.policy import PlannerPolicy
from worldmodel.planners.straight_line import StraightLine
from worldmodel.planners.world import World, fit_worlds

__all__ = [
    "LQR",
    "MPC",
    "PLANNERS",
    "ClosedLoop",
    "ControlError",
    "ControlOptions",
    "KinematicPlans",
    "MPCOptions",
    "NearestDecoder",
    "PlanOutcome",
    "PlannerPolicy",
    "QuadraticCost",
    "StraightLine",
    "World",
    "evaluate",
    "fit_worlds",
    "linear_decoder",
    "plan_kinematic",
    "planner_policy",
]
