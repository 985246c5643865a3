"""Collection in the real simulator, with real frames."""

import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import zarr

from worldmodel.agents import ActionOU, LatentOU, RandomActions, collect
from worldmodel.agents.explorers import Policy
from worldmodel.data.episodes import Episodes
from worldmodel.data.store import load_episodes
from worldmodel.envs import make
from worldmodel.utils import workers


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
        collect("cartpole", LatentOU(0.5), 1002, tmp_path / str(n), length=501, processes=n, seed=1, progress=False)
        for n in (1, 2)
    )
    assert len(two) == 2
    assert same(one, two)
    assert contents(tmp_path / "1" / "shards") == contents(tmp_path / "2" / "shards")


def contents(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def test_shards_and_seeds_draw_different_numbers(tmp_path: Path) -> None:
    one, two = (
        collect("cartpole", RandomActions(), 4, tmp_path / str(n), length=2, seed=n, progress=False) for n in (1, 2)
    )
    drawn = np.concatenate([one.actions, two.actions])
    assert len(np.unique(drawn)) == 4 and len(np.unique(np.concatenate([one.states, two.states])[::2, 0])) == 4


def test_more_frames_extend_the_data_and_keep_what_was_there(tmp_path: Path) -> None:
    def asked(frames: int) -> Episodes:
        return collect("cartpole", LatentOU(0.5), frames, tmp_path / "a", length=400, seed=1, progress=False)

    small = asked(100)
    shard = contents(tmp_path / "a" / "shards")
    large = asked(900)
    assert len(small) == 1 and len(large) == 3 and large.card.frames == 1200
    assert same(large.subset([0]), small) and shard.items() <= contents(tmp_path / "a" / "shards").items()
    assert same(asked(100), small) and len(load_episodes(tmp_path / "a")) == 3


def test_a_default_that_is_written_out_is_the_same_data(tmp_path: Path) -> None:
    collect("cartpole", RandomActions(), 2, tmp_path, length=2, progress=False)
    collect("cartpole", RandomActions(), 4, tmp_path, length=2, progress=False, height=64, camera=0, frame_skip=1)
    with pytest.raises(ValueError, match="height is 64, asked for 32"):
        collect("cartpole", RandomActions(), 4, tmp_path, length=2, progress=False, height=32)


def test_a_killed_collection_resumes_to_the_same_bytes(tmp_path: Path) -> None:
    command = (
        "from worldmodel.agents import *; import sys; collect('cartpole', ActionOU(), 150, sys.argv[1], length=50)"
    )
    killed = subprocess.Popen([sys.executable, "-c", command, str(tmp_path / "killed")], stdout=subprocess.DEVNULL)
    deadline = time.monotonic() + 60
    while not list((tmp_path / "killed").glob("shards/00000.zarr")) and time.monotonic() < deadline:
        time.sleep(0.01)
    os.kill(killed.pid, signal.SIGKILL)
    killed.wait()
    resumed = collect("cartpole", ActionOU(), 150, tmp_path / "killed", length=50, progress=False)
    whole = collect("cartpole", ActionOU(), 150, tmp_path / "whole", length=50, progress=False)
    assert same(resumed, whole) and len(whole) == 3
    assert contents(tmp_path / "killed" / "shards") == contents(tmp_path / "whole" / "shards")


@dataclass(frozen=True)
class DiesWriting:
    """Kills the process that it acts in once that has written half of a shard, unless that one is spared."""

    spared: int

    def policy(self, actions: int, dt: float, rng: np.random.Generator) -> Policy:
        write = zarr.Group.create_array

        def written(group: zarr.Group, name: str, **values: object) -> object:
            if name == "latents":
                os.kill(os.getpid(), signal.SIGKILL)
            return write(group, name, **values)

        if os.getpid() != self.spared:
            zarr.Group.create_array = written
        return lambda observation: rng.uniform(-1, 1, actions)


def test_workers_that_die_while_they_write_leave_whole_shards_and_the_same_bytes_after(tmp_path: Path) -> None:
    def asked(frames: int, folder: str, processes: int) -> Episodes:
        explorer = DiesWriting(os.getpid())
        return collect("cartpole", explorer, frames, tmp_path / folder, length=2, processes=processes, progress=False)

    asked(2, "killed", 1)
    with pytest.raises(RuntimeError, match="a worker died while collecting; the same command resumes"):
        asked(6, "killed", 2)
    assert [entry.name for entry in (tmp_path / "killed" / "shards").glob("[0-9]*")] == ["00000.zarr"]
    assert list((tmp_path / "killed" / "shards").glob(".*.tmp"))  # the halves are there, unseen
    resumed, whole = asked(6, "killed", 1), asked(6, "whole", 1)
    assert same(resumed, whole) and len(whole) == 3
    assert contents(tmp_path / "killed" / "shards") == contents(tmp_path / "whole" / "shards")


@dataclass(frozen=True)
class Hangs:
    """Never acts, unless in the process that is spared."""

    spared: int

    def policy(self, actions: int, dt: float, rng: np.random.Generator) -> Policy:
        if os.getpid() != self.spared:
            time.sleep(100)
        return lambda observation: np.zeros(actions, np.float32)


def test_a_worker_that_hangs_is_a_named_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "_HUNG_SECONDS", 1.0)
    with pytest.raises(RuntimeError, match="a worker hangs"):
        collect("cartpole", Hangs(os.getpid()), 4, tmp_path, length=2, processes=2, progress=False)


