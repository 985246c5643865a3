"""Episodes to Minari and back, and data sets that others recorded."""

import json
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from short_episodes import IDENTITY, episodes

import worldmodel as wm
from worldmodel.data.datacard import describe
from worldmodel.data.episodes import ARRAYS, Episode, Episodes, stack
from worldmodel.data.formats import minari as minari_data

minari = pytest.importorskip("minari")
h5py = pytest.importorskip("h5py")

FRAMES = gym.spaces.Box(0, 255, (32, 32, 3), np.uint8)


@pytest.fixture(autouse=True)
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "minari"))
    return tmp_path / "minari"


def noise(lengths: tuple[int, ...], states: int, latents: int, actions: int) -> Episodes:
    rng = np.random.default_rng(0)
    parts = [
        Episode(
            rng.integers(0, 256, (length, 32, 40, 3), dtype=np.uint8),
            rng.standard_normal((length, states)),
            rng.standard_normal((length, latents)).astype(np.float32),
            3 * rng.standard_normal((length - 1, actions)).astype(np.float32),
        )
        for length in lengths
    ]
    arrays, names = stack(parts), tuple("abc"[:latents])
    identity = IDENTITY | {"latent_names": names, "latent_scales": (0.5,) * latents, "camera": "top"}
    return Episodes(**arrays, card=describe(arrays["latents"], arrays["actions"], arrays["offsets"], **identity))


def recorded(observations: Any, space: gym.Space, actions: Any = None, action_space: gym.Space | None = None) -> str:
    """Make a data set of one episode of 4 steps, as Minari's users do."""
    from minari.data_collector import EpisodeBuffer

    buffer = EpisodeBuffer(
        observations=observations,
        actions=np.zeros((4, 1), np.float32) if actions is None else actions,
        rewards=[1.0] * 4,
        terminations=[False] * 4,
        truncations=[False] * 3 + [True],
    )
    action_space = action_space or gym.spaces.Box(-1, 1, (1,))
    with pytest.warns(UserWarning):  # of metadata that it would like to have
        minari.create_dataset_from_buffers(
            "test/set-v0", [buffer], action_space=action_space, observation_space=space, jpeg_encoding=False
        )
    return "test/set-v0"


def same(first: Episodes, second: Episodes) -> None:
    for name in ARRAYS:
        a, b = getattr(first, name), getattr(second, name)
        assert a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes(), name
    assert first.card.to_json() == second.card.to_json()


@pytest.mark.parametrize(("states", "latents", "actions"), [(4, 2, 3), (4, 2, 0), (0, 0, 1)])
def test_there_and_back_gives_the_same_bytes_and_card(states: int, latents: int, actions: int, tmp_path: Path) -> None:
    data = noise((2, 7, 3), states, latents, actions)
    wm.export_minari(data, "test/deeper/set-v3", progress=False)
    same(wm.import_minari("test/deeper/set-v3", tmp_path / "back", progress=False).load(), data)


def test_minari_reads_what_was_exported(root: Path) -> None:
    data = episodes(3, 5)
    assert wm.export_minari(data, "test/set-v0", progress=False) == root / "test" / "set-v0"
    loaded = minari.load_dataset("test/set-v0")
    assert list(minari.list_local_datasets()) == ["test/set-v0"]
    assert (loaded.total_episodes, loaded.total_steps) == (2, 6)
    episode = loaded[1]
    assert set(episode.observations) == {"frame", "state", "latent"} and len(episode.observations["frame"]) == 5
    np.testing.assert_array_equal(episode.actions, data.episode(1).actions)
    assert episode.truncations.tolist() == [False] * 3 + [True] and not episode.terminations.any()
    np.testing.assert_array_equal(episode.rewards, data.episode(1).rewards)
    assert loaded.storage.metadata["worldmodel"] == data.card.to_json()
    assert [entry.name for entry in root.iterdir()] == ["test"]  # no leftovers


