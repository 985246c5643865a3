import dataclasses
import json
import os
import pickle
import resource
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import zarr
from short_episodes import IDENTITY, episode

from worldmodel.data.episodes import ARRAYS
from worldmodel.data.store import EpisodeStore, _temporary

SPEC = {**IDENTITY, "frames": 24}


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    store = EpisodeStore.open(tmp_path / "data", SPEC)
    store.write_shard(0, [episode(3, 1), episode(5, 2)])
    store.write_shard(1, [episode(4, 3)])
    data = EpisodeStore(tmp_path / "data").load()
    assert len(data) == 3 and data.offsets.tolist() == [0, 3, 8, 12]
    for index, (length, value) in enumerate([(3, 1), (5, 2), (4, 3)]):
        for name in ("frames", "states", "latents", "actions"):
            np.testing.assert_array_equal(getattr(data.episode(index), name), getattr(episode(length, value), name))


def test_a_writer_killed_in_its_sixth_episode_leaves_five(tmp_path: Path) -> None:
    code = f"""
import os, signal, sys
sys.path.insert(0, {str(Path(__file__).parents[1])!r})
import zarr, worldmodel.data.store as store
from short_episodes import episode
data = store.EpisodeStore.open({str(tmp_path / "data")!r}, {SPEC!r})
for index in range(5):
    data.write_shard(index, [episode(4, index)])
group = zarr.Group.create_array
def killed(self, name, **values):
    if name == "latents":
        os.kill(os.getpid(), signal.SIGKILL)
    return group(self, name, **values)
zarr.Group.create_array = killed
data.write_shard(5, [episode(4, 5)])
"""
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == -9
    store = EpisodeStore(tmp_path / "data")
    assert len(list((tmp_path / "data" / "shards").iterdir())) == 6  # the shard in flight is there, unseen
    assert store.shards() == [0, 1, 2, 3, 4] and len(store.load()) == 5
    EpisodeStore.open(tmp_path / "data", SPEC).write_shard(5, [episode(4, 5)])
    assert len(store.load()) == 6 and len(list((tmp_path / "data" / "shards").iterdir())) == 6


def test_a_full_disk_is_an_error_that_leaves_the_store_readable(tmp_path: Path) -> None:
    store = EpisodeStore.open(tmp_path / "data", SPEC)
    store.write_shard(0, [episode(4)])
    noise = np.random.default_rng(0).integers(0, 256, (4, 64, 64, 3), dtype=np.uint8)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(
        resource.RLIMIT_FSIZE, (20_000, limits[1])
    )  # the system refuses to write more, as a full disk does
    try:
        with pytest.raises(OSError):
            store.write_shard(1, [dataclasses.replace(episode(4), frames=noise)])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert len(store.load()) == 1 and store.shards() == [0]
    assert [entry.name for entry in (tmp_path / "data" / "shards").iterdir()] == ["00000.zarr"]


def test_a_shard_that_is_there_is_never_written_again(tmp_path: Path) -> None:
    store = EpisodeStore.open(tmp_path / "data", SPEC)
    store.write_shard(0, [episode(4, 1)])
    with pytest.raises(FileExistsError):
        store.write_shard(0, [episode(4, 2)])
    assert (store.load().frames == 1).all() and len(list((tmp_path / "data" / "shards").iterdir())) == 1


def test_opening_leaves_alone_what_a_living_process_writes(tmp_path: Path) -> None:
    store = EpisodeStore.open(tmp_path / "data", SPEC)
    name = _temporary("00007")
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    for writer in (os.getpid(), gone.pid):
        (tmp_path / "data" / "shards" / name.replace(str(os.getpid()), str(writer))).mkdir()
    EpisodeStore.open(tmp_path / "data", SPEC)
    assert [entry.name for entry in (tmp_path / "data" / "shards").iterdir()] == [name]
    assert store.shards() == []


def test_no_more_than_was_asked_for_is_loaded_and_the_card_fits_it(tmp_path: Path) -> None:
    store = EpisodeStore.open(tmp_path / "data", SPEC | {"frames": 8})
    store.write_shard(0, [episode(4, index) for index in range(5)])
    store.write_card(store.load().card)
    data = store.load()
    assert len(data) == data.card.episodes == 2 and data.card.env == "e"
    EpisodeStore.open(tmp_path / "data", SPEC | {"frames": 16})
    assert len(store.load()) == store.load().card.episodes == 4
    EpisodeStore.open(tmp_path / "data", SPEC | {"frames": 4})  # asks for less, forgets nothing
    assert len(store.load()) == 4 and store.load(4).card.frames == 4


def test_modes_append_overwrite_and_error(tmp_path: Path) -> None:
    EpisodeStore.open(tmp_path / "data", SPEC).write_shard(0, [episode(4)])
    assert EpisodeStore.open(tmp_path / "data", SPEC | {"frames": 40}, "append").shards() == [0]
    with pytest.raises(ValueError, match="seed is 0, asked for 1"):
        EpisodeStore.open(tmp_path / "data", SPEC | {"seed": 1}, "append")
    with pytest.raises(ValueError, match="exists"):
        EpisodeStore.open(tmp_path / "data", SPEC, "error")
    assert EpisodeStore.open(tmp_path / "data", SPEC | {"seed": 1}, "overwrite").shards() == []


