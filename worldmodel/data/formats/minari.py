"""Episodes as Minari data sets, and Minari data sets as episodes (needs ``pip install 'worldmodel[minari]'``).

An exported step observes ``{"frame", "state", "latent"}``, as far as the episodes have them. By default Minari stores
frames as JPEG, which changes them; exports are exact.
"""

import tempfile
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gymnasium as gym
import numpy as np

from worldmodel.data.datacard import IDENTITY, DataCard
from worldmodel.data.episodes import Episode, Episodes
from worldmodel.data.modes import Mode
from worldmodel.data.store import EpisodeStore
from worldmodel.utils.files import to_plain
from worldmodel.utils.progress import Advance, progress_bar

if TYPE_CHECKING:
    from minari import EpisodeData, MinariDataset
    from minari.data_collector import EpisodeBuffer

_CARD = "worldmodel"  # where the data card lies in Minari's metadata
_SHARD_FRAMES = 1_000


@dataclass(frozen=True)
class ObservationKeys:
    """Which parts of a Minari data set's observations are what.

    Attributes:
        frames: key of the frames, (H, W, 3) uint8; None finds them where there is one choice.
        states: key of the simulator's state; None takes ``state``, where there is one.
        latents: key of the true latents, best standardised; None takes ``latent``, where there is one.
    """

    frames: str | None = None
    states: str | None = None
    latents: str | None = None


def export_minari(episodes: Episodes, dataset_id: str, *, progress: bool = True) -> Path:
    """Write episodes as a local Minari data set, whole or not at all.

    What episodes do not hold is not made up: unknown rewards are NaN, no step is terminated, and the last step of each
    episode is truncated, since the recording ends there. Actions within [-1, 1] are given these bounds, others none;
    frames that were posed, not driven, have actions of no columns. The data card lies in the metadata.

    Args:
        episodes: what to write.
        dataset_id: Minari's name of it, such as worldmodel/reacher-v0.
        progress: draw a progress bar.

    Returns:
        The folder of the data set.

    Raises:
        ImportError: Minari is not installed.
        ValueError: the name is malformed or taken, or an episode has no action.
        OSError: the disk is full; nothing is left behind.
    """
    _require_minari()
    from minari import __version__
    from minari.dataset.minari_dataset import parse_dataset_id
    from minari.dataset.minari_storage import MinariStorage
    from minari.namespace import create_namespace, list_local_namespaces
    from minari.storage.datasets_root_dir import get_dataset_path

    try:
        namespace = parse_dataset_id(dataset_id)[0]
    except (ValueError, TypeError):
        raise ValueError(f"{dataset_id!r} is no name of a Minari data set: worldmodel/reacher-v0 is one") from None
    folder = get_dataset_path(dataset_id)
    if folder.exists():
        raise ValueError(f"{folder} exists: choose another name or version")
    if (np.diff(episodes.offsets) < 2).any():
        raise ValueError("an episode of one frame has no action: Minari cannot hold it")
    with tempfile.TemporaryDirectory(dir=get_dataset_path(), prefix=".worldmodel-") as temporary:
        data = Path(temporary, dataset_id.rpartition("/")[-1], "data")
        data.parent.mkdir()
        storage = MinariStorage.new(
            data, _observation_space(episodes), _action_space(episodes), data_format="hdf5", jpeg_encoding=False
        )
        storage.update_metadata(
            {
                "dataset_id": dataset_id,
                "minari_version": __version__,
                "algorithm_name": episodes.card.explorer,
                "description": f"Frames of {episodes.card.env}; ends were not recorded.",
                _CARD: episodes.card.to_json(),
            }
        )
        with progress_bar("episodes", len(episodes), progress) as advance:
            storage.update_episodes(_buffers(episodes, advance))
        if namespace is not None and namespace not in list_local_namespaces():
            create_namespace(namespace)
        data.parent.rename(folder)
    return folder


