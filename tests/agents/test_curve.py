"""Learning curves."""

import numpy as np

from worldmodel.agents.curve import LearningCurve, return_at


def test_a_return_is_that_of_the_last_evaluation_until_then() -> None:
    quick = LearningCurve(np.array([10, 20, 30]), np.array([1, 2, 3]), np.array([[1.0], [5.0], [3.0]]))
    slow = LearningCurve(np.array([10, 20]), np.array([4, 8]), np.array([[2.0], [6.0]]))
    assert [return_at(c, steps=20) for c in (quick, slow)] == [5.0, 6.0]
    assert [return_at(c, seconds=3) for c in (quick, slow)] == [3.0, None]  # slow is not evaluated before 4
    assert [return_at(c, seconds=8) for c in (quick, slow)] == [3.0, 6.0]
