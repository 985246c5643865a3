"""How a planned embedding is read as latents, which the simulator can be posed at."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from sklearn.neighbors import NearestNeighbors

from worldmodel.linear import AffineMap, fit_affine


class Decoder(Protocol):
    """Reads latents from embeddings."""

    def __call__(self, h: np.ndarray, /) -> np.ndarray:
        """Read (..., m) as (..., n) standardised latents."""
        ...


def linear_decoder(h: np.ndarray, z: np.ndarray) -> AffineMap:
    """Fit the affine map from embeddings (N, m) to latents (N, n) of training episodes."""
    return fit_affine(h, z)


@dataclass(frozen=True)
class NearestDecoder:
    """The mean latents of the nearest embeddings of a gallery.

    The gallery holds training frames; the frames of a task's start and goal are drawn apart and are never among them.

    Attributes:
        gallery: embeddings (N, m).
        latents: their latents (N, n).
        neighbours: how many are averaged.
    """

    gallery: np.ndarray
    latents: np.ndarray
    neighbours: int = 5

    def __call__(self, h: np.ndarray) -> np.ndarray:
        """Read (..., m) as (..., n)."""
        search = NearestNeighbors(n_neighbors=self.neighbours).fit(self.gallery)
        _, index = search.kneighbors(h.reshape(-1, h.shape[-1]))
        return self.latents[index].mean(1).reshape(*h.shape[:-1], -1).astype(np.float64)
