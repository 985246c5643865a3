"""Episodes on disk: a folder of whole shards.

    data/reacher/
        spec.json           what determines the data
        shards/00000.zarr   one complete Zarr v3 group: frames, states, latents, actions, offsets
        card.json           the data card, written when the data set is complete

A shard is written under a temporary name and renamed in one step: a killed writer loses the shard in flight and nothing
else, and two writers never share a file. Nothing is pickled.
"""

import json
import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import zarr
from zarr.codecs import BloscCodec

from worldmodel.datacard import DataCard, describe
from worldmodel.episodes import ARRAYS, Episode, Episodes, stack, unstack
from worldmodel.files import write_json

Mode = Literal["append", "overwrite", "error"]

_IDENTITY = {"env": "", "explorer": "", "seed": 0, "dt": 0.0, "latent_names": (), "latent_scales": ()}
_CHUNK = 256  # frames per chunk: 3 MB at 64x64
FORMAT = 1


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
            spec: what determines the data; all but ``frames`` must agree with what is there.
            mode: ``append`` resumes or extends, ``overwrite`` starts anew, ``error`` refuses a folder that exists.

        Raises:
            ValueError: the folder holds other data, or exists under ``error``.
        """
        store = cls(path)
        spec = json.loads(json.dumps({"format": FORMAT, **spec}))
        if store.path.exists() and any(store.path.iterdir()):
            if mode == "error":
                raise ValueError(f"{path} exists: choose another folder, or mode append or overwrite")
            if mode == "overwrite":
                store._check_ours()
                shutil.rmtree(store.path)
            else:
                store._check_same(spec)
        store.remove_leftovers()
        (store.path / "shards").mkdir(parents=True, exist_ok=True)
        write_json(store.path / "spec.json", spec)
        return store

    def shards(self) -> list[int]:
        """Return the numbers of the shards that are complete, ascending."""
        return sorted(int(folder.stem) for folder in (self.path / "shards").glob("[0-9]*.zarr"))

    def write_shard(self, index: int, episodes: Sequence[Episode]) -> None:
        """Write one shard of whole episodes, visible only once it is complete."""
        arrays = stack(episodes)
        final = self._shard(index)
        temporary = final.with_name(f".{final.stem}.{os.getpid()}.tmp")
        try:
            group = zarr.open_group(temporary, mode="w", zarr_format=3)
            for name, values in arrays.items():
                chunks = (min(_CHUNK, max(1, len(values))), *(max(1, size) for size in values.shape[1:]))
                codec = BloscCodec(cname="zstd", clevel=3, shuffle="noshuffle")
                group.create_array(name, data=values, chunks=chunks, compressors=codec)
            temporary.rename(final)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)

    def load(self, frames: int | None = None) -> Episodes:
        """Read the complete shards into memory.

        Args:
            frames: stop after the shard that reaches this many.

        Raises:
            ValueError: the folder is missing, foreign, empty or damaged.
        """
        self._check_ours()
        episodes: list[Episode] = []
        seen = 0
        for index in self.shards():
            if frames is not None and seen >= frames:
                break
            part = self.read_shard(index)
            episodes += part
            seen += sum(len(episode.frames) for episode in part)
        if not episodes:
            raise ValueError(f"{self.path} holds no complete shard: collect again with the same command to resume")
        arrays = stack(episodes)
        return Episodes(**arrays, card=self._card(arrays))

    def write_card(self, card: DataCard) -> None:
        """Write the data card, which marks the data set as complete."""
        card.save(self.path / "card.json")

    def remove_leftovers(self) -> None:
        """Remove what killed writers left; call it only while no writer is at work."""
        for folder in (self.path / "shards").glob(".*.tmp"):
            shutil.rmtree(folder, ignore_errors=True)

    def _shard(self, index: int) -> Path:
        return self.path / "shards" / f"{index:05d}.zarr"

    def read_shard(self, index: int) -> list[Episode]:
        """Read the episodes of one shard."""
        try:
            group = zarr.open_group(self._shard(index), mode="r")
            arrays = {name: np.asarray(group[name][:]) for name in ARRAYS}
        except (KeyError, ValueError, RuntimeError, OSError) as error:
            raise ValueError(f"shard {self._shard(index)} is damaged: delete it and collect again ({error})") from error
        return unstack(arrays)

    def _card(self, arrays: Mapping[str, np.ndarray]) -> DataCard:
        """Return the card; that of a data set which is still being collected is measured from what is there."""
        if (self.path / "card.json").is_file():
            return DataCard.load(self.path / "card.json")
        spec = json.loads((self.path / "spec.json").read_text())
        identity = {key: spec.get(key, default) for key, default in _IDENTITY.items()}
        identity |= {key: tuple(identity[key]) for key in ("latent_names", "latent_scales")}
        return describe(arrays["latents"], arrays["actions"], arrays["offsets"], **identity)

    def _check_ours(self) -> None:
        if not (self.path / "spec.json").is_file():
            raise ValueError(f"{self.path} is not a data set of this toolkit: it has no spec.json")

    def _check_same(self, spec: Mapping[str, Any]) -> None:
        self._check_ours()
        there = json.loads((self.path / "spec.json").read_text())
        for key in sorted(set(spec) | set(there)):
            if key != "frames" and spec.get(key) != there.get(key):
                raise ValueError(
                    f"{self.path} holds other data ({key} is {there.get(key)!r}, asked for {spec.get(key)!r}): "
                    "choose another folder, or mode overwrite"
                )


def load_episodes(path: Path | str) -> Episodes:
    """Load a data set from its folder."""
    return EpisodeStore(path).load()
