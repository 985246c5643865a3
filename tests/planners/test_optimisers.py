"""Optimisers: they find known optima, stay in bounds, and survive costs that are constant, huge or not finite."""

from collections.abc import Sequence

import numpy as np
import osqp
import pytest
import scipy.sparse
from scipy.optimize import minimize

from worldmodel.planners.costs import CondensedCost
from worldmodel.planners.optimisers import CEM, ICEM, MPPI, QP, Bounds, Gradient, Optimiser, Problem, Solution
from worldmodel.planners.optimisers.mppi import path_weights
from worldmodel.planners.optimisers.qp import active_set
from worldmodel.planners.optimisers.sampling import noise_table, updated

SAMPLING = [CEM(samples=60, iterations=4), ICEM(samples=60, iterations=4), MPPI(samples=60, iterations=4)]
ALL: list[Optimiser] = [*SAMPLING, Gradient(iterations=20), QP()]


def quadratic(environments: int = 3, horizon: int = 4, scale: float = 1.0) -> CondensedCost:
    rng = np.random.default_rng(0)
    root = rng.normal(size=(2 * horizon, 2 * horizon))
    H = root @ root.T / (2 * horizon) + 0.3 * np.eye(2 * horizon)
    return CondensedCost(H, scale * rng.normal(size=(environments, 2 * horizon)), np.zeros(environments))


def name(optimiser: Optimiser) -> str:
    return type(optimiser).__name__


def solve(optimiser: Optimiser, problem: Problem, environments: int = 3, horizon: int = 4) -> np.ndarray:
    start = Solution.of(np.zeros((environments, horizon, 2)))
    return optimiser.solve(problem, start, [np.random.default_rng(i) for i in range(environments)]).u


class Watched:
    """A quadratic cost that keeps what it was asked about, and may answer something else."""

    def __init__(self, problem: CondensedCost, answer: float | None = None, offset: float = 0.0) -> None:
        self.problem, self.answer, self.offset = problem, answer, offset
        self.asked: list[np.ndarray] = []

    def cost(self, u: np.ndarray) -> np.ndarray:
        self.asked.append(u.copy())
        return self.problem.cost(u) + self.offset if self.answer is None else np.full(u.shape[:2], self.answer)

    def torch_cost(self, u):  # type: ignore[no-untyped-def]
        return self.problem.torch_cost(u) * (1.0 if self.answer is None else self.answer) + self.offset

    def rows(self, chosen: np.ndarray) -> "Watched":
        return Watched(self.problem.rows(chosen), self.answer, self.offset)


@pytest.mark.parametrize("scale", [0.1, 3.0])
def test_the_exact_optimum_is_that_of_a_reference_solver(scale: float) -> None:
    problem = quadratic(scale=scale)
    plans = solve(QP(), problem).reshape(3, -1)
    for plan, f in zip(plans, problem.linear, strict=True):
        reference = minimize(
            lambda u, f=f: (u @ problem.hessian @ u + 2 * f @ u, 2 * problem.hessian @ u + 2 * f),
            np.zeros(8),
            jac=True,
            bounds=[(-1, 1)] * 8,
            options={"ftol": 1e-15, "gtol": 1e-10},
        )
        assert np.allclose(plan, reference.x, atol=1e-6)
        assert np.allclose(active_set(problem.hessian, f), reference.x, atol=1e-6)


def test_the_exact_optimum_is_that_of_osqp_where_many_bounds_are_active() -> None:
    problem = quadratic(environments=20, horizon=10, scale=4.0)
    plans, n = solve(QP(), problem, 20, 10).reshape(20, -1), 20
    assert 0.2 < (np.abs(plans) == 1).mean() < 0.9
    solver = osqp.OSQP()
    upper, box = scipy.sparse.csc_matrix(np.triu(2 * problem.hessian)), scipy.sparse.identity(n, format="csc")
    solver.setup(upper, np.zeros(n), box, -np.ones(n), np.ones(n), eps_abs=1e-9, eps_rel=1e-9, verbose=False)
    for plan, f in zip(plans, problem.linear, strict=True):
        solver.update(q=2 * f)
        assert np.allclose(plan, solver.solve().x, atol=1e-6)


def test_guesses_that_do_not_settle_are_replaced_by_an_exact_method() -> None:
    problem = quadratic(scale=3.0)
    assert np.allclose(solve(QP(max_iterations=1), problem), solve(QP(), problem), atol=1e-8)


@pytest.mark.parametrize("scale", [0.1, 3.0])
@pytest.mark.parametrize("optimiser", [CEM(), ICEM(), MPPI(), Gradient()], ids=name)
def test_every_search_finds_the_exact_optimum(optimiser: Optimiser, scale: float) -> None:
    problem, rngs = quadratic(scale=scale), [np.random.default_rng(i) for i in range(3)]
    found = Solution.of(np.zeros((3, 4, 2)))
    for _ in range(12):
        found = optimiser.solve(problem, found, rngs)  # from the last plan, with the spread anew
    cost, least = problem.cost(found.u[:, None]), problem.cost(solve(QP(), problem)[:, None])
    assert np.all(cost - least <= 1e-3 * np.abs(least))


