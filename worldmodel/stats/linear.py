"""Affine maps by least squares, solved on X itself (never on XᵀX), with rank and conditioning."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class AffineMap:
    """y = x @ weight + bias.

    Attributes:
        weight: (inputs, outputs).
        bias: (outputs,).
        rank: rank of the inputs that the map was fitted on, centred.
        condition: their condition number; infinite when a direction is not excited.
    """

    weight: np.ndarray
    bias: np.ndarray
    rank: int
    condition: float

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """Map (..., inputs) to (..., outputs)."""
        return x @ self.weight + self.bias


def fit_affine(x: np.ndarray, y: np.ndarray) -> AffineMap:
    """Fit y (N, outputs) from x (N, inputs) by least squares; of many solutions, the one of least norm.

    Raises:
        ValueError: fewer samples than unknowns, or values that are not finite.
    """
    x, y = np.asarray(x, np.float64), np.asarray(y, np.float64)
    if len(x) != len(y) or len(x) <= x.shape[1]:
        raise ValueError(f"{len(x)} samples of {x.shape[1]} inputs and {len(y)} of the outputs: too few to fit a map")
    if not (np.isfinite(x).all() and np.isfinite(y).all()):
        raise ValueError("cannot fit a map to values that are not finite")
    x_mean, y_mean = x.mean(0), y.mean(0)
    weight, _, rank, singular = np.linalg.lstsq(x - x_mean, y - y_mean, rcond=None)
    condition = float(singular[0] / singular[-1]) if singular[-1] > 0 else float("inf")
    return AffineMap(weight, y_mean - x_mean @ weight, int(rank), condition)


def r2_score(y: np.ndarray, prediction: np.ndarray) -> np.ndarray:
    """R² of each column: 1 - Σ(y - ŷ)² / Σ(y - mean)²; 0 for a column that does not vary."""
    y = np.asarray(y, np.float64)
    total = ((y - y.mean(0)) ** 2).sum(0)
    residual = ((y - prediction) ** 2).sum(0)
    return np.where(total > 0, 1 - residual / np.where(total > 0, total, 1.0), 0.0)


def whiten(x: np.ndarray) -> np.ndarray:
    """Return the rows of x (N, m) with mean 0 and covariance I; directions without spread are left out."""
    x = np.asarray(x, np.float64)
    left, singular, _ = np.linalg.svd(x - x.mean(0), full_matrices=False)
    return left[:, singular > 1e-9 * singular[0]] * np.sqrt(len(x))
