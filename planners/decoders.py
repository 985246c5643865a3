"""How a planned embedding is read as latents, which the simulator can be posed at."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from sklearn.neighbors import NearestNeighbors

from worldmodel.envs.latents import LatentSpec
from worldmodel.measures.circle import AngleReader, fit_angle_reader
from worldmodel.stats.linear import AffineMap, fit_affine


class Decoder(Protocol):
    """Reads latents from embeddings."""

    def __call__(self, h: np.ndarray, /) -> np.ndarray:
        """Read (..., m) as (..., n) standardised latents."""
        ...


def linear_decoder(h: np.ndarray, z: np.ndarray) -> AffineMap:
    """Fit the affine map from embeddings (N, m) to latents (N, n) of training episodes.

    It carries the rank and the condition number of the embeddings. An embedding wider than the latents may lie in a
    subspace; one that lost a direction which the latents need is refused.

    Raises:
        ValueError: a collapsed embedding, too few samples, or values that are not finite.
    """
    fitted = fit_affine(h, z)
    needed = min(h.shape[1], z.shape[1])
    if fitted.rank < needed:
        raise ValueError(f"the embedding has collapsed: rank {fitted.rank}, where reading the latents takes {needed}")
    return fitted


@dataclass(frozen=True)
class NearestDecoder:
    """The mean latents of the nearest embeddings of a gallery.

    The gallery holds training frames; the frames of a task's start and goal are drawn apart and are never among them.

    Attributes:
        gallery: embeddings (N, m).
        latents: their latents (N, n).
        neighbours: how many are averaged.

    Raises:
        ValueError: a gallery that does not match its latents, or holds fewer frames than neighbours.
    """

    gallery: np.ndarray
    latents: np.ndarray
    neighbours: int = 5

    def __post_init__(self) -> None:
        if len(self.gallery) != len(self.latents):
            raise ValueError(f"{len(self.gallery)} embeddings have {len(self.latents)} latents: a gallery pairs them")
        if not 1 <= self.neighbours <= len(self.gallery):
            raise ValueError(f"{self.neighbours} neighbours of {len(self.gallery)} frames: ask for 1 up to all of them")

    def __call__(self, h: np.ndarray) -> np.ndarray:
        """Read (..., m) as (..., n)."""
        search = NearestNeighbors(n_neighbors=self.neighbours).fit(self.gallery)
        _, index = search.kneighbors(h.reshape(-1, h.shape[-1]))
        return self.latents[index].mean(1).reshape(*h.shape[:-1], -1).astype(np.float64)


@dataclass(frozen=True)
class CircleDecoder:
    """Reads latents that turn all the way round by atan2, and all others by the affine map.

    Attributes:
        spec: the latents.
        linear: (..., m) to (..., n).
        angles: (..., m) to (..., k), for those that turn.
    """

    spec: LatentSpec
    linear: AffineMap
    angles: AngleReader

    def __call__(self, h: np.ndarray) -> np.ndarray:
        """Read (..., m) as (..., n)."""
        latents = self.linear(h)
        latents[..., self.spec.turning] = self.spec.turned(self.angles(h))
        return latents


def circle_decoder(h: np.ndarray, z: np.ndarray, spec: LatentSpec) -> CircleDecoder:
    """Fit how embeddings (N, m) with circle latents are read as latents (N, n) of training episodes.

    Raises:
        ValueError: too few samples, or values that are not finite.
    """
    return CircleDecoder(spec, fit_affine(h, z), fit_angle_reader(h, spec.angles(z)))