@pytest.mark.parametrize("task", ["reacher", "ball_in_cup", "cheetah", "finger-turn_hard", "swimmer"])
def test_driven_frames_are_those_of_the_running_environment(task: str, tmp_path: Path) -> None:
    data = collect(task, RandomActions(), 12, tmp_path, length=12, seed=5, progress=False)
    env = make(task)
    sequence = np.random.SeedSequence(5, spawn_key=(0,))
    env.reset(seed=int(sequence.generate_state(1)[0]))
    env.reset()
    for step in range(12):
        np.testing.assert_array_equal(env.unwrapped.state(), data.states[step])
        difference = np.abs(env.unwrapped.render().astype(int) - data.frames[step])
        assert difference.max() <= 8 and difference.mean() < 0.1
        if step < 11:
            env.step(data.actions[step])
    env.close()


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
        (lambda out: collect("reacher", LatentOU((0.9, 0.8, 0.7)), 10, out), "2 of them"),
        (lambda out: collect("reacher", LatentOU(), 10, out, length=1), "at least 2 frames"),
        (lambda out: collect("reacher", LatentOU(), 10, out, seed=-1), "negative"),
    ],
)
def test_bad_input_is_one_line_before_any_work(call, line: str, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(ValueError, match=line):
        call(tmp_path / "data")
    assert not (tmp_path / "data").exists()


def test_confined_episodes_start_at_rest_and_never_leave(tmp_path: Path) -> None:
    one, two = (
        collect("cartpole", ActionOU(1.0), 600, tmp_path / str(n), within=0.5, processes=n, seed=2, progress=False)
        for n in (1, 2)
    )
    assert same(one, two)
    assert np.abs(one.latents).max() <= 0.5 and len(one) > 20 and np.diff(one.offsets).min() > 1
    assert (one.states[one.offsets[:-1], 2:] == 0).all()
    assert 600 <= one.num_frames < 600 + np.diff(one.offsets).max()


def test_bounds_that_nothing_stays_within_end_in_an_error(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="larger within"):
        collect("cartpole", ActionOU(1.0), 100, tmp_path / "a", within=1e-6, frame_skip=10, progress=False)


def test_only_explorers_that_drive_are_confined(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="explorers that drive"):
        collect("cartpole", LatentOU(0.9), 100, tmp_path / "a", within=1.0)
    assert not (tmp_path / "a").exists()