def import_minari(
    dataset_id: str,
    out: Path | str,
    keys: ObservationKeys = ObservationKeys(),
    *,
    mode: Mode = "append",
    progress: bool = True,
) -> EpisodeStore:
    """Write a local Minari data set, of any environment whose observations are or hold frames, as a data set of ours.

    It goes shard by shard: memory stays bounded, and a killed import goes on where it was. Actions become float32,
    those of discrete spaces one-hot. Ends are not kept. No environment is made, so no code of the data set
    runs.

    Args:
        dataset_id: Minari's name of it.
        out: folder of the data set that is written.
        keys: which parts of the observations are what.
        mode: what to do with a folder that exists: append (resume), overwrite, error.
        progress: draw a progress bar.

    Raises:
        ImportError: Minari is not installed.
        ValueError: there is no such data set, it is damaged, or it has no frames.
        OSError: the disk is full; what was finished is kept.

    Warns:
        UserWarning: the frames were stored as JPEG, so they are not quite what the environment drew.
    """
    source = _Source.find(_open(dataset_id), keys)
    source.warn_of_jpeg()
    lengths = source.lengths()
    shards = _shards(lengths)
    spec = source.identity() | {"minari": dataset_id, "keys": source.keys(), "episodes": len(lengths)}
    store = EpisodeStore.open(out, to_plain(spec) | {"frames": sum(lengths)}, mode)
    missing = sorted(set(range(len(shards))) - set(store.shards()))
    done = len(lengths) - sum(len(shards[index]) for index in missing)
    with progress_bar("episodes", len(lengths), progress, done) as advance:
        for index in missing:
            store.write_shard(index, source.read(shards[index]))
            advance(len(shards[index]))
    if missing or not (store.path / "card.json").is_file():
        store.write_card(store.measure())
    return store


def _require_minari() -> None:
    try:
        import h5py  # noqa: F401 (Minari imports it only once it writes)
        import minari  # noqa: F401
    except ImportError as error:
        raise ImportError(f"{error}: pip install 'worldmodel[minari]' installs what Minari data sets need") from error


def _observation_space(episodes: Episodes) -> gym.spaces.Dict:
    """Say what a step observes; what the episodes lack is left out."""
    parts: dict[str, gym.Space[Any]] = {"frame": gym.spaces.Box(0, 255, episodes.frames.shape[1:], np.uint8)}
    for key, values in (("state", episodes.states), ("latent", episodes.latents)):
        if values.shape[1]:
            parts[key] = gym.spaces.Box(-np.inf, np.inf, values.shape[1:], values.dtype.type)
    return gym.spaces.Dict(parts)


def _action_space(episodes: Episodes) -> gym.spaces.Box:
    bound = 1.0 if np.abs(episodes.actions).max(initial=0) <= 1 else np.inf
    return gym.spaces.Box(-bound, bound, episodes.actions.shape[1:], np.float32)


def _buffers(episodes: Episodes, advance: Advance) -> "Iterator[EpisodeBuffer]":
    from minari.data_collector import EpisodeBuffer

    for index, episode in enumerate(episodes):
        steps = len(episode.actions)
        observations = {"frame": episode.frames, "state": episode.states, "latent": episode.latents}
        yield EpisodeBuffer(
            id=index,
            observations={key: values for key, values in observations.items() if values.size},
            actions=episode.actions,
            rewards=episode.rewards,
            terminations=np.zeros(steps, bool),
            truncations=np.arange(steps) == steps - 1,
            infos={},
        )
        advance(1)


def _open(dataset_id: str) -> "MinariDataset":
    _require_minari()
    from minari import MinariDataset
    from minari.dataset.minari_storage import MinariStorage
    from minari.storage.datasets_root_dir import get_dataset_path

    folder = get_dataset_path(dataset_id) / "data"
    if not folder.is_dir():
        raise ValueError(f"no Minari data set {dataset_id} in {get_dataset_path()}: `minari list local` shows them")
    try:
        if not {"observation_space", "action_space"} <= MinariStorage.read_raw_metadata(folder).keys():
            raise ValueError("it does not say its spaces, and Minari would run its environment's code to learn them")
        return MinariDataset(folder)
    except Exception as error:  # whatever a damaged file makes of Minari, and what else it needs to read this format
        raise ValueError(f"Minari data set {dataset_id} cannot be read ({error})") from error


