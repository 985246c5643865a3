"""The encoder that an agent sees through."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from worldmodel.agents import LatentOU
from worldmodel.encoder import Encoder
from worldmodel.envs import LatentSpec, SuiteEnv, make
from worldmodel.scripts.agent_encoder import RHO, nearness, round_trip, shown, speeds
from worldmodel.scripts.train_agent import TrainAgentOptions, main


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


def test_agents_on_the_state_and_through_a_given_encoder_are_compared(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Encoder(latents=2, frame_size=(32, 32), channels=(8, 8, 8, 8, 8), hidden=16).save_pretrained(tmp_path / "encoder")
    options = TrainAgentOptions(
        obs=("state", "latent"),
        goal="beside",
        encoder=tmp_path / "encoder",
        jobs=2,
        steps=60,
        frame_skip=50,
        envs=2,
        episodes=1,
        test_episodes=2,
        device="cpu",
        out=tmp_path / "run",
    )
    main(options)
    agents = json.loads((tmp_path / "run" / "result.json").read_text())["agents"]
    assert list(agents) == ["state", "latent"] and (tmp_path / "run" / "best-sac-latent.zip").is_file()
    assert agents["state"]["at_equal_steps"]["steps"] == agents["latent"]["at_equal_steps"]["steps"] == 60
    assert agents["state"]["random"] == agents["latent"]["random"]  # the same episodes for both
    assert "after 60 steps: state" in capsys.readouterr().out
    with pytest.raises(ValueError, match="is not an encoder"):
        main(replace(options, encoder=tmp_path))
