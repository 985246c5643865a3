"""Slow feature analysis in closed form: what can be learnt without a network, and without a regulariser.

Among all white linear maps of fixed features φ(x), the m that change least across a pair (Wiskott & Sejnowski, Neural
Computation 14, 2002) solve Cov(φ' - φ) w = Δ Cov(φ) w. With enough features it finds what LeJEPA finds; the trainable
form of the same objective is ``LeJEPA(weight=0)``, the alignment of a whitened embedding.
"""

from dataclasses import dataclass

import numpy as np

from worldmodel.stats.spectrum import hermite_modes, multi_indices


@dataclass(frozen=True)
class SlowFeatures:
    """A polynomial encoder of vectors.

    Attributes:
        centre: (d,) and ``scale`` (d,), which standardise x.
        scale: see there.
        indices: (F, d) degrees of each polynomial feature in each coordinate.
        mean: (F,) of the features.
        weight: (F, m).
        deltas: (m,) E(h' - h)² of each coordinate, rising: 2(1 - ρ) for a linear image of Gaussian latents.
    """

    centre: np.ndarray
    scale: np.ndarray
    indices: np.ndarray
    mean: np.ndarray
    weight: np.ndarray
    deltas: np.ndarray

    def encode(self, x: np.ndarray) -> np.ndarray:
        """Encode x (N, d) to h (N, m)."""
        return (_features(x, self.centre, self.scale, self.indices) - self.mean) @ self.weight


def fit_slow_features(x: np.ndarray, x_after: np.ndarray, dim: int, degree: int = 3) -> SlowFeatures:
    """Fit the slowest features of degree up to ``degree`` to pairs.

    Args:
        x: (N, d) of one view.
        x_after: (N, d) of the other.
        dim: m, how many.
        degree: of the polynomials in the standardised coordinates of x.

    Raises:
        ValueError: more unknowns than samples, fewer features than ``dim``, or values that are not finite.
    """
    x, x_after = np.asarray(x, np.float64), np.asarray(x_after, np.float64)
    if not (np.isfinite(x).all() and np.isfinite(x_after).all()):
        raise ValueError("slow features need finite values")
    indices = multi_indices(x.shape[1], degree)[1:]  # without the constant
    if len(indices) < dim or 2 * len(x) <= len(indices):
        raise ValueError(f"{len(indices)} features and {len(x)} pairs are too few for {dim} slow features")
    both = np.concatenate([x, x_after])
    centre, scale = both.mean(0), both.std(0)
    scale = np.where(scale > 0, scale, 1.0)
    features = _features(both, centre, scale, indices)
    mean = features.mean(0)
    variance, basis = np.linalg.eigh(np.cov(features.T, bias=True).reshape(len(indices), -1))
    kept = variance > 1e-10 * variance[-1]  # directions that the data do not excite say nothing
    if kept.sum() < dim:
        raise ValueError(f"the data excite {kept.sum()} features, fewer than the {dim} slow ones asked for")
    white = basis[:, kept] / np.sqrt(variance[kept])
    steps = (features[len(x) :] - features[: len(x)]) @ white
    deltas, slow = np.linalg.eigh(steps.T @ steps / len(steps))
    return SlowFeatures(centre, scale, indices, mean, white @ slow[:, :dim], deltas[:dim])


def _features(x: np.ndarray, centre: np.ndarray, scale: np.ndarray, indices: np.ndarray) -> np.ndarray:
    return hermite_modes((np.asarray(x, np.float64) - centre) / scale, indices)