def test_a_folder_that_is_not_ours_is_never_removed(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(ValueError, match="not a data set"):
        EpisodeStore.open(tmp_path, SPEC, "overwrite")
    assert (tmp_path / "thesis.txt").exists()


def test_overwrite_removes_the_data_and_nothing_else(tmp_path: Path) -> None:
    EpisodeStore.open(tmp_path / "data", SPEC).write_shard(0, [episode(4)])
    (tmp_path / "data" / "notes.txt").write_text("which run was it?")
    EpisodeStore.open(tmp_path / "data", SPEC, "overwrite")
    assert sorted(entry.name for entry in (tmp_path / "data").iterdir()) == ["notes.txt", "shards", "spec.json"]


def test_empty_and_missing_data_are_one_clear_error(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="not a data set"):
        EpisodeStore(tmp_path / "nowhere").load()
    store = EpisodeStore.open(tmp_path / "data", SPEC)
    with pytest.raises(ValueError, match="no complete shard"):
        store.load()


def chunk(shard: Path, name: str) -> Path:
    return next(file for file in (shard / name / "c").rglob("*") if file.is_file())


def flip(file: Path) -> None:
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)


@pytest.mark.parametrize(
    "damage",
    [
        lambda shard: shutil.rmtree(shard / "frames"),
        lambda shard: chunk(shard, "actions").unlink(),
        lambda shard: chunk(shard, "frames").write_bytes(chunk(shard, "frames").read_bytes()[:-5]),
        lambda shard: flip(chunk(shard, "frames")),
        lambda shard: (shard / "frames" / "zarr.json").write_text("{}"),
        lambda shard: zarr.open_group(shard).create_array("offsets", data=np.array([0, 9]), overwrite=True),
        lambda shard: zarr.open_group(shard).create_array("actions", data=np.zeros(3), overwrite=True),
    ],
    ids=["array gone", "chunk gone", "chunk cut", "bit flipped", "foreign", "offsets", "dtype"],
)
def test_a_damaged_shard_is_one_clear_error(damage: Callable[[Path], object], tmp_path: Path) -> None:
    store = EpisodeStore.open(tmp_path / "data", SPEC)
    store.write_shard(0, [episode(4)])
    damage(tmp_path / "data" / "shards" / "00000.zarr")
    with pytest.raises(ValueError, match=r"shard .*00000\.zarr is damaged"):
        store.load()


@pytest.mark.parametrize(
    "file, text, line",
    [
        ("spec.json", "{", "damaged or not ours"),
        ("spec.json", "[]", "damaged or not ours"),
        ("spec.json", '{"format": 99}', "update worldmodel"),
        ("card.json", "{}", "no data card"),
        ("card.json", '{"gaussianity": {"beauty": 1}}', "no data card"),
    ],
)
def test_a_damaged_description_is_one_clear_error(file: str, text: str, line: str, tmp_path: Path) -> None:
    store = EpisodeStore.open(tmp_path / "data", SPEC)
    store.write_shard(0, [episode(4)])
    (tmp_path / "data" / file).write_text(text)
    with pytest.raises(ValueError, match=line):
        store.load()


def test_data_from_before_rewards_were_kept_is_read(tmp_path: Path) -> None:
    store = EpisodeStore.open(tmp_path / "data", SPEC)
    store.write_shard(0, [episode(4)])
    shutil.rmtree(tmp_path / "data" / "shards" / "00000.zarr" / "rewards")
    with pytest.raises(ValueError, match="damaged"):
        store.load()
    (tmp_path / "data" / "spec.json").write_text(json.dumps(store.spec() | {"format": 1}))
    assert np.isnan(store.load().rewards).all() and store.load().card.returns is None


def test_pickles_are_refused_unread(tmp_path: Path) -> None:
    store = EpisodeStore.open(tmp_path / "data", SPEC)
    shard = tmp_path / "data" / "shards" / "00000.zarr"  # a Zarr v2 array of objects: reading it would run its pickle
    for name in ARRAYS:
        (shard / name).mkdir(parents=True)
        (shard / name / ".zarray").write_text(
            json.dumps({"zarr_format": 2, "shape": [1], "chunks": [1], "dtype": "|O", "compressor": None,
                        "fill_value": None, "order": "C", "filters": [{"id": "pickle"}]})
        )  # fmt: skip
        (shard / name / "0").write_bytes(pickle.dumps([Trap(str(tmp_path / "sprung"))]))
    (shard / ".zgroup").write_text('{"zarr_format": 2}')
    with pytest.raises(ValueError, match="damaged"):
        store.load()
    assert not (tmp_path / "sprung").exists()


class Trap:
    def __init__(self, path: str) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Callable[..., object], tuple[str, str]]:
        return open, (self.path, "w")


def test_nothing_on_disk_is_pickled(tmp_path: Path) -> None:
    EpisodeStore.open(tmp_path / "data", SPEC).write_shard(0, [episode(4)])
    for folder, _, names in os.walk(tmp_path):
        for name in names:
            assert "pickle" not in (Path(folder) / name).read_bytes().decode("latin1")
