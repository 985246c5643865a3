"""LQR: known gains, refused problems, optimal plans, equal values in other coordinates."""

import numpy as np
import pytest

from worldmodel.dynamics.linear import LinearGaussianDynamics
from worldmodel.dynamics.states import StateLayout
from worldmodel.planners.costs import QuadraticCost
from worldmodel.planners.holding import steady_state
from worldmodel.planners.lqr import LQR, ControlError, solve_dare
from worldmodel.planners.optimisers import Bounds

A, B = np.array([[1.0, 0.1], [0.0, 1.0]]), np.array([[0.005], [0.1]])
ONE = np.eye(1)


def joints(restoring: float = 0.0, history: int = 2) -> LinearGaussianDynamics:
    """Two damped joints, seen as two embeddings; ``restoring`` pulls them towards zero."""
    layout = StateLayout(history, 2, 2)
    A, B = layout.shift()
    damping, push = np.diag([0.85, 0.9]), np.array([[0.09, -0.02], [-0.03, 0.16]])
    A[:2, :2], A[:2, 2:4] = (1 - restoring) * np.eye(2) + damping, -damping
    A[:2, 2 * history : 2 * history + 2], B[:2] = 0.1 * push, push
    return LinearGaussianDynamics(A, B, np.zeros(len(A)), np.zeros_like(A), history, 2, 2)


def total_cost(model: LinearGaussianDynamics, s: np.ndarray, goal: np.ndarray, actions: np.ndarray) -> np.ndarray:
    total = np.zeros(len(s))
    for a in actions.swapaxes(0, 1):
        s = model.transition(s, a)
        total += ((s[:, :2] - goal) ** 2).sum(1) + 0.1 * (a**2).sum(1)
    return total


def test_the_double_integrator_has_its_known_gain_and_radius() -> None:
    solution = solve_dare(A, B, np.eye(2), 0.1 * ONE)
    assert np.allclose(solution.K, [[2.5857, 3.4434]], atol=5e-5)
    assert abs(solution.radius - 0.8992) < 5e-5
    assert solution.residual < 1e-12


def test_a_cost_that_does_not_see_a_lasting_mode_is_refused() -> None:
    with pytest.raises(ControlError, match=r"not detectable.*eigenvalue 1"):
        solve_dare(A, B, np.zeros((2, 2)), ONE)


def test_a_mode_that_no_action_reaches_is_refused() -> None:
    with pytest.raises(ControlError, match=r"not stabilisable.*eigenvalue 1\.2"):
        solve_dare(np.diag([0.5, 1.2]), np.array([[1.0], [0.0]]), np.eye(2), ONE)


def test_a_decaying_mode_may_be_unreachable_and_unseen() -> None:
    assert solve_dare(np.diag([0.5, 1.2]), np.array([[0.0], [1.0]]), np.diag([0.0, 1.0]), ONE).radius < 1