@pytest.mark.parametrize("optimiser", ALL[:-1], ids=name)
def test_every_candidate_that_is_costed_lies_in_the_unit_box(optimiser: Optimiser) -> None:
    watched = Watched(quadratic(scale=3.0))
    solve(optimiser, watched)
    assert watched.asked
    assert all(np.abs(u).max() <= 1.0 for u in watched.asked)


@pytest.mark.parametrize("optimiser", SAMPLING, ids=name)
def test_a_huge_constant_on_all_costs_changes_nothing(optimiser: Optimiser) -> None:
    problem = quadratic()
    assert np.allclose(solve(optimiser, problem), solve(optimiser, Watched(problem, offset=1e8)), atol=1e-5)


@pytest.mark.parametrize("optimiser", ALL[:-1], ids=name)
@pytest.mark.parametrize("answer", [np.nan, np.inf, 7.0])
def test_costs_that_say_nothing_give_a_finite_plan(optimiser: Optimiser, answer: float) -> None:
    plan = solve(optimiser, Watched(quadratic(), answer=answer))
    assert np.isfinite(plan).all()
    if not np.isfinite(answer):
        assert np.array_equal(plan, np.zeros_like(plan))


def test_constant_costs_weigh_uniformly_and_infinite_ones_nothing() -> None:
    assert np.allclose(path_weights(np.zeros((2, 5)), 0.1), 0.2)
    assert np.allclose(path_weights(np.array([[0.0, np.inf, 0.0]]), 0.1), [[0.5, 0.0, 0.5]])
    assert np.array_equal(path_weights(np.full((1, 3), np.inf), 0.1), np.zeros((1, 3)))


def test_candidates_that_failed_move_nothing() -> None:
    mean, std, u = np.zeros((1, 2)), np.ones((1, 2)), np.array([[[1.0, 1.0], [3.0, 3.0], [100.0, -100.0]]])
    moved = updated(mean, std, u, np.array([[1.0, 1.0, 0.0]]), momentum=0.0, floor=0.1)
    assert np.allclose(moved[0], 2.0)
    assert np.allclose(moved[1], 1.0)
    stayed = updated(mean, std, u, np.zeros((1, 3)), momentum=0.0, floor=0.1)
    assert np.array_equal(stayed[0], mean)
    assert np.array_equal(stayed[1], std)


def test_the_spread_has_a_floor() -> None:
    same = np.zeros((1, 4, 2))
    assert np.array_equal(updated(same[:, 0], same[:, 0], same, np.ones((1, 4)), 0.0, 0.05)[1], [[0.05, 0.05]])


@pytest.mark.parametrize("optimiser", [*SAMPLING, Gradient(iterations=20)], ids=name)
def test_a_plan_never_gets_worse_than_what_it_started_from(optimiser: Optimiser) -> None:
    problem = quadratic(scale=3.0)
    best = solve(QP(), problem)
    found = optimiser.solve(problem, Solution.of(best), [np.random.default_rng(i) for i in range(3)]).u
    assert np.all(problem.cost(found[:, None]) <= problem.cost(best[:, None]) + 1e-9)


def test_coloured_noise_is_unit_and_smooth() -> None:
    white, red = (noise_table(20, 2, beta).reshape(-1, 20, 2) for beta in (0.0, 2.0))
    for table in (white, red):
        assert np.allclose(table.std(axis=0), 1.0)
    neighbours = [float((table[:, 1:] * table[:, :-1]).mean()) for table in (white, red)]
    assert abs(neighbours[0]) < 0.02 < 0.7 < neighbours[1]


def test_shifting_drops_what_was_executed_and_repeats_the_last_action() -> None:
    plan = np.arange(5.0)[None, :, None]
    left = Solution(plan, plan[:, None]).shifted(2)
    assert left.u[0, :, 0].tolist() == [2, 3, 4, 4, 4]
    assert left.elites[0, 0, :, 0].tolist() == [2, 3, 4, 4, 4]


def test_units_are_those_of_the_action_space() -> None:
    bounds = Bounds.of([-2.0, 0.0], [2.0, 10.0])
    assert np.array_equal(bounds.actions(np.array([[1.0, -1.0], [0.0, 0.0]])), [[2.0, 0.0], [0.0, 5.0]])
    assert np.array_equal(bounds.unit(np.array([[2.0, 0.0], [9.0, 5.0]])), [[1.0, -1.0], [1.0, 0.0]])


@pytest.mark.parametrize(("low", "high"), [([-np.inf], [1.0]), ([1.0], [1.0]), ([0.0], [1.0, 2.0])])
def test_bounds_that_bound_nothing_are_refused(low: Sequence[float], high: Sequence[float]) -> None:
    with pytest.raises(ValueError, match="finite with low < high"):
        Bounds.of(low, high)


def test_options_that_make_no_search_are_refused() -> None:
    with pytest.raises(ValueError, match="elites"):
        CEM(samples=1)
    with pytest.raises(ValueError, match="temperature"):
        MPPI(temperature=0.0)
    with pytest.raises(TypeError, match="linear model and a quadratic cost"):
        solve(QP(), Watched(quadratic()))
