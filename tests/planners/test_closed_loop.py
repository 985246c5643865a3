"""Planners drive the real simulator: on the true state they solve the tasks, and batches change nothing."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from worldmodel.agents import ActionOU, collect
from worldmodel.data.episodes import Episodes
from worldmodel.dynamics.linear import LinearGaussianDynamics
from worldmodel.dynamics.neural import NeuralDynamics
from worldmodel.dynamics.world_model import WorldModel
from worldmodel.encoders.encoder import Encoder
from worldmodel.envs import SuiteEnv
from worldmodel.envs.control_tasks import control_goals, control_setting
from worldmodel.envs.pixels import frames_at
from worldmodel.planners.catalogue import ControlOptions, planner_policy
from worldmodel.planners.closed_loop import control_cost, evaluate, judge
from worldmodel.planners.driving import Driven, UniformPolicy, drive, drive_in_parallel
from worldmodel.planners.mpc import MPCOptions
from worldmodel.planners.names import PLANNERS, PlannerName
from worldmodel.planners.oracle import fit_worlds, oracle_world, true_trajectories
from worldmodel.utils.workers import dismiss

TASKS = 10


@pytest.fixture(scope="module")
def env() -> SuiteEnv:
    return SuiteEnv("reacher", "hard", frame_skip=2)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Episodes:
    folder = tmp_path_factory.mktemp("driven") / "data"
    return collect("reacher", ActionOU(), 2_000, folder, within=2.5, frame_skip=2, height=16, width=16, progress=False)


@pytest.fixture(scope="module")
def oracle(env: SuiteEnv, data: Episodes) -> WorldModel:
    return oracle_world(env.latent_spec, true_trajectories(data.train), true_trajectories(data.selection), "linear")


def test_lqr_on_the_true_state_solves_every_task_at_less_cost_than_chance(env: SuiteEnv, oracle: WorldModel) -> None:
    tasks = control_goals(env.latent_spec, TASKS, np.random.default_rng(0))
    result = evaluate(env, ["lqr"], oracle, oracle, tasks, control_setting(env.latent_spec), progress=False)
    embedding, twin, random = result.outcomes
    assert twin.success.mean == 1 and random.success.mean == 0
    assert embedding.cost_ratio.mean == 1  # the oracle handed in twice is its own twin
    assert random.cost_ratio.low > 3


@pytest.mark.parametrize("name", PLANNERS)
def test_every_planner_arrives_within_two_seconds(name: PlannerName, env: SuiteEnv, oracle: WorldModel) -> None:
    tasks = control_goals(env.latent_spec, 3, np.random.default_rng(1))
    options = ControlOptions(mpc=MPCOptions(horizon=8))
    run = drive(env, planner_policy(name, oracle, tasks.goal, 2, options), "latents", tasks.start, 50)
    away = np.abs(env.latent_spec.wrap(run.path[:, -1] - tasks.goal) * env.latent_spec.scales)
    assert away.max() < 0.05
    assert np.abs(run.actions).max() <= 1


def test_many_tasks_at_once_go_as_one_by_one(env: SuiteEnv, oracle: WorldModel) -> None:
    tasks = control_goals(env.latent_spec, 3, np.random.default_rng(2))
    together = drive(env, planner_policy("lqr", oracle, tasks.goal, 2, ControlOptions()), "latents", tasks.start, 20)
    for i in range(3):
        policy = planner_policy("lqr", oracle, tasks.goal[i], 2, ControlOptions())
        alone = drive(env, policy, "latents", tasks.start[i : i + 1], 20)
        np.testing.assert_allclose(alone.path[0], together.path[i], atol=1e-9)


def test_the_cost_counts_distances_after_each_step_and_actions(env: SuiteEnv) -> None:
    path = np.zeros((1, 3, 2))
    path[0, 0], path[0, 1] = 5.0, [1.0, 2.0]  # where it starts is nobody's doing
    run = Driven(path, path, np.full((1, 2, 2), 0.5), np.zeros((1, 2)), 0.0)
    assert control_cost(env.latent_spec, run, np.zeros((1, 2)), 0.1)[0] == pytest.approx(1 + 4 + 0.1 * 4 * 0.25)


def test_a_kept_run_comes_back(env: SuiteEnv, tmp_path: Path) -> None:
    run = drive(env, UniformPolicy(2), "nothing", np.zeros((2, 2)), 3)
    again = Driven.load(run.save(tmp_path / "driven.npz"))
    np.testing.assert_array_equal(again.path, run.path)
    assert again.act_ms == run.act_ms and isinstance(again.act_ms, float)


def test_a_random_policy_draws_for_every_environment_and_step() -> None:
    policy = UniformPolicy(2, seed=0)
    first, memory = policy.predict(np.zeros((3, 1)))
    second, _ = policy.predict(np.zeros((3, 1)), memory)
    assert len(np.unique(np.concatenate([first, second]))) == 12 and np.abs(first).max() <= 1


def test_planners_are_judged_beside_their_own_twin(env: SuiteEnv) -> None:
    def run(distance: float) -> Driven:
        path = np.full((4, 3, 2), distance)
        return Driven(path, path, np.zeros((4, 2, 2)), np.zeros((4, 2)), 0.0)

    tasks = control_goals(env.latent_spec, 4, np.random.default_rng(0))
    tasks.goal[:] = 0
    runs = {("a", "embedding"): run(2.0), ("a", "oracle"): run(1.0), ("b", "embedding"): run(3.0)}
    runs |= {("b", "oracle"): run(3.0), ("random", "none"): run(4.0)}
    setting = control_setting(env.latent_spec)
    outcomes = judge(env.latent_spec, tasks, runs, setting.success, env.dt, ControlOptions()).outcomes  # type: ignore[arg-type]
    assert [round(row.cost_ratio.mean, 6) for row in outcomes] == [4, 1, 1, 1, 16]


@pytest.mark.parametrize("name", ["straight-line", pytest.param("mpc-cem", marks=pytest.mark.slow)])
def test_two_processes_drive_like_one(name: PlannerName, data: Episodes) -> None:
    env = SuiteEnv("reacher", "hard", frame_skip=2, height=16, width=16)
    world, _ = fit_worlds(Encoder(dim=2, frame_size=(16, 16)), data, env.latent_spec, "linear")
    tasks = control_goals(env.latent_spec, 3, np.random.default_rng(3))
    policy = planner_policy(name, world, frames_at(env, tasks.goal), 2, ControlOptions())
    one = drive(env, policy, "frames", tasks.start, 4)
    two = drive_in_parallel(env, policy, tasks.start, 4, processes=2)
    dismiss()
    np.testing.assert_allclose(one.path, two.path, atol=1e-5)
    np.testing.assert_allclose(one.actions, two.actions, atol=1e-4)
    env.close()


def test_a_world_that_cannot_be_controlled_is_named_and_the_others_go_on(env: SuiteEnv, oracle: WorldModel) -> None:
    model = oracle.linear
    assert isinstance(model, LinearGaussianDynamics)
    numb = replace(model, B=np.zeros_like(model.B))
    deaf = WorldModel(oracle.encoder, numb, "latents")
    tasks = control_goals(env.latent_spec, 2, np.random.default_rng(0))
    setting = control_setting(env.latent_spec)
    result = evaluate(env, ["lqr", "mpc-qp"], deaf, oracle, tasks, setting, steps=10, progress=False)
    assert list(result.refused) == ["lqr"] and "not stabilisable" in result.refused["lqr"]
    assert [row.planner for row in result.outcomes] == ["mpc-qp", "mpc-qp", "random"]
    alone = evaluate(env, ["lqr"], deaf, oracle, tasks, setting, steps=10, progress=False)
    assert [row.planner for row in alone.outcomes] == ["random"]


def test_networks_drive_as_the_linear_model_that_they_start_from(env: SuiteEnv, oracle: WorldModel) -> None:
    assert isinstance(oracle.linear, LinearGaussianDynamics)
    networks = replace(oracle, dynamics=NeuralDynamics(oracle.linear, members=2, hidden=8))
    tasks = control_goals(env.latent_spec, 2, np.random.default_rng(4))
    options = ControlOptions(mpc=MPCOptions(horizon=6))
    run = drive(env, planner_policy("mpc-cem", networks, tasks.goal, 2, options), "latents", tasks.start, 40)
    assert np.abs((run.path[:, -1] - tasks.goal) * env.latent_spec.scales).max() < 0.05
