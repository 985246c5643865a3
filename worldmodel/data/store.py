"""Episodes on disk: a folder of whole shards.

    data/reacher/
        spec.json           what determines the data
        shards/00000.zarr   one complete Zarr v3 group: frames, states, latents, actions, rewards, offsets
        card.json           the data card, written when the data set is complete

A shard is written under a temporary name and renamed in one step: a killed writer loses the shard in flight and nothing
else, and two writers never share a file. Chunks carry a checksum and a missing one is noticed. Nothing is pickled.
"""

import dataclasses
import json
import os
import secrets
import shutil
import socket
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import zarr
from zarr.codecs import ZstdCodec

from worldmodel.data.datacard import IDENTITY, DataCard, describe
from worldmodel.data.episodes import ARRAYS, DTYPES, Episode, Episodes, stack, unstack
from worldmodel.data.modes import Mode
from worldmodel.utils.files import write_json

_REQUIRED: dict[str, Any] = {"env": "", "explorer": "", "seed": 0, "dt": 0.0, "latent_names": (), "latent_scales": ()}
_CHUNK = 256  # frames per chunk: 3 MB at 64x64
_CODEC = ZstdCodec(level=3, checksum=True)
FORMAT = 2  # 1 had no rewards


class EpisodeStore:
    """A data set on disk.

    >>> import tempfile
    >>> store = EpisodeStore.open(tempfile.mkdtemp() + "/data", spec={"env": "reacher", "frames": 100})
    >>> store.shards()
    []
    """

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)

    @classmethod
    def open(cls, path: Path | str, spec: Mapping[str, Any], mode: Mode = "append") -> "EpisodeStore":
        """Open a data set for writing.

        Args:
            path: its folder.
            spec: what determines the data, as JSON values; all but ``frames`` must agree with what is there. ``frames``
                is how many the data set has once it is complete: it grows, never shrinks.
            mode: ``append`` resumes or extends, ``overwrite`` starts anew, ``error`` refuses a folder that exists.

        Raises:
            ValueError: the folder holds other data, or something else, or exists under ``error``.
        """
        store = cls(path)
        wanted: dict[str, Any] = json.loads(json.dumps({"format": FORMAT, **spec}))
        if store.path.exists() and not store.path.is_dir():
            raise ValueError(f"{path} is a file: a data set is a folder")
        if store.path.exists() and any(not entry.name.startswith(".") for entry in store.path.iterdir()):
            if mode == "error":
                raise ValueError(f"{path} exists: choose another folder, or mode append or overwrite")
            there = store.spec()
            if mode == "overwrite":
                store._remove()
            else:
                store._check_same(there, wanted)
                if "frames" in wanted and "frames" in there:
                    wanted["frames"] = max(there["frames"], wanted["frames"])
        store.remove_leftovers()
        write_json(store.path / "spec.json", wanted)
        (store.path / "shards").mkdir(exist_ok=True)
        return store

    def spec(self) -> dict[str, Any]:
        """Return what determines the data.

        Raises:
            ValueError: the folder is missing, foreign, damaged, or written by a later version.
        """
        file = self.path / "spec.json"
        if not file.is_file():
            raise ValueError(f"{self.path} is not a data set of this toolkit: it has no spec.json")
        try:
            spec = json.loads(file.read_bytes())
            written = int(spec["format"])
        except (ValueError, KeyError, TypeError) as error:
            raise ValueError(f"{file} is damaged or not ours: collect into another folder ({error})") from error
        if written > FORMAT:
            raise ValueError(f"{self.path} has format {written}, this version reads up to {FORMAT}: update worldmodel")
        return spec

    def shards(self) -> list[int]:
        """Return the numbers of the shards that are complete, ascending."""
        return sorted(int(folder.stem) for folder in (self.path / "shards").glob("[0-9]*.zarr"))

    def write_shard(self, index: int, episodes: Sequence[Episode]) -> None:
        """Write one shard of whole episodes, visible only once it is complete.

        Raises:
            FileExistsError: the shard is there; it stays as it is.
            OSError: the disk is full or not writable; the store stays readable.
        """
        arrays = stack(episodes)
        final = self._shard(index)
        temporary = final.with_name(_temporary(final.stem))
        try:
            group = zarr.open_group(temporary, mode="w", zarr_format=3)
            for name, values in arrays.items():
                chunks = (min(_CHUNK, len(values)), *(max(1, size) for size in values.shape[1:]))
                array = group.create_array(
                    name,
                    shape=values.shape,
                    dtype=DTYPES[name],
                    chunks=chunks,
                    compressors=_CODEC,
                    config={"write_empty_chunks": True},  # so that a chunk that is not there is a damaged one
                )
                array[:] = values
            if final.exists():
                raise FileExistsError(f"shard {final} exists")
            temporary.rename(final)  # fails where another writer made it in the meantime: a shard is never empty
        finally:
            shutil.rmtree(temporary, ignore_errors=True)

    def read_shard(self, index: int, *, blank: bool = False) -> list[Episode]:
        """Read the episodes of one shard.

        Args:
            index: its number.
            blank: leave the frames on disk; black ones stand in for them, which take no memory.

        Raises:
            ValueError: it is missing or damaged.
        """
        folder, rewarded = self._shard(index), self.spec()["format"] > 1
        try:
            group = zarr.open_group(folder, mode="r", zarr_format=3)  # a Zarr v2 array might hold pickles
            arrays = {name: _read(group, name) for name in ARRAYS[1:] if name != "rewards" or rewarded}
            arrays["frames"] = _blank(group, "frames") if blank else _read(group, "frames")
            return unstack({"rewards": np.full(len(arrays["actions"]), np.nan, np.float32), **arrays})
        except Exception as error:  # whatever a damaged file makes of zarr and its codecs
            raise _damaged(folder, error) from error

    def load(self, frames: int | None = None) -> Episodes:
        """Read the complete shards into memory.

        Args:
            frames: stop after the episode that reaches this many (default: as many as the data set was asked for).

        Raises:
            ValueError: the folder is missing, foreign, empty or damaged.
        """
        episodes = [episode for _, _, episode in self.walk(frames)]
        if not episodes:
            raise ValueError(f"{self.path} holds no complete shard: collect again with the same command to resume")
        arrays = stack(episodes)
        return Episodes(**arrays, card=self.card(arrays))

    def walk(self, frames: int | None = None, *, blank: bool = False) -> Iterator[tuple[int, int, Episode]]:
        """Yield every episode of :meth:`load`, one shard in memory at a time, after its shard and its place there."""
        wanted = self.spec().get("frames", np.inf) if frames is None else frames
        seen = 0
        for index in self.shards():
            for place, episode in enumerate(self.read_shard(index, blank=blank) if seen < wanted else ()):
                if seen < wanted:
                    yield index, place, episode
                    seen += len(episode.frames)

    def frame_bytes(self) -> int:
        """Return what the frames of the complete shards take in memory; none is read.

        Raises:
            ValueError: a shard is damaged.
        """
        total = 0
        for folder in map(self._shard, self.shards()):
            try:
                total += int(np.prod(_array(zarr.open_group(folder, mode="r", zarr_format=3), "frames").shape))
            except Exception as error:
                raise _damaged(folder, error) from error
        return total

    def measure(self) -> DataCard:
        """Return the data card of all complete shards; no frame is read."""
        episodes = (episode for index in self.shards() for episode in self.read_shard(index, blank=True))
        return self.card(stack([without_frames(episode) for episode in episodes]))

    def card(self, arrays: Mapping[str, np.ndarray]) -> DataCard:
        """Return the card; one that does not fit, as while data is still being collected, is measured anew."""
        file = self.path / "card.json"
        card = DataCard.load(file) if file.is_file() else None
        if card and (card.frames, card.episodes) == (len(arrays["latents"]), len(arrays["offsets"]) - 1):
            return card
        known = vars(card) if card else self.spec()
        identity = _REQUIRED | {key: known[key] for key in IDENTITY if key in known}
        identity |= {key: tuple(identity[key]) for key in ("latent_names", "latent_scales")}
        return describe(arrays["latents"], arrays["actions"], arrays["offsets"], arrays["rewards"], **identity)

    def write_card(self, card: DataCard) -> None:
        """Write the data card, which marks the data set as complete."""
        card.save(self.path / "card.json")

    def remove_leftovers(self) -> None:
        """Remove what killed writers of this machine left; what living ones write stays."""
        for pattern in (".*.tmp", "shards/.*.tmp"):
            for folder in self.path.glob(pattern):
                if folder.is_dir() and not _writer_lives(folder.name):
                    shutil.rmtree(folder, ignore_errors=True)

    def _shard(self, index: int) -> Path:
        return self.path / "shards" / f"{index:05d}.zarr"

    def _remove(self) -> None:
        """Remove the data set, and nothing else that lies in its folder."""
        (self.path / "card.json").unlink(missing_ok=True)
        if (self.path / "shards").exists():
            doomed = (self.path / "shards").rename(self.path / _temporary("shards"))  # no half-removed shard is seen
            shutil.rmtree(doomed)

    def _check_same(self, there: Mapping[str, Any], spec: Mapping[str, Any]) -> None:
        for key in dict.fromkeys([*spec, *there]):  # the telling ones come first
            if key != "frames" and spec.get(key) != there.get(key):
                raise ValueError(
                    f"{self.path} holds other data ({key} is {there.get(key)!r}, asked for {spec.get(key)!r}): "
                    "choose another folder, or mode overwrite"
                )