@pytest.mark.parametrize(
    ("Q", "R", "message"),
    [
        (np.array([[1.0, 0.5], [0.0, 1.0]]), ONE, "state weight is not symmetric"),
        (np.diag([1.0, -1.0]), ONE, "state weight is not positive semi-definite"),
        (np.eye(2), 0 * ONE, "action weight is not positive definite"),
        (np.eye(3), ONE, "state weight must be finite"),
        (np.eye(2), np.nan * ONE, "action weight must be finite"),
    ],
)
def test_weights_that_make_no_problem_are_refused(Q: np.ndarray, R: np.ndarray, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        solve_dare(A, B, Q, R)


@pytest.mark.parametrize("history", [2, 3])
def test_past_embeddings_and_actions_in_the_state_do_no_harm(history: int) -> None:
    model = joints(history=history)
    rng = np.random.default_rng(0)
    s, goal = model.rest(rng.normal(size=(8, 2))), rng.normal(size=(8, 2))
    planner = LQR(model)
    for _ in range(80):
        s = model.transition(s, planner.act(s, goal))
    assert np.abs(s[:, :2] - goal).max() < 1e-4


def test_a_long_horizon_starts_as_the_infinite_one() -> None:
    model = joints()
    s, goal = model.rest(np.array([[1.0, -0.5]])), np.array([[0.2, 0.4]])
    assert np.allclose(LQR(model, horizon=200).act(s, goal), LQR(model).act(s, goal))


def test_no_other_plan_is_cheaper() -> None:
    model = joints(restoring=0.05)
    rng = np.random.default_rng(0)
    s, goal = model.rest(rng.normal(size=(5, 2))), rng.normal(size=(5, 2))
    plan = LQR(model, horizon=12, hold="cost").plan(s, goal)
    cost = total_cost(model, s, goal, plan)
    for _ in range(50):
        assert np.all(total_cost(model, s, goal, plan + 1e-3 * rng.normal(size=plan.shape)) > cost)


def test_the_value_is_the_cost_that_acting_on_it_runs_up() -> None:
    model = joints()
    s, goal = model.rest(np.array([[1.0, -0.5]])), np.array([[0.2, 0.4]])
    planner = LQR(model)
    spent = ((s[:, :2] - goal) ** 2).sum(1) + total_cost(model, s, goal, planner.plan(s, goal, 300))
    assert np.allclose(planner.value(s, goal), spent)


def test_values_agree_in_rotated_and_in_skewed_coordinates() -> None:
    model, rng = joints(restoring=0.02), np.random.default_rng(0)
    s, goal = model.rest(rng.normal(size=(6, 2))), rng.normal(size=(6, 2))
    skewed = np.array([[1.5, 0.4], [-0.3, 0.8]])
    for Q in (np.linalg.qr(rng.normal(size=(2, 2)))[0], skewed):
        b = np.array([0.3, -1.0])
        learnt = LQR(model.transformed(Q, b), QuadraticCost().transformed(Q))
        value = learnt.value(model.rest(s[:, :2] @ Q.T + b), goal @ Q.T + b)
        assert np.allclose(value, LQR(model).value(s, goal))


def test_a_path_is_tracked_better_than_its_goal_alone() -> None:
    model = joints()
    s = model.rest(np.zeros((1, 2)))
    path = np.linspace(0, 1, 41)[None, :, None] * np.array([1.0, -0.6])
    planner, errors = LQR(model), []
    for t in range(60):
        s = model.transition(s, planner.act(s, path[:, min(t + 1, 40) :]))
        errors.append(np.abs(s[0, :2] - path[0, min(t + 1, 40)]).max())
    assert max(errors) < 0.1
    assert errors[-1] < 1e-3


def test_a_goal_of_rest_is_reached_though_the_model_drifts() -> None:
    world, model = joints(), joints(restoring=0.01)
    goal, missed = np.array([[1.0, -0.5]]), dict[str, float]()
    for planner in (LQR(model, hold="still"), LQR(model, hold="cost")):
        s = world.rest(np.zeros((1, 2)))
        for _ in range(150):
            s = world.transition(s, planner.act(s, goal))
        missed[planner.hold] = np.abs(s[:, :2] - goal).max()
    assert missed["still"] < 1e-4 < 1e-2 < missed["cost"]


def test_a_goal_that_takes_an_action_is_held_by_it() -> None:
    model = joints(restoring=0.05)
    goal = np.array([[1.0, -0.5]])
    s, a = steady_state(model, goal)
    assert np.allclose(model.transition(s, a), s)
    assert np.allclose(s[:, :2], goal, atol=1e-6)
    s, planner = model.rest(np.zeros((1, 2))), LQR(model, hold="action")
    for _ in range(150):
        s = model.transition(s, planner.act(s, goal))
    assert np.allclose(s[:, :2], goal, atol=1e-4)


def test_actions_stay_in_their_bounds() -> None:
    model = joints()
    s, goal = model.rest(np.array([[5.0, -5.0]])), np.zeros((1, 2))
    planner = LQR(model, bounds=Bounds.of([-0.5, -0.2], [0.5, 0.3]))
    assert np.array_equal(planner.act(s, goal), [[-0.5, 0.3]])


def test_an_infinite_horizon_has_no_final_distance() -> None:
    with pytest.raises(ValueError, match="no final step"):
        LQR(joints(), QuadraticCost(distance="final"))
