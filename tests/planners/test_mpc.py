"""MPC: agrees with Riccati, plans batches like singles, forgets on reset, controls any transition with any cost."""

from typing import Any

import numpy as np
import pytest

from worldmodel.dynamics.linear import LinearGaussianDynamics
from worldmodel.dynamics.states import StateLayout
from worldmodel.planners.costs import QuadraticCost
from worldmodel.planners.lqr import LQR
from worldmodel.planners.mpc import MPC, MPCOptions
from worldmodel.planners.optimisers import CEM, ICEM, MPPI, QP, Bounds, Gradient, Optimiser

WIDE, NARROW = Bounds.of([-8.0, -8.0], [8.0, 8.0]), Bounds.of([-1.0, -0.5], [1.0, 0.7])
OPTIMISERS: list[Optimiser] = [QP(), CEM(), ICEM(), MPPI(), Gradient()]


def name(optimiser: Optimiser) -> str:
    return type(optimiser).__name__


def joints() -> LinearGaussianDynamics:
    layout = StateLayout(2, 2, 2)
    A, B = layout.shift()
    damping, push = np.diag([0.85, 0.9]), np.array([[0.09, -0.02], [-0.03, 0.16]])
    A[:2, :2], A[:2, 2:4], A[:2, 4:6], B[:2] = np.eye(2) + damping, -damping, 0.1 * push, push
    return LinearGaussianDynamics(A, B, 0.01 * np.eye(6)[0], np.zeros((6, 6)), 2, 2, 2)


MODEL = joints()


def tasks(number: int = 5) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return MODEL.rest(rng.normal(size=(number, 2))), rng.normal(size=(number, 2))


@pytest.mark.parametrize(
    "optimiser",
    [
        QP(),
        CEM(samples=500, iterations=30),
        ICEM(samples=500, iterations=60, elites=30, beta=0.25, decay=1.0),
        MPPI(samples=500, iterations=30),
        Gradient(iterations=300),
    ],
    ids=name,
)
def test_an_unconstrained_plan_is_that_of_riccati(optimiser: Optimiser) -> None:
    s, goal = tasks()
    planner = MPC(MODEL, QuadraticCost(), WIDE, optimiser, MPCOptions(horizon=8, hold="cost"))
    for _ in range(1 if isinstance(optimiser, QP) else 4):
        plan = planner.plan(s, goal, executed=0)  # from the last plan, with the spread anew
    riccati = LQR(MODEL, horizon=8, hold="cost").plan(s, goal)
    assert np.abs(riccati).max() < 8.0
    assert np.allclose(plan, riccati, atol=1e-9 if isinstance(optimiser, QP) else 0.03)


@pytest.mark.parametrize("cost", [QuadraticCost(), QuadraticCost([2.0, 1.0], 0.3, "final", 5.0)])  # type: ignore[arg-type]
def test_the_condensed_cost_is_the_rolled_out_one(cost: QuadraticCost) -> None:
    s, goal = tasks()
    plans = np.random.default_rng(0).uniform(-1, 1, size=(5, 7, 10, 2))
    options = MPCOptions(hold="cost")
    condensed, rolled = (
        MPC(model, cost, NARROW, options=options)._problem(s, goal) for model in (MODEL, MODEL.transition)
    )
    assert np.allclose(condensed.cost(plans), rolled.cost(plans))


@pytest.mark.parametrize("optimiser", OPTIMISERS, ids=name)
def test_batches_get_the_plans_of_singles(optimiser: Optimiser) -> None:
    s, goal = tasks(11)
    together = MPC(MODEL, QuadraticCost(), NARROW, optimiser)
    single = MPC(MODEL, QuadraticCost(), NARROW, optimiser)
    for _ in range(2):
        plans = together.plan(s, goal)
        for i in range(len(s)):
            alone = single.plan(s[i : i + 1], goal[i : i + 1], environments=[i])
            assert np.allclose(alone[0], plans[i], atol=1e-9)


@pytest.mark.parametrize("optimiser", OPTIMISERS, ids=name)
def test_the_same_seed_gives_the_same_plan_and_reset_forgets(optimiser: Optimiser) -> None:
    s, goal = tasks()
    planner = MPC(MODEL, QuadraticCost(), NARROW, optimiser, seed=3)
    first = planner.plan(s, goal)
    planner.plan(s, goal)
    planner.reset([1])
    again = planner.plan(s, goal)
    assert np.array_equal(again[1], first[1])
    planner.reset()
    assert np.array_equal(planner.plan(s, goal), first)


