"""Kalman filter: estimates that are as good as they say, from a model that the data alone gave."""

import numpy as np
import pytest

from worldmodel.dynamics.kalman import KalmanFilter, fit_kalman
from worldmodel.planners.lqr import LQR

PUSH = np.array([[0.09, -0.02], [-0.03, 0.16]])
A = np.block([[np.eye(2), np.eye(2)], [-0.02 * np.eye(2), np.diag([0.85, 0.9])]])
GUST = np.vstack([np.eye(2), np.eye(2)]) * 0.02
TRUE = KalmanFilter(A, np.vstack([PUSH, PUSH]), np.zeros(4), GUST @ GUST.T, 0.01 * np.eye(2))


def driven(seed: int, episodes: int = 40, steps: int = 60) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """States (E, T + 1, 4), noisy embeddings (E, T + 1, 2) and actions (E, T, 2)."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(episodes, 4)) * [1, 1, 0.2, 0.2]
    states, actions = [x], rng.normal(size=(episodes, steps, 2))
    for t in range(steps):
        x = TRUE.transition(x, actions[:, t]) + rng.normal(size=(episodes, 2)) @ GUST.T
        states.append(x)
    stacked = np.stack(states, axis=1)
    return stacked, stacked[..., :2] + 0.1 * rng.normal(size=(episodes, steps + 1, 2)), actions


def errors(kalman: KalmanFilter, seed: int = 1) -> np.ndarray:
    """Errors of the running estimate (E, T, 4) once it has settled."""
    states, h, actions = driven(seed)
    x, estimates = kalman.start(h[:, 0]), []
    for t in range(actions.shape[1]):
        x = kalman.step(x, actions[:, t], h[:, t + 1])
        estimates.append(x)
    return (np.stack(estimates, axis=1) - states[:, 1:])[:, 20:]


@pytest.fixture(scope="module")
def fitted() -> KalmanFilter:
    _, h, actions = driven(0)
    return fit_kalman(h.reshape(-1, 2), actions.reshape(-1, 2), np.arange(41) * 61)


def test_the_error_has_the_covariance_that_the_filter_states() -> None:
    error = errors(TRUE).reshape(-1, 4)
    covariance = TRUE.steady[1]
    assert np.allclose(error.T @ error / len(error), covariance, atol=0.1 * covariance.max())


def test_a_filter_fitted_to_embeddings_is_nearly_as_good_as_the_true_one(fitted: KalmanFilter) -> None:
    rms = [np.sqrt((errors(kalman) ** 2).mean(axis=(0, 1))) for kalman in (fitted, TRUE)]
    assert np.all(rms[0] < 1.2 * rms[1])
    assert np.all(rms[0][:2] < 0.075)  # the embeddings' own noise is 0.1
    assert np.allclose(np.diag(fitted.V), 0.01, rtol=0.3)


def test_the_time_varying_filter_settles_on_the_steady_one() -> None:
    _, h, actions = driven(2, episodes=3, steps=200)
    means, covariances = TRUE.filter(h, actions, np.zeros(4), np.eye(4))
    assert np.allclose(covariances[-1], TRUE.steady[1])
    x = means[:, 100]
    for t in range(100, 200):
        x = TRUE.step(x, actions[:, t], h[:, t + 1])
    assert np.allclose(x, means[:, 200])


def test_batches_are_filtered_like_singles() -> None:
    _, h, actions = driven(3, episodes=4, steps=10)
    together = TRUE.filter(h, actions, np.zeros(4), np.eye(4))[0]
    for i in range(4):
        assert np.allclose(TRUE.filter(h[i : i + 1], actions[i : i + 1], np.zeros(4), np.eye(4))[0][0], together[i])


def test_episodes_may_differ_in_length() -> None:
    _, h, actions = driven(0, episodes=20)
    lengths = np.where(np.arange(20) % 2, 61, 41)
    frames = np.concatenate([h[i, :length] for i, length in enumerate(lengths)])
    acted = np.concatenate([actions[i, : length - 1] for i, length in enumerate(lengths)])
    kalman = fit_kalman(frames, acted, np.concatenate([[0], np.cumsum(lengths)]), iterations=20)
    assert np.abs(kalman.B[2:] - PUSH).max() < 0.03


def test_a_planner_takes_the_filter_as_its_model(fitted: KalmanFilter) -> None:
    x, estimate, goal = np.zeros((1, 4)), fitted.start(np.zeros((1, 2))), np.array([[1.0, -0.5]])
    planner = LQR(fitted, hold="action")
    for _ in range(80):
        a = planner.act(estimate, goal)
        x = TRUE.transition(x, a)
        estimate = fitted.step(estimate, a, x[:, :2])
    assert np.abs(x[:, :2] - goal).max() < 0.05


def test_what_cannot_be_estimated_is_refused() -> None:
    with pytest.raises(ValueError, match="no steady state"):
        _ = KalmanFilter(np.diag([0.5, 2.0]), np.ones((2, 1)), np.zeros(2), np.eye(2), np.eye(1)).steady
    with pytest.raises(ValueError, match="too few"):
        fit_kalman(np.zeros((20, 2)), np.zeros((19, 2)), np.array([0, 20]))


def test_a_start_is_where_a_long_rest_settles(fitted: KalmanFilter) -> None:
    h = np.array([[0.7, -0.2]])
    x = fitted.start(h)
    np.testing.assert_allclose(fitted.step(x, np.zeros((1, 2)), h), x, atol=1e-9)
    np.testing.assert_allclose(fitted.rest(x[:, :2]), x, atol=1e-9)


def test_noise_free_data_are_followed_exactly() -> None:
    rng = np.random.default_rng(0)
    quiet, x, actions = [], rng.normal(size=(30, 4)) * [1, 1, 0, 0], rng.normal(size=(30, 20, 2))
    for t in range(21):
        quiet.append(x[:, :2])
        x = TRUE.transition(x, actions[:, min(t, 19)])
    h = np.stack(quiet, axis=1)
    kalman = fit_kalman(h.reshape(-1, 2), actions.reshape(-1, 2), np.arange(31) * 21)
    np.testing.assert_allclose(kalman.A, TRUE.A, atol=1e-3)
    np.testing.assert_allclose(kalman.B, TRUE.B, atol=1e-3)


def test_rotated_embeddings_give_the_rotated_filter(fitted: KalmanFilter) -> None:
    Q = np.array([[0.6, -0.8], [0.8, 0.6]])
    _, h, actions = driven(0)
    turned = fit_kalman((h @ Q.T).reshape(-1, 2), actions.reshape(-1, 2), np.arange(41) * 61)
    expected = fitted.transformed(Q)
    np.testing.assert_allclose(turned.A, expected.A, atol=1e-4)
    np.testing.assert_allclose(turned.B, expected.B, atol=1e-4)
    np.testing.assert_allclose(turned.V, expected.V, atol=1e-4)


@pytest.mark.parametrize("scale", [1e-7, 1e7])
def test_the_unit_of_embeddings_changes_no_gain(scale: float) -> None:
    np.testing.assert_allclose(TRUE.transformed(scale * np.eye(2)).steady[0], TRUE.steady[0], rtol=1e-6)