@dataclass(frozen=True)
class _Source:
    """A Minari data set, with what is what in its observations.

    Attributes:
        dataset: the data set.
        parts: what is observed, by key; one thing alone has the key ``""``.
        frames: key of the frames.
        states: key of the states, if there are any.
        latents: key of the latents, if there are any.
    """

    dataset: "MinariDataset"
    parts: Mapping[str, gym.Space[Any]]
    frames: str
    states: str | None
    latents: str | None

    @classmethod
    def find(cls, dataset: "MinariDataset", keys: ObservationKeys) -> "_Source":
        """Find the parts that are there, and refuse those that are not."""
        space = dataset.observation_space
        parts = space.spaces if isinstance(space, gym.spaces.Dict) else {"": space}
        named = (f"{key} {type(part).__name__} {part.shape} {part.dtype}" for key, part in parts.items())
        observed = ", ".join(named).strip()
        for key in (keys.frames, keys.states, keys.latents):
            if key is not None and key not in parts:
                raise ValueError(f"{dataset.id} observes no {key}: there is {observed}")
        pictures = [key for key, part in parts.items() if _is_picture(part) and keys.frames in (None, key)]
        if not pictures:
            raise ValueError(f"{dataset.id} has no frames, (H, W, 3) uint8: there is {observed}")
        if len(pictures) > 1:
            raise ValueError(f"{dataset.id} has frames under several keys, choose one: {', '.join(pictures)}")
        states, latents = (name if name in parts else None for name in ("state", "latent"))
        return cls(dataset, parts, pictures[0], keys.states or states, keys.latents or latents)

    def keys(self) -> list[str | None]:
        return [self.frames, self.states, self.latents]

    def warn_of_jpeg(self) -> None:
        """Warn where the frames are not quite those that the environment drew."""
        from minari.dataset.minari_storage import is_image_space

        if self.dataset.storage.jpeg_encoding and is_image_space(self.parts[self.frames]):
            warnings.warn(
                f"{self.dataset.id} holds its frames as JPEG, Minari's default, which changed them: record with "
                "DataCollector(env, jpeg_encoding=False) to have what the environment drew",
                UserWarning,
                stacklevel=3,
            )

    def lengths(self) -> list[int]:
        """Return the number of frames of each episode."""
        episodes = self.dataset.storage.get_episode_metadata(self.dataset.episode_indices)
        return [int(episode["total_steps"]) + 1 for episode in episodes]

    def identity(self) -> dict[str, Any]:
        """Return what the data card says beside measurements: that of an export, else what Minari knows."""
        metadata, dataset = self.dataset.storage.metadata, self.dataset
        height, width, _ = self.parts[self.frames].shape or ()
        latents = gym.spaces.flatdim(self.parts[self.latents]) if self.latents else 0
        known: dict[str, Any] = {
            "env": dataset.env_spec.id if dataset.env_spec else dataset.id,
            "explorer": metadata.get("algorithm_name", dataset.id),
            "height": height,
            "width": width,
        }
        if _CARD in metadata:
            card = DataCard.from_json(metadata[_CARD])
            known = {name: getattr(card, name) for name in IDENTITY}
        if len(known.get("latent_names", ())) != latents:
            known["latent_names"] = tuple(f"{self.latents} {index}" for index in range(latents))
            known["latent_scales"] = (1.0,) * latents
        return known

    def read(self, indices: Sequence[int]) -> list[Episode]:
        """Read whole episodes.

        Raises:
            ValueError: they are damaged, or not what the data set says.
        """
        try:
            return [self._episode(episode) for episode in self.dataset.iterate_episodes(indices)]
        except Exception as error:  # whatever a damaged file makes of Minari and its storage
            where = f"episodes {indices[0]} to {indices[-1]} of {self.dataset.id}"
            raise ValueError(f"{where} are damaged or do not fit ({error})") from error

    def _episode(self, episode: "EpisodeData") -> Episode:
        observed = episode.observations if self.frames else {"": episode.observations}
        frames = observed[self.frames]

        def columns(key: str | None) -> np.ndarray:
            return _columns(self.parts[key], observed[key]) if key else np.zeros((len(frames), 0))

        return Episode(
            frames,
            columns(self.states).astype(np.float64),
            columns(self.latents).astype(np.float32),
            _columns(self.dataset.action_space, episode.actions).astype(np.float32),
            np.asarray(episode.rewards, np.float32),
        )


def _is_picture(space: gym.Space[Any]) -> bool:
    return isinstance(space, gym.spaces.Box) and space.dtype == np.uint8 and space.shape[2:] == (3,)


def _columns(space: gym.Space[Any], values: Any) -> np.ndarray:
    """Lay values of a space out as (T, k) numbers: boxes flat, discrete ones one-hot."""
    if isinstance(space, gym.spaces.Box):
        return np.reshape(values, (len(values), gym.spaces.flatdim(space)))
    if isinstance(space, gym.spaces.Discrete | gym.spaces.MultiDiscrete | gym.spaces.MultiBinary):
        return np.stack([np.asarray(gym.spaces.flatten(space, value)) for value in values])
    raise ValueError(f"{space} is neither a box nor discrete")


def _shards(lengths: Sequence[int]) -> list[range]:
    """Cut episodes of so many frames into runs of at least ``_SHARD_FRAMES`` frames; the last may have fewer."""
    shards, first, frames = [], 0, 0
    for index, length in enumerate(lengths):
        frames += length
        if frames >= _SHARD_FRAMES or index == len(lengths) - 1:
            shards.append(range(first, index + 1))
            first, frames = index + 1, 0
    return shards
