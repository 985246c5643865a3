"""Dynamics by name, or your own: what is fitted to driven episodes."""

from collections.abc import Callable
from contextlib import suppress
from typing import TypeAlias, get_args

from worldmodel.dynamics.kalman import fit_kalman
from worldmodel.dynamics.linear import Excitation, fit_linear_dynamics
from worldmodel.dynamics.names import DynamicsName
from worldmodel.dynamics.states import Dynamics, Trajectories

FitDynamics: TypeAlias = Callable[[Trajectories, Trajectories], Dynamics]
"""Fits your own dynamics to training episodes; others are there to choose its settings on."""


def fit_named(
    dynamics: DynamicsName | FitDynamics, train: Trajectories, selection: Trajectories
) -> tuple[Dynamics, Excitation | None]:
    """Fit dynamics, and say how well the data determine linear ones; None where a direction was not excited.

    Args:
        dynamics: a name, or a function that fits your own.
        train: driven episodes.
        selection: others, on which the history is chosen.

    Raises:
        ValueError: there is no such name, or the data allow no such dynamics.
    """
    if callable(dynamics):
        return dynamics(train, selection), _excitation(train)
    if dynamics == "kalman":
        return fit_kalman(*train), _excitation(train)
    if dynamics not in get_args(DynamicsName):
        raise ValueError(f"unknown dynamics {dynamics!r}: take one of {', '.join(get_args(DynamicsName))}")
    linear = fit_linear_dynamics(*train, history=None, selection=selection)
    if dynamics == "linear":
        return linear, linear.excitation
    from worldmodel.dynamics.neural import fit_neural_dynamics  # the only one that needs torch

    return fit_neural_dynamics(*train, linear=linear), linear.excitation


def _excitation(train: Trajectories) -> Excitation | None:
    with suppress(ValueError):  # likelihood needs no excitation of every direction; whoever reads the report does
        return fit_linear_dynamics(*train, history=2).excitation
    return None
