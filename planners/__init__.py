"""Planners: from a current embedding and a goal to actions, judged beside the oracle."""

from worldmodel.planners.compare import PlanOutcome
from worldmodel.planners.decoders import NearestDecoder, linear_decoder
from worldmodel.planners.kinematic import KinematicPlans, plan_kinematic
from worldmodel.planners.straight_line import StraightLine

__all__ = ["KinematicPlans", "NearestDecoder", "PlanOutcome", "StraightLine", "linear_decoder", "plan_kinematic"]
