"""Optimisers of action sequences: exact (QP), sampling (CEM, iCEM, MPPI) and by gradient."""

from typing import TYPE_CHECKING

from worldmodel.utils.faces import late

if TYPE_CHECKING:
    from worldmodel.planners.optimisers.cem import CEM as CEM
    from worldmodel.planners.optimisers.gradient import Gradient as Gradient
    from worldmodel.planners.optimisers.icem import ICEM as ICEM
    from worldmodel.planners.optimisers.mppi import MPPI as MPPI
    from worldmodel.planners.optimisers.qp import QP as QP
    from worldmodel.planners.problem import Bounds as Bounds
    from worldmodel.planners.problem import Optimiser as Optimiser
    from worldmodel.planners.problem import Problem as Problem
    from worldmodel.planners.problem import Solution as Solution

_HOME = {
    "CEM": "cem",
    "Gradient": "gradient",
    "ICEM": "icem",
    "MPPI": "mppi",
    "QP": "qp",
    "Bounds": ".problem",
    "Optimiser": ".problem",
    "Problem": ".problem",
    "Solution": ".problem",
}
__all__ = sorted(_HOME)

__getattr__, __dir__ = late(__name__, _HOME)  # only the gradient needs torch