def test_an_export_that_fails_leaves_nothing(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> Any:
        raise OSError("disk full")

    monkeypatch.setattr(minari_data, "_buffers", full)
    with pytest.raises(OSError, match="disk full"):
        wm.export_minari(episodes(3, 5), "test/set-v0", progress=False)
    assert not list(root.iterdir())


@pytest.mark.parametrize("name", ["noversion", "../up-v0", "a b-v0", "", "worldmodel/set"])
def test_a_malformed_name_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="no name of a Minari data set"):
        wm.export_minari(episodes(3, 5), name, progress=False)


def test_a_taken_name_and_an_episode_without_action_are_refused() -> None:
    with pytest.raises(ValueError, match="one frame"):
        wm.export_minari(episodes(3, 1), "set-v0", progress=False)
    wm.export_minari(episodes(3, 5), "set-v0", progress=False)
    with pytest.raises(ValueError, match="exists"):
        wm.export_minari(episodes(3, 5), "set-v0", progress=False)


def test_a_killed_import_goes_on_and_reads_no_more_than_it_lacks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(minari_data, "_SHARD_FRAMES", 8)
    data = noise((5, 4, 3, 9, 2), 4, 2, 1)
    wm.export_minari(data, "set-v0", progress=False)
    read: list[list[int]] = []
    iterate = minari.MinariDataset.iterate_episodes

    def dying(self: Any, indices: Any) -> Any:
        read.append(list(indices))
        if len(read) == 2:
            raise KeyboardInterrupt
        return iterate(self, indices)

    monkeypatch.setattr(minari.MinariDataset, "iterate_episodes", dying)
    with pytest.raises(KeyboardInterrupt):
        wm.import_minari("set-v0", tmp_path / "out", progress=False)
    assert len(wm.load_episodes(tmp_path / "out")) == 2
    store = wm.import_minari("set-v0", tmp_path / "out", progress=False)
    assert read == [[0, 1], [2, 3], [2, 3], [4]]  # a shard at a time
    same(store.load(), data)
    wm.import_minari("set-v0", tmp_path / "out", progress=False)
    assert len(read) == 4


def test_a_folder_with_other_data_is_refused(tmp_path: Path) -> None:
    wm.export_minari(episodes(3, 5), "set-v0", progress=False)
    wm.export_minari(episodes(3, 5), "set-v1", progress=False)
    wm.import_minari("set-v0", tmp_path / "out", progress=False)
    with pytest.raises(ValueError, match="holds other data"):
        wm.import_minari("set-v1", tmp_path / "out", progress=False)
    assert wm.import_minari("set-v1", tmp_path / "out", mode="overwrite", progress=False).spec()["minari"] == "set-v1"


def pictures(length: int = 5, shape: tuple[int, ...] = (32, 32, 3), dtype: type = np.uint8) -> np.ndarray:
    return np.random.default_rng(0).integers(0, 256, (length, *shape)).astype(dtype)


def test_frames_alone_have_neither_states_nor_latents(tmp_path: Path) -> None:
    name = recorded(pictures(), FRAMES, [0, 2, 1, 2], gym.spaces.Discrete(3))
    data = wm.import_minari(name, tmp_path / "out", progress=False).load()
    np.testing.assert_array_equal(data.frames, pictures())
    assert data.states.shape == data.latents.shape == (5, 0)
    assert data.actions.tolist() == [[1, 0, 0], [0, 0, 1], [0, 1, 0], [0, 0, 1]]  # one-hot
    card = data.card
    assert (card.env, card.explorer, card.height, card.rho) == ("test/set-v0", "test/set-v0", 32, ())
    json.dumps(card.to_json(), allow_nan=False)


