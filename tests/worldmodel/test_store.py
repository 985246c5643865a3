import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from test_episodes import IDENTITY, episode

from worldmodel.store import EpisodeStore

SPEC = {**IDENTITY, "frames": 20}


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
sys.path.insert(0, {str(Path(__file__).parent)!r})
import zarr, worldmodel.store as store
from test_episodes import episode
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


def test_a_full_disk_is_an_error_that_leaves_the_store_readable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = EpisodeStore.open(tmp_path / "data", SPEC)
    store.write_shard(0, [episode(4)])

    def full(*arguments: object, **options: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("zarr.Group.create_array", full)
    with pytest.raises(OSError, match="No space left"):
        store.write_shard(1, [episode(4)])
    monkeypatch.undo()
    assert len(store.load()) == 1 and store.shards() == [0]


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


def test_damaged_empty_and_missing_data_are_one_clear_error(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="not a data set"):
        EpisodeStore(tmp_path / "nowhere").load()
    store = EpisodeStore.open(tmp_path / "data", SPEC)
    with pytest.raises(ValueError, match="no complete shard"):
        store.load()
    store.write_shard(0, [episode(4)])
    shutil.rmtree(tmp_path / "data" / "shards" / "00000.zarr" / "frames")
    with pytest.raises(ValueError, match="damaged"):
        store.load()


def test_nothing_on_disk_is_pickled(tmp_path: Path) -> None:
    EpisodeStore.open(tmp_path / "data", SPEC).write_shard(0, [episode(4)])
    for folder, _, names in os.walk(tmp_path):
        for name in names:
            assert "pickle" not in (Path(folder) / name).read_bytes().decode("latin1")
