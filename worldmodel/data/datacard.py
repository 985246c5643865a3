"""The data card: what a data set is, measured from its arrays, so that nobody mistakes noise for an expert."""

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from worldmodel.data.gaussianity import Gaussianity, gaussianity
from worldmodel.data.pairs import pair_indices
from worldmodel.utils.files import to_plain, write_json


@dataclass(frozen=True)
class DataCard:
    """What travels with the data.

    Attributes:
        env: Gymnasium id of the environment.
        explorer: what drove the collection, with its parameters.
        seed: seed of the collection.
        episodes: number of episodes.
        frames: number of frames.
        dt: seconds of one control step.
        frame_skip: simulator's control steps in one of ours.
        height: of a frame, pixels.
        width: of a frame, pixels.
        camera: number or name of the camera.
        latent_names: one name per latent.
        latent_scales: rad or m per unit of each latent.
        mean: per latent, dimensionless.
        std: per latent, dimensionless.
        rho: per latent, correlation across one control step, within episodes.
        gaussianity: how far the latents are from an isotropic Gaussian.
        action_std: per action.
        action_autocorrelation: per action, across one control step, within episodes.
        returns: mean return per episode, where rewards were recorded.
        gl_renderer: what drew the frames.
        render_ms_per_frame: milliseconds per frame, over the shards drawn by the last run.
        versions: of the packages that the data depends on.
    """

    env: str
    explorer: str
    seed: int
    episodes: int
    frames: int
    dt: float
    latent_names: tuple[str, ...]
    latent_scales: tuple[float, ...]
    mean: tuple[float, ...]
    std: tuple[float, ...]
    rho: tuple[float, ...]
    gaussianity: Gaussianity
    frame_skip: int = 1
    height: int | None = None
    width: int | None = None
    camera: int | str = 0
    action_std: tuple[float, ...] = ()
    action_autocorrelation: tuple[float, ...] = ()
    returns: float | None = None
    gl_renderer: str = ""
    render_ms_per_frame: float | None = None
    versions: Mapping[str, str] = dataclasses.field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON values; what is not finite becomes ``None``."""
        return to_plain(dataclasses.asdict(self))

    def save(self, path: Path) -> None:
        """Write as JSON, whole or not at all."""
        write_json(path, self.to_json())

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> "DataCard":
        """Return the card of :meth:`to_json`; a number that was not finite comes back as NaN.

        Raises:
            ValueError: the values are not those of a data card.
        """
        try:
            values = dict(values)
            shape = {key: float("nan") if value is None else value for key, value in values.pop("gaussianity").items()}
            measured = Gaussianity(**_tuples(shape))
            return cls(**_tuples(values), gaussianity=measured)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"no data card ({error})") from error

    @classmethod
    def load(cls, path: Path) -> "DataCard":
        """Read what :meth:`save` wrote.

        Raises:
            ValueError: the file is damaged or not a data card.
        """
        try:
            return cls.from_json(json.loads(path.read_bytes()))
        except ValueError as error:
            raise ValueError(f"{path} is no data card: delete it and it is measured again ({error})") from error

    @property
    def mean_rho(self) -> float:
        """Mean of ``rho`` over the latents; NaN where the data has no true latents."""
        return float(np.mean(self.rho)) if self.rho else float("nan")


_MEASURED = {
    "episodes",
    "frames",
    "mean",
    "std",
    "rho",
    "gaussianity",
    "action_std",
    "action_autocorrelation",
    "returns",
}
IDENTITY = tuple(field.name for field in dataclasses.fields(DataCard) if field.name not in _MEASURED)
"""The fields that arrays cannot tell."""


def describe(
    latents: np.ndarray, actions: np.ndarray, offsets: np.ndarray, rewards: np.ndarray | None = None, **identity: Any
) -> DataCard:
    """Measure a card from the arrays of :class:`Episodes`; ``identity`` gives those of ``IDENTITY``."""
    latents, actions = np.asarray(latents, np.float64), np.asarray(actions, np.float64)
    action_offsets = offsets - np.arange(len(offsets))
    return DataCard(
        episodes=len(offsets) - 1,
        frames=len(latents),
        mean=tuple(latents.mean(0).tolist()),
        std=tuple(latents.std(0).tolist()),
        rho=lag_correlation(latents, offsets),
        gaussianity=gaussianity(latents),
        action_std=tuple(actions.std(0).tolist()) if actions.size else (),
        action_autocorrelation=lag_correlation(actions, action_offsets) if actions.size else (),
        returns=_mean_return(rewards, len(offsets) - 1),
        **identity,
    )


def lag_correlation(values: np.ndarray, offsets: np.ndarray, lag: int = 1) -> tuple[float, ...]:
    """Correlation of each column (F, n) with itself ``lag`` steps later, over pairs inside episodes.

    The mean of the whole data set is removed, not that of each episode, which would bias short episodes towards zero.
    """
    first = pair_indices(offsets, lag)
    centred = np.asarray(values, np.float64) - values.mean(0)
    if not len(first):
        return tuple([float("nan")] * values.shape[1])
    before, after = centred[first], centred[first + lag]
    energy = np.sqrt((before**2).mean(0) * (after**2).mean(0))
    return tuple(((before * after).mean(0) / np.where(energy > 0, energy, np.nan)).tolist())


def _mean_return(rewards: np.ndarray | None, episodes: int) -> float | None:
    if rewards is None or not len(rewards) or not np.isfinite(rewards).all():
        return None
    return float(rewards.sum(dtype=np.float64) / episodes)


def _tuples(values: dict[str, Any]) -> dict[str, Any]:
    """Lists as tuples, with NaN for the ``null`` that stands in them."""
    nan = float("nan")
    return {
        key: tuple(nan if item is None else item for item in value) if isinstance(value, list) else value
        for key, value in values.items()
    }
