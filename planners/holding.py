"""What holds the goal: nothing, a constant action, or only what the cost allows."""

from typing import Literal

import numpy as np

from worldmodel.dynamics.states import LinearModel

Hold = Literal["still", "action", "cost"]
"""How the goal is held.

``still``: the goal is a pose of rest, and stays without action. A fitted model drifts a little at every pose; the drift
at the goal is taken out, or it would be fought with an action that the world does not need.
``action``: the model's own constant action holds the goal, and only actions beyond it cost.
``cost``: as the model and the cost say; a goal that takes an action to hold is missed by what that action costs.
"""


def hold_terms(model: LinearModel, goal: np.ndarray, hold: Hold) -> tuple[np.ndarray, np.ndarray]:
    """Return the bias c (B, S) of the model and the action (B, a) that is free of cost, for goals (B, m)."""
    bias = np.broadcast_to(model.bias, (len(goal), len(model.A)))
    nothing = np.zeros((len(goal), model.B.shape[1]))
    if hold == "still":
        s = model.rest(goal)
        return s - s @ model.A.T, nothing
    if hold == "action":
        return bias, steady_state(model, goal)[1]
    return bias, nothing


def steady_state(model: LinearModel, goal: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the state (B, S) and constant action (B, a) of the model that rest nearest to goals (B, m).

    Least squares: of the rests s = A s + B a + c those with the least ‖h - goal‖, and of these the least action.
    """
    size, actions = model.B.shape
    still = np.hstack([np.eye(size) - model.A, -model.B])  # still @ (s, a) = c
    _, sigma, Vt = np.linalg.svd(still)
    free = Vt[int((sigma > 1e-10 * sigma[0]).sum()) :].T  # directions in which rests differ
    one = np.linalg.lstsq(still, model.bias, rcond=1e-10)[0]
    tiny = 1e-6  # a trace of action weight decides between rests that are as near
    away = np.vstack([free[: model.dim], tiny * free[size:]])
    short = np.hstack([goal - one[: model.dim], np.broadcast_to(-tiny * one[size:], (len(goal), actions))])
    rest = one + (free @ np.linalg.lstsq(away, short.T, rcond=1e-12)[0]).T
    return rest[:, :size], rest[:, size:]
