"""Optimisers of action sequences: exact (QP), sampling (CEM, iCEM, MPPI) and by gradient."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

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
    "CEM": "optimisers.cem",
    "Gradient": "optimisers.gradient",
    "ICEM": "optimisers.icem",
    "MPPI": "optimisers.mppi",
    "QP": "optimisers.qp",
    "Bounds": "problem",
    "Optimiser": "problem",
    "Problem": "problem",
    "Solution": "problem",
}
__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"worldmodel.planners.{_HOME[name]}"), name)  # only the gradient needs torch