def test_environments_search_with_noise_of_their_own() -> None:
    s, goal = (np.repeat(array[:1], 2, axis=0) for array in tasks())
    plans = MPC(MODEL, QuadraticCost(), NARROW, CEM(iterations=1)).plan(s, goal)
    assert not np.allclose(plans[0], plans[1])


def test_a_warm_start_continues_the_plan() -> None:
    s, goal = tasks()
    planner = MPC(MODEL, QuadraticCost(), NARROW, Gradient(iterations=1, lr=1e-12))
    planner._plans = {i: planner._start(i, 1) for i in range(5)}
    exact = MPC(MODEL, QuadraticCost(), NARROW, QP())
    plan = exact.plan(s, goal)
    planner._plans = dict(exact._plans)
    assert np.allclose(planner.plan(s, goal, executed=2)[:, :-2], plan[:, 2:], atol=1e-6)


@pytest.mark.parametrize("optimiser", OPTIMISERS, ids=name)
def test_the_goal_is_reached_at_nearly_the_optimal_cost_within_bounds(optimiser: Optimiser) -> None:
    s, goal = tasks(16)
    exact, total = np.zeros(16), np.zeros(16)
    for planner, spent in (
        (MPC(MODEL, QuadraticCost(), NARROW, QP()), exact),
        (MPC(MODEL, QuadraticCost(), NARROW, optimiser), total),
    ):
        now = s
        for _ in range(40):
            a = planner.act(now, goal)
            assert np.all((NARROW.low <= a) & (a <= NARROW.high))
            now = now @ MODEL.A.T + a @ MODEL.B.T  # rests everywhere, though the model has a bias
            spent += ((now[:, :2] - goal) ** 2).sum(1) + 0.1 * (a**2).sum(1)
        assert np.abs(now[:, :2] - goal).max() < 0.1
    assert (total / exact).mean() < 1.1


def pendulum(s: Any, a: Any) -> Any:
    """Angle, its past, and the past action: gravity and a weak motor; NumPy or torch."""
    angle, before = s[..., 0:1], s[..., 1:2]
    sine = np.sin(angle) if isinstance(angle, np.ndarray) else angle.sin()
    return StateLayout(2, 1, 1).step(s, a, 2 * angle - before - 0.02 * sine + 0.05 * a)


@pytest.mark.parametrize("optimiser", [CEM(), ICEM(), MPPI(), Gradient(iterations=20, lr=0.3)], ids=name)
def test_any_transition_and_any_cost_can_be_planned_with(optimiser: Optimiser) -> None:
    def height(states: Any, actions: Any, references: Any) -> Any:
        return ((states[..., :1] - references) ** 2).sum((-1, -2)) + 0.01 * (actions**2).sum((-1, -2))

    planner = MPC(pendulum, height, Bounds.of([-1.0], [1.0]), optimiser)
    s, goal = StateLayout(2, 1, 1).start(np.zeros((2, 1))), np.array([[1.0], [-0.5]])
    for _ in range(30):
        s = pendulum(s, planner.act(s, goal))
    assert np.abs(s[:, :1] - goal).max() < 0.1


def test_a_transition_that_diverges_gives_a_finite_plan() -> None:
    def explode(s: Any, a: Any) -> Any:
        return s * 1e200 * (1 + a[..., :1])

    with np.errstate(all="ignore"):
        plan = MPC(explode, QuadraticCost(), NARROW, CEM(iterations=2)).plan(*tasks())
    assert np.isfinite(plan).all()


def test_what_cannot_be_planned_is_refused() -> None:
    s, goal = tasks()
    planner = MPC(MODEL, QuadraticCost(), NARROW)
    with pytest.raises(ValueError, match="must be finite"):
        planner.plan(s * np.nan, goal)
    with pytest.raises(ValueError, match="must be as many"):
        planner.plan(s, goal[:2])
    with pytest.raises(ValueError, match="needs a linear model"):
        MPC(MODEL.transition, QuadraticCost(), NARROW, options=MPCOptions(hold="still"))
    with pytest.raises(ValueError, match="horizon 0"):
        MPCOptions(horizon=0)
