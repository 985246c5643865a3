"""The recipe for an encoder that knows every pose."""

import numpy as np
import pytest

from worldmodel.agents import LatentOU
from worldmodel.agents.pose_encoder import RHO, nearness, round_trip, shown, speeds
from worldmodel.envs import LatentSpec, SuiteEnv, make


@pytest.fixture(scope="module")
def spec() -> LatentSpec:
    env = make("reacher-easy", show_target="latent").unwrapped
    assert isinstance(env, SuiteEnv)
    spec = round_trip(env.latent_spec)
    env.close()
    return spec


def test_directions_move_slowest_and_all_alike(spec: LatentSpec) -> None:
    chains = LatentOU(tuple(speeds(spec).tolist())).chains(40_000, 2, spec.n, np.random.default_rng(0))
    (names, before), (_, after) = (shown(spec, chains[:, step]) for step in (0, 1))
    assert names == ["cos shoulder", "sin shoulder", "cos wrist", "sin wrist", "target_x", "target_y"]
    kept = (before * after).mean(0) / (before**2).mean(0)
    np.testing.assert_allclose(kept[:4], RHO, atol=0.015)
    assert kept[4:].max() < 0.95 and kept[4:].min() > RHO**2 - 0.01  # no faster than products of directions


def test_poses_go_all_the_way_round_and_targets_stay_in_the_picture(spec: LatentSpec) -> None:
    angle = spec.scales[0] * np.random.default_rng(0).standard_normal(100_000)
    counts, _ = np.histogram(np.angle(np.exp(1j * angle)), bins=8, range=(-np.pi, np.pi))
    assert counts.min() > 0.5 * counts.mean() and spec.scales[2:].tolist() == [0.09, 0.09]


def test_poses_near_the_middle_of_the_free_hinge_come_first(spec: LatentSpec) -> None:
    turns = np.array([0.0, 0.7, 2 * np.pi, 2 * np.pi - 0.7])[:, None] * [[1, 0, 0, 0]] / spec.scales[0]
    bent = turns + np.array([0.0, 1.0, -1.0, 2.0])  # nothing but the free hinge counts
    np.testing.assert_allclose(nearness(spec, bent, 0.7), np.exp([0, -0.5, 0, -0.5]), atol=1e-12)
