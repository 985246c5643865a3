"""Importance weights that bring the law of an embedding closer to what the theory asks for, without the true state."""

import numpy as np
from sklearn.neighbors import NearestNeighbors

from worldmodel.stats.linear import whiten


def gaussian_weights(h: np.ndarray, neighbours: int = 50, most: float = 5.0, std: float = 1.0) -> np.ndarray:
    """Weights (N,) under which embeddings (N, m) are closer to an isotropic Gaussian.

    Each is the ratio of the Gaussian density to that of the whitened embedding, estimated by the distance to the
    ``neighbours``-th nearest of the others. They have mean 1.

    Args:
        h: embeddings (N, m).
        neighbours: more smooth the density more.
        most: no weight exceeds this many times the mean, so that few frames never stand for all.

        std: of the Gaussian, in standard deviations of the embedding; below 1 it fits into bounded laws.

    Raises:
        ValueError: fewer embeddings than neighbours.
    """
    if len(h) <= neighbours:
        raise ValueError(f"{len(h)} embeddings are too few for {neighbours} neighbours")
    white = whiten(np.asarray(h, np.float64))
    distance, _ = NearestNeighbors(n_neighbors=neighbours + 1).fit(white).kneighbors(white)
    log_ratio = -(white**2).sum(1) / (2 * std**2) + white.shape[1] * np.log(distance[:, -1] + 1e-12)
    weights = np.exp(log_ratio - log_ratio.max())
    for _ in range(20):  # cutting lowers the mean
        weights = np.minimum(weights / weights.mean(), most)
    return weights / weights.mean()