def test_keys_say_what_is_what(tmp_path: Path) -> None:
    angle = np.linspace(0, 1, 5)[:, None]
    parts = {"left": pictures(), "right": 255 - pictures(), "angle": angle, "state": np.arange(5)}
    space = gym.spaces.Dict(
        left=FRAMES, right=FRAMES, angle=gym.spaces.Box(-1, 1, (1,), np.float64), state=gym.spaces.Discrete(5)
    )
    name = recorded(parts, space)
    with pytest.raises(ValueError, match="choose one: left, right"):
        wm.import_minari(name, tmp_path / "out", progress=False)
    with pytest.raises(ValueError, match="no depth: there is angle Box"):
        wm.import_minari(name, tmp_path / "out", wm.ObservationKeys("depth"), progress=False)
    with pytest.raises(ValueError, match="no frames"):
        wm.import_minari(name, tmp_path / "out", wm.ObservationKeys("angle"), progress=False)
    keys = wm.ObservationKeys("right", latents="angle")
    data = wm.import_minari(name, tmp_path / "out", keys, progress=False).load()
    np.testing.assert_array_equal(data.frames, 255 - pictures())
    np.testing.assert_array_equal(data.latents, angle.astype(np.float32))
    np.testing.assert_array_equal(data.states, np.eye(5))
    assert data.card.latent_names == ("angle 0",) and data.card.latent_scales == (1.0,)


@pytest.mark.parametrize(
    ("shape", "dtype"), [((32, 32, 3), np.float32), ((3, 32, 32), np.uint8), ((32, 32, 1), np.uint8), ((6,), np.uint8)]
)
def test_observations_that_are_no_rgb_frames_are_one_clear_line(
    shape: tuple[int, ...], dtype: type, tmp_path: Path
) -> None:
    name = recorded(pictures(5, shape, dtype), gym.spaces.Box(0, 255, shape, dtype))
    with pytest.raises(ValueError, match="no frames") as caught:
        wm.import_minari(name, tmp_path / "out", progress=False)
    assert np.dtype(dtype).name in str(caught.value) and "\n" not in str(caught.value)
    assert not (tmp_path / "out").exists()


def test_what_is_not_there_or_damaged_is_one_clear_line(root: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no Minari data set nowhere-v0"):
        wm.import_minari("nowhere-v0", tmp_path / "out", progress=False)
    folder = wm.export_minari(episodes(3, 5), "set-v0", progress=False)
    with h5py.File(folder / "data" / "main_data.hdf5", "a") as file:
        del file["episode_1"]["actions"]
    with pytest.raises(ValueError, match="episodes 0 to 1 of set-v0 are damaged"):
        wm.import_minari("set-v0", tmp_path / "out", progress=False)
    (folder / "data" / "metadata.json").write_text("{")
    with pytest.raises(ValueError, match="set-v0 cannot be read"):
        wm.import_minari("set-v0", tmp_path / "out", progress=False)


def test_no_environment_is_made_to_read_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = wm.export_minari(episodes(3, 5), "set-v0", progress=False)
    file = folder / "data" / "metadata.json"
    metadata = json.loads(file.read_text())
    del metadata["observation_space"]
    metadata["env_spec"] = gym.envs.registration.EnvSpec("evil-v0", entry_point="evil:run").to_json()
    file.write_text(json.dumps(metadata))
    monkeypatch.setattr(gym, "make", lambda *_: pytest.fail("code of the data set was run"))
    with pytest.raises(ValueError, match="does not say its spaces"):
        wm.import_minari("set-v0", tmp_path / "out", progress=False)


def test_without_the_extra_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "minari", None)
    for call in (lambda: wm.export_minari(episodes(3), "a-v0"), lambda: wm.import_minari("a-v0", tmp_path / "out")):
        with pytest.raises(ImportError, match=r"pip install 'worldmodel\[minari\]'"):
            call()


class Light(gym.Env[np.ndarray, np.int64]):
    """Somebody's environment: a light that moves left or right, drawn by `render`."""

    metadata = {"render_modes": ["rgb_array"]}  # noqa: RUF012 (as Gymnasium has it)
    observation_space = gym.spaces.Box(0, 40, (1,), np.float64)
    action_space = gym.spaces.Discrete(2)
    render_mode = "rgb_array"

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[np.ndarray, dict[str, Any]]:
        super().reset(seed=seed)
        self.place = int(self.np_random.integers(10, 30))
        return np.array([self.place], np.float64), {}

    def step(self, action: np.int64) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        self.place += 2 * int(action) - 1
        return np.array([self.place], np.float64), 1.0, self.place in (0, 40), False, {}

    def render(self) -> np.ndarray:
        frame = np.zeros((40, 41, 3), np.uint8)
        frame[:, self.place] = (255, 128, 7)
        return frame


