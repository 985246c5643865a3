import numpy as np
import pytest

from worldmodel.dynamics.linear import LinearGaussianDynamics
from worldmodel.dynamics.world_model import Eye, WorldModel
from worldmodel.envs.goals import GoalTasks
from worldmodel.planners.costs import QuadraticCost
from worldmodel.planners.value import value_equivalence


def world(Q: np.ndarray) -> WorldModel:
    """A double integrator of two latents, seen through h = Q z."""
    A = np.block(
        [[1.8 * np.eye(2), -0.8 * np.eye(2), 0.1 * np.eye(2)], [np.eye(2), np.zeros((2, 4))], [np.zeros((2, 6))]]
    )
    B = np.vstack([0.2 * np.eye(2), np.zeros((2, 2)), np.eye(2)])
    model = LinearGaussianDynamics(A, B, np.zeros(6), np.zeros((6, 6)), 2, 2, 2).transformed(Q)
    return WorldModel(Eye(lambda z: z @ Q.T), model, "latents")


@pytest.mark.parametrize("scale, ratio", [(1.0, 1.0), (2.0, 4.0)], ids=["rotation", "not orthogonal"])
def test_a_rotated_world_has_the_same_values_and_a_stretched_one_has_not(scale: float, ratio: float) -> None:
    rng = np.random.default_rng(0)
    start, goal = rng.standard_normal((2, 50, 2))
    tasks = GoalTasks(start, goal, 0)
    Q = scale * np.array([[0.6, -0.8], [0.8, 0.6]])
    cost = QuadraticCost(action_weight=0.1)
    seen = value_equivalence(world(Q), world(np.eye(2)), tasks, (start, goal), cost)
    if scale == 1:
        assert seen.ratio.mean == pytest.approx(1, abs=1e-9) and seen.r2 == pytest.approx(1)
    else:
        assert 2 < seen.ratio.mean < ratio and seen.r2 < 0
