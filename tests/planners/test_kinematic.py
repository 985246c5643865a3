"""Kinematic plans on the real simulator, with an encoder that is not trained: what holds for any encoder."""

from collections.abc import Iterator

import numpy as np
import pytest

from worldmodel.encoders.encoder import Encoder
from worldmodel.envs import SuiteEnv
from worldmodel.envs.goals import GoalTasks, sample_tasks
from worldmodel.envs.pixels import frames_at
from worldmodel.planners.decoders import NearestDecoder, linear_decoder
from worldmodel.planners.kinematic import KinematicPlans, plan_kinematic
from worldmodel.planners.straight_line import StraightLine

TASKS, STEPS = 12, 6


@pytest.fixture(scope="module")
def env() -> Iterator[SuiteEnv]:
    env = SuiteEnv("reacher", "hard")
    env.reset(seed=0)
    yield env
    env.close()


@pytest.fixture(scope="module")
def tasks(env: SuiteEnv) -> GoalTasks:
    return sample_tasks(env.latent_spec, TASKS, np.random.default_rng(0))


@pytest.fixture(scope="module")
def training(env: SuiteEnv) -> tuple[np.ndarray, np.ndarray, Encoder]:
    z, encoder = np.random.default_rng(1).standard_normal((200, 2)), Encoder(dim=2)
    return encoder.encode(frames_at(env, z)), z, encoder


@pytest.fixture(scope="module")
def plans(env: SuiteEnv, tasks: GoalTasks, training: tuple[np.ndarray, np.ndarray, Encoder]) -> KinematicPlans:
    h, z, encoder = training
    return plan_kinematic(encoder, linear_decoder(h, z), env, tasks, StraightLine(STEPS))


def test_the_oracle_is_the_same_planner_on_the_true_latents(plans: KinematicPlans, tasks: GoalTasks) -> None:
    np.testing.assert_array_equal(plans.oracle, StraightLine(STEPS).plan(tasks.start, tasks.goal))
    row = plans.outcomes[1]
    assert (row.state, row.success.mean, row.cost_ratio.mean) == ("oracle", 1.0, 1.0)


def test_the_ends_of_a_plan_are_what_the_encoder_saw(
    env: SuiteEnv, plans: KinematicPlans, tasks: GoalTasks, training: tuple[np.ndarray, np.ndarray, Encoder]
) -> None:
    h, z, encoder = training
    for step, truth in ((0, tasks.start), (-1, tasks.goal)):
        seen = linear_decoder(h, z)(encoder.encode(frames_at(env, truth)))
        np.testing.assert_allclose(plans.embedding[:, step], seen, atol=1e-4)
        assert np.abs(plans.embedding[:, step] - truth).max() > 0.1  # an untrained encoder; nobody put the truth there


def test_there_are_an_oracle_and_a_random_baseline_beside_the_embedding(plans: KinematicPlans) -> None:
    assert [row.state for row in plans.outcomes] == ["embedding", "oracle", "none"]
    assert all(row.tasks == TASKS and row.execution == "kinematic" for row in plans.outcomes)
    assert plans.outcomes[2].success.mean == 0


def test_a_decoder_by_nearest_frames_plans_too(
    env: SuiteEnv, tasks: GoalTasks, training: tuple[np.ndarray, np.ndarray, Encoder]
) -> None:
    h, z, encoder = training
    path = plan_kinematic(encoder, NearestDecoder(h, z), env, tasks, StraightLine(STEPS)).embedding
    assert path.shape == (TASKS, STEPS + 1, 2)
    assert np.abs(path).max() <= np.abs(z).max()  # a mean of training latents


def test_frames_are_drawn_at_the_latents(env: SuiteEnv, tasks: GoalTasks) -> None:
    frames = frames_at(env, np.stack([tasks.start, tasks.goal], axis=1))
    assert frames.shape == (TASKS, 2, 64, 64, 3) and frames.dtype == np.uint8
    np.testing.assert_array_equal(frames[:, 1], frames_at(env, tasks.goal))