@pytest.fixture
def collector(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Minari's DataCollector, which takes one function from JAX: dm-tree has the same, and is here already."""
    import tree

    def tree_map(function: Callable[..., Any], first: Any, *rest: Any) -> Any:
        return tree.map_structure_up_to(first, function, first, *rest)

    jax, util = types.ModuleType("jax"), types.ModuleType("jax.tree_util")
    jax.tree_util, util.tree_map = util, tree_map  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "jax", jax)
    monkeypatch.setitem(sys.modules, "jax.tree_util", util)
    return minari.DataCollector


def drive(env: Any, lengths: tuple[int, ...], name: str) -> tuple[list[np.ndarray], list[Any]]:
    """Record episodes of so many frames by random actions; return all frames and actions."""
    frames, actions = [], []
    env.action_space.seed(0)
    for seed, length in enumerate(lengths):
        env.reset(seed=seed)
        frames.append(env.render())
        for _ in range(length - 1):
            actions.append(env.action_space.sample())
            env.step(actions[-1])
            frames.append(env.render())
    with pytest.warns(UserWarning):  # of metadata that it would like to have
        env.create_dataset(name)
    env.close()
    return frames, actions


def test_what_minari_records_of_any_environment_is_imported(collector: Callable[..., Any], tmp_path: Path) -> None:
    env = gym.wrappers.AddRenderObservation(Light(), render_only=False, render_key="pixels", obs_key="state")
    frames, actions = drive(collector(env, jpeg_encoding=False), (4, 6, 3), "test/light-v0")
    data = wm.import_minari("test/light-v0", tmp_path / "out", progress=False).load()
    np.testing.assert_array_equal(data.frames, frames)
    np.testing.assert_array_equal(data.actions, np.eye(2)[actions])
    assert data.offsets.tolist() == [0, 4, 10, 13]
    np.testing.assert_array_equal(data.states[:, 0], data.frames[:, 0, :, 0].argmax(1))


def test_frames_that_jpeg_changed_are_told(collector: Callable[..., Any], tmp_path: Path) -> None:
    env = collector(gym.wrappers.AddRenderObservation(Light(), render_only=True))
    frames, _ = drive(env, (4,), "test/light-v0")
    with pytest.warns(UserWarning, match="JPEG"):
        data = wm.import_minari("test/light-v0", tmp_path / "out", progress=False).load()
    assert data.frames.shape == (4, 40, 41, 3) and (data.frames != np.stack(frames)).any()


def test_what_minari_records_of_our_environments_is_imported(collector: Callable[..., Any], tmp_path: Path) -> None:
    from worldmodel import envs

    frames, actions = drive(collector(envs.make("reacher", pixels=True), jpeg_encoding=False), (3, 4), "reacher-v0")
    data = wm.import_minari("reacher-v0", tmp_path / "out", progress=False).load()
    np.testing.assert_array_equal(data.frames, frames)
    np.testing.assert_array_equal(data.actions, actions)
    assert data.card.env == "worldmodel/reacher-hard-v0" and data.states.shape == (7, 0)


def test_the_command_lines_go_there_and_back(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import tyro

    from worldmodel.scripts.minari_data import main

    wm.export_minari(episodes(3, 5, 4), "test/set-v0", progress=False)
    first, again = (str(tmp_path / name) for name in ("first", "again"))
    for line in (
        ["import", "--id", "test/set-v0", "--out", first],
        ["export", "--data", first, "--id", "test/set-v1"],
        ["import", "--id", "test/set-v1", "--out", again, "--mode", "error"],
    ):
        tyro.cli(main, args=line)
    assert "again" in capsys.readouterr().out
    same(wm.load_episodes(again), episodes(3, 5, 4))