def load_episodes(path: Path | str) -> Episodes:
    """Load a data set from its folder."""
    return EpisodeStore(path).load()


def _damaged(folder: Path, error: Exception) -> ValueError:
    return ValueError(f"shard {folder} is damaged: delete it and collect again to redo it ({error})")


def _read(group: zarr.Group, name: str) -> np.ndarray:
    return np.asarray(_whole(group, name)[:])


def _blank(group: zarr.Group, name: str) -> np.ndarray:
    """Return zeros of the array's shape and type, all of them one byte of memory."""
    array = _whole(group, name)
    return np.broadcast_to(np.zeros((), array.dtype), array.shape)


def _array(group: zarr.Group, name: str) -> zarr.Array[Any]:
    array = group[name]
    if not isinstance(array, zarr.Array):
        raise ValueError(f"{name} is no array")
    return array


def _whole(group: zarr.Group, name: str) -> zarr.Array[Any]:
    """Return an array of the group that has its type and all of its chunks."""
    array = _array(group, name)
    if array.dtype != DTYPES[name]:
        raise ValueError(f"{name} are {array.dtype}, not {DTYPES[name]}")
    if array.nchunks_initialized < array.nchunks:
        raise ValueError(f"{name} lack {array.nchunks - array.nchunks_initialized} of {array.nchunks} chunks")
    return array


def without_frames(episode: Episode) -> Episode:
    """Return the episode with frames of no pixels (T + 1, 0, 0, 3)."""
    return dataclasses.replace(episode, frames=episode.frames[:, :0, :0].copy())


def _temporary(stem: str) -> str:
    """Return a name that no other writer takes, and that tells who is writing."""
    return f".{stem}.{socket.gethostname()}.{os.getpid()}.{secrets.token_hex(4)}.tmp"


def _writer_lives(name: str) -> bool:
    """Whether the writer of a temporary name may still be at work."""
    host, process = ".".join(name.split(".")[2:-3]), name.split(".")[-3]
    if host != socket.gethostname() or not process.isdigit() or os.name == "nt":  # signal 0 kills on Windows
        return True
    try:
        os.kill(int(process), 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True
