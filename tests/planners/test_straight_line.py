import numpy as np
import pytest

from worldmodel.planners.straight_line import StraightLine


def ends(n: int = 50, m: int = 3) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return rng.standard_normal((n, m)), rng.standard_normal((n, m))


def test_its_effort_is_the_squared_distance_over_the_steps() -> None:
    start, goal = ends()
    steps = np.diff(StraightLine(7).plan(start, goal), axis=1)
    np.testing.assert_allclose((steps**2).sum((1, 2)), ((goal - start) ** 2).sum(1) / 7)


def test_no_other_path_with_these_ends_has_less_effort() -> None:
    path = StraightLine(7).plan(*ends())
    other = path.copy()
    other[:, 1:-1] += 0.1 * np.random.default_rng(1).standard_normal(other[:, 1:-1].shape)
    assert ((np.diff(other, axis=1) ** 2).sum((1, 2)) > (np.diff(path, axis=1) ** 2).sum((1, 2))).all()


def test_planning_commutes_with_rotation() -> None:
    start, goal = ends()
    q = np.linalg.qr(np.random.default_rng(2).standard_normal((3, 3)))[0]
    np.testing.assert_allclose(StraightLine(5).plan(start @ q, goal @ q), StraightLine(5).plan(start, goal) @ q)


def test_a_batch_gives_the_plans_of_single_tasks() -> None:
    start, goal = ends()
    whole = StraightLine(5).plan(start, goal)
    for index in (0, 17):
        one = slice(index, index + 1)
        np.testing.assert_array_equal(StraightLine(5).plan(start[one], goal[one]), whole[one])


def test_ends_that_do_not_pair_are_refused() -> None:
    start, goal = ends()
    for wrong in (goal[:1], goal[0], goal[:, :2]):
        with pytest.raises(ValueError, match="shape"):
            StraightLine(5).plan(start, wrong)


def test_a_plan_has_a_step() -> None:
    with pytest.raises(ValueError, match="at least 1"):
        StraightLine(0)
