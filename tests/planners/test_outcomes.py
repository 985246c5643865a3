import numpy as np
import pytest

from worldmodel.envs import SuiteEnv
from worldmodel.envs.goals import sample_tasks
from worldmodel.planners.decoders import linear_decoder
from worldmodel.planners.outcomes import effort, judge_path, quadratic_cost
from worldmodel.planners.straight_line import StraightLine

SPEC = SuiteEnv("reacher", "hard").latent_spec
TASKS = sample_tasks(SPEC, 40, np.random.default_rng(0))
LINE = StraightLine(10)
ORACLE = LINE.plan(TASKS.start, TASKS.goal)


def test_the_oracle_judged_against_itself_is_perfect() -> None:
    row = judge_path("line", "oracle", SPEC, TASKS, ORACLE, ORACLE, 0.1)
    assert row.success.mean == 1 and row.effort_ratio is not None and row.path_rms is not None
    assert (row.effort_ratio.mean, row.cost_ratio.mean, row.path_rms.mean) == (1, 1, 0)
    assert row.equivalence is not None and row.equivalence.equivalent


def test_an_orthogonal_embedding_plans_as_the_oracle_does() -> None:
    q = np.array([[0.6, -0.8], [0.8, 0.6]])
    z = np.random.default_rng(1).standard_normal((500, 2))
    decode = linear_decoder(z @ q.T + 1, z)
    path = decode(LINE.plan(TASKS.start @ q.T + 1, TASKS.goal @ q.T + 1))
    np.testing.assert_allclose(path, ORACLE, atol=1e-9)


def test_a_detour_costs_effort() -> None:
    detour = ORACLE.copy()
    detour[:, 5] += 0.2
    row = judge_path("line", "embedding", SPEC, TASKS, detour, ORACLE, 0.1)
    assert row.effort_ratio is not None and row.effort_ratio.low > 1 and row.success.mean == 1


def test_ends_are_never_replaced_by_the_truth() -> None:
    row = judge_path("line", "embedding", SPEC, TASKS, ORACLE + 0.1 / SPEC.scales, ORACLE, 0.1)
    assert row.success.mean == 0
    assert row.path_rms is not None and row.path_rms.mean == pytest.approx(0.1 * np.sqrt(2))


def test_effort_is_in_radians() -> None:
    path = np.array([[[0.0, 0.0], [1 / SPEC.scales[0], 0.0]]])
    np.testing.assert_allclose(effort(SPEC, path), [1.0])


def test_the_quadratic_cost_of_standing_at_the_goal_is_zero() -> None:
    goal = TASKS.goal
    np.testing.assert_allclose(quadratic_cost(np.repeat(goal[:, None], 5, axis=1), goal), 0)


def test_an_effort_below_the_oracles_means_other_ends() -> None:
    short = LINE.plan(TASKS.start, TASKS.start + 0.9 * (TASKS.goal - TASKS.start))
    row = judge_path("line", "embedding", SPEC, TASKS, short, ORACLE, 0.1)
    assert row.effort_ratio is not None and row.effort_ratio.mean == pytest.approx(0.81)
    assert row.equivalence is not None and not row.equivalence.equivalent


def test_a_pose_a_full_turn_away_is_no_distance_away() -> None:
    turned = ORACLE + np.array([2 * np.pi, 0.0]) / SPEC.scales
    row = judge_path("line", "embedding", SPEC, TASKS, turned, ORACLE, 0.1)
    assert row.success.mean == 1 and row.path_rms is not None and row.goal_error is not None
    assert row.path_rms.mean == pytest.approx(0, abs=1e-9) and row.goal_error.mean == pytest.approx(0, abs=1e-9)


def test_paths_that_do_not_fit_the_tasks_are_refused() -> None:
    for wrong in (ORACLE[1:], ORACLE[:, 1:], np.full_like(ORACLE, np.nan)):
        with pytest.raises(ValueError, match="40 tasks need finite paths"):
            judge_path("line", "embedding", SPEC, TASKS, wrong, ORACLE, 0.1)


def test_a_row_has_the_keys_that_its_readers_expect() -> None:
    row = judge_path("line", "embedding", SPEC, TASKS, ORACLE, ORACLE, 0.1).to_json()
    assert {"planner", "state", "execution", "tasks", "success", "cost", "cost_ratio", "plan_ms"} <= set(row)
    assert set(row["effort_ratio"]) == set(row["path_rms"]) == {"mean", "ci95"}
