"""Errors without feedback: the same windows for every model, whatever estimates its state."""

import numpy as np
import pytest

from worldmodel.dynamics.forecast import open_loop
from worldmodel.dynamics.kalman import KalmanFilter, fit_kalman
from worldmodel.dynamics.linear import fit_linear_dynamics
from worldmodel.dynamics.states import Trajectories


def moving(lengths: list[int], seed: int = 0) -> Trajectories:
    """A damped mass in one dimension, pushed at random from rest, without noise."""
    rng, h, actions = np.random.default_rng(seed), [], []
    for length in lengths:
        x, v = rng.normal(), 0.0
        for t in range(length):
            h.append([x])
            if t < length - 1:
                a = rng.normal()
                actions.append([a])
                x, v = x + v + 0.1 * a, 0.8 * v + 0.2 * a
    return Trajectories(np.array(h), np.array(actions), np.cumsum([0, *lengths]))


def test_a_filter_and_a_history_predict_the_same_windows_exactly() -> None:
    train, heldout = moving([30] * 20), moving([30, 9, 12], seed=1)
    for model in (fit_linear_dynamics(*train, history=2, ridge=0.0), fit_kalman(*train)):
        forecast = open_loop(model, *heldout, steps=(1, 5))
        assert forecast.windows == (30 - 8) + (9 - 8) + (12 - 8)
        assert np.all(forecast.error < 1e-3 * forecast.holding_still) and np.all(forecast.r2 > 0.999)


def test_it_never_looks_beyond_an_episode() -> None:
    still = KalmanFilter(np.array([[1, 1], [0, 0.5]]), np.zeros((2, 1)), np.zeros(2), 1e-6 * np.eye(2), np.eye(1))
    h = np.concatenate([np.zeros((10, 1)), 100 * np.ones((10, 1))])
    forecast = open_loop(still, h, np.zeros((18, 1)), np.array([0, 10, 20]), steps=(5,))
    assert forecast.holding_still[0] == 0 and forecast.error[0] < 1e-6


def test_episodes_that_are_too_short_are_named() -> None:
    model = fit_linear_dynamics(*moving([30] * 5), history=1)
    with pytest.raises(ValueError, match="no episode has the 24 frames"):
        open_loop(model, *moving([20]), steps=(20,))
