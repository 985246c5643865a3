"""Planners: from a current embedding and a goal to actions, judged beside the oracle."""

from typing import TYPE_CHECKING

from worldmodel.utils.faces import late

if TYPE_CHECKING:
    from worldmodel.planners.catalogue import ControlOptions, planner_policy
    from worldmodel.planners.closed_loop import ClosedLoop, evaluate
    from worldmodel.planners.costs import QuadraticCost
    from worldmodel.planners.decoders import NearestDecoder, circle_decoder, linear_decoder
    from worldmodel.planners.kinematic import KinematicPlans, plan_kinematic
    from worldmodel.planners.lqr import LQR, ControlError
    from worldmodel.planners.mpc import MPC, MPCOptions
    from worldmodel.planners.names import PLANNERS
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

_HOMES = {
    "LQR": "lqr",
    "MPC": "mpc",
    "PLANNERS": "names",
    "ClosedLoop": "closed_loop",
    "ControlError": "lqr",
    "ControlOptions": "catalogue",
    "GoalSeeker": "seeking",
    "KinematicPlans": "kinematic",
    "MPCOptions": "mpc",
    "NearestDecoder": "decoders",
    "PlanOutcome": "outcomes",
    "PlannerPolicy": "policy",
    "QuadraticCost": "costs",
    "StraightLine": "straight_line",
    "circle_decoder": "decoders",
    "evaluate": "closed_loop",
    "fit_worlds": "oracle",
    "linear_decoder": "decoders",
    "plan_kinematic": "kinematic",
    "planner_policy": "catalogue",
}
__getattr__, __dir__ = late(__name__, _HOMES)
