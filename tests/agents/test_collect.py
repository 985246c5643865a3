"""Collection in the real simulator, with real frames."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from worldmodel.agents import ActionOU, LatentOU, RandomActions, collect, explorer
from worldmodel.envs import make
from worldmodel.episodes import Episodes


def same(one: Episodes, two: Episodes) -> bool:
    names = ("frames", "states", "latents", "actions", "offsets")
    return all(np.array_equal(getattr(one, name), getattr(two, name)) for name in names)


@pytest.fixture(scope="module")
def posed(tmp_path_factory: pytest.TempPathFactory) -> Episodes:
    folder = tmp_path_factory.mktemp("data") / "posed"
    return collect("reacher", LatentOU(0.9), 600, folder, length=300, seed=3, progress=False)


def test_posed_frames_show_their_latents_at_rest(posed: Episodes) -> None:
    env = make("reacher")
    env.reset(seed=0)
    suite = env.unwrapped
    for index in (0, 299, 599):
        suite.set_latents(posed.latents[index])
        assert np.abs(suite.render().astype(int) - posed.frames[index]).max() <= 2
        np.testing.assert_allclose(suite.state(), posed.states[index], atol=1e-6)
    assert (posed.states[:, 2:] == 0).all() and posed.actions.shape[1] == 0
    env.close()


def test_the_card_says_what_the_data_is(posed: Episodes) -> None:
    card = posed.card
    assert card.env == "worldmodel/reacher-hard-v0" and card.explorer == "LatentOU(rho=0.9)" and card.seed == 3
    assert card.latent_names == ("shoulder", "wrist") and (card.frames, card.episodes) == (
        len(posed.frames),
        len(posed),
    )
    np.testing.assert_allclose(card.rho, 0.9, atol=0.1)
    np.testing.assert_allclose(card.std, 1.0, atol=0.3)
    assert card.gl_renderer and card.versions["mujoco"]


def test_one_seed_gives_the_same_data_with_one_process_and_with_two(tmp_path: Path) -> None:
    one, two = (
        collect("cartpole", LatentOU(0.5), 1500, tmp_path / str(n), length=250, processes=n, seed=1, progress=False)
        for n in (1, 2)
    )
    assert same(one, two)


def test_more_frames_extend_the_data_and_keep_what_was_there(tmp_path: Path) -> None:
    small = collect("cartpole", LatentOU(0.5), 100, tmp_path / "a", length=2000, seed=1, progress=False)
    large = collect("cartpole", LatentOU(0.5), 2100, tmp_path / "a", length=2000, seed=1, progress=False)
    assert same(large.subset([0]), small) and len(large) == 2 and large.card.frames == 4000


def test_a_killed_collection_resumes_to_the_same_bytes(tmp_path: Path) -> None:
    command = "from worldmodel.agents import *; import sys; collect('cartpole', ActionOU(), 800, sys.argv[1], seed=2)"
    killed = subprocess.Popen([sys.executable, "-c", command, str(tmp_path / "killed")], stdout=subprocess.DEVNULL)
    deadline = time.monotonic() + 60
    while not list((tmp_path / "killed").glob("shards/00000.zarr")) and time.monotonic() < deadline:
        time.sleep(0.02)
    os.kill(killed.pid, signal.SIGKILL)
    killed.wait()
    resumed = collect("cartpole", ActionOU(), 800, tmp_path / "killed", seed=2, progress=False)
    whole = collect("cartpole", ActionOU(), 800, tmp_path / "whole", seed=2, progress=False)
    assert same(resumed, whole) and len(whole) == 2


@pytest.mark.parametrize("driver", [ActionOU(), RandomActions()], ids=["action-ou", "random"])
def test_driven_episodes_replay_from_their_actions(driver: ActionOU | RandomActions, tmp_path: Path) -> None:
    data = collect("reacher", driver, 60, tmp_path, length=30, seed=4, progress=False)
    env = make("reacher")
    env.reset(seed=0)
    episode = data.episode(1)
    assert len(episode.frames) == 30 and episode.actions.shape == (29, 2) and np.abs(episode.actions).max() <= 1
    env.unwrapped.set_state(episode.states[0])
    for step, action in enumerate(episode.actions):
        assert np.abs(env.unwrapped.render().astype(int) - episode.frames[step]).max() <= 2
        env.step(action)
        np.testing.assert_allclose(env.unwrapped.state(), episode.states[step + 1], atol=1e-6)
    env.close()


def test_frame_skip_is_part_of_the_data(tmp_path: Path) -> None:
    data = collect("reacher", RandomActions(), 10, tmp_path, length=10, frame_skip=2, progress=False)
    assert data.card.dt == pytest.approx(0.04)


@pytest.mark.parametrize(
    "call, line",
    [
        (lambda out: collect("reachr", LatentOU(), 10, out), "reacher"),
        (lambda out: collect("reacher", LatentOU(), 0, out), "at least 1"),
        (lambda out: collect("fish", LatentOU(), 10, out), "free or ball joints"),
        (lambda out: collect("reacher", LatentOU(), 10, out, camera="nowhere"), "no camera"),
        (lambda out: explorer("latent-ou:high"), "with numbers"),
        (lambda out: explorer("levy-flight"), "unknown explorer"),
    ],
)
def test_bad_input_is_one_line_before_any_work(call, line: str, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(ValueError, match=line):
        call(tmp_path / "data")
    assert not (tmp_path / "data").exists()
