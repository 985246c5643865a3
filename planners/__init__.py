"""Planners: from a current embedding and a goal to actions, judged beside the oracle."""

from worldmodel.planners.catalogue import PLANNERS, ControlOptions, planner_policy
from worldmodel.planners.closed_loop import ClosedLoop, evaluate
from worldmodel.planners.costs import QuadraticCost
from worldmodel.planners.decoders import NearestDecoder, circle_decoder, linear_decoder
from worldmodel.planners.kinematic import KinematicPlans, plan_kinematic
from worldmodel.planners.lqr import LQR, ControlError
from worldmodel.planners.mpc import MPC, MPCOptions
from worldmodel.planners.oracle import fit_worlds
from worldmodel.planners.outcomes import PlanOutcome
from worldmodel.planners.policy import PlannerPolicy
from worldmodel.planners.seeking import GoalSeeker
from worldmodel.planners.straight_line import StraightLine

__all__ = [
    "LQR",
    "MPC",
    "PLANNERS",
    "ClosedLoop",
    "ControlError",
    "ControlOptions",
    "GoalSeeker",
    "KinematicPlans",
    "MPCOptions",
    "NearestDecoder",
    "PlanOutcome",
    "PlannerPolicy",
    "QuadraticCost",
    "StraightLine",
    "circle_decoder",
    "evaluate",
    "fit_worlds",
    "linear_decoder",
    "plan_kinematic",
    "planner_policy",
]
