"""Angles that turn all the way round: no scalar follows them, two coordinates do.

The slowest functions on a circle are cos q and sin q, so an embedding of a free hinge is a circle: *circle latents*
give it two coordinates, and the angle is read back by atan2.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from worldmodel.stats.linear import AffineMap, fit_affine, r2_score


@dataclass(frozen=True)
class CircleReport:
    """How well an embedding holds angles (k of them) as points of a circle.

    Attributes:
        r2_cos: R² of cos q from h, per angle.
        r2_sin: R² of sin q from h, per angle.
        r2_angle: 1 - E(q - q̂)² / Var q per angle, q̂ read by atan2, both differences the short way round.
    """

    r2_cos: tuple[float, ...]
    r2_sin: tuple[float, ...]
    r2_angle: tuple[float, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the fields as JSON values."""
        return {name: list(value) for name, value in vars(self).items()}


@dataclass(frozen=True)
class AngleReader:
    """Reads angles from embeddings: an affine map to their cosines and sines, then atan2.

    Attributes:
        to_circle: (..., m) to (..., 2k), cosines first.
    """

    to_circle: AffineMap

    def __call__(self, h: np.ndarray) -> np.ndarray:
        """Read (..., m) as (..., k) rad in ±π."""
        cos, sin = np.split(self.to_circle(h), 2, axis=-1)
        return np.arctan2(sin, cos)


def on_circle(angles: np.ndarray) -> np.ndarray:
    """Return cosines and sines of angles (..., k) in rad: (..., 2k), cosines first.

    >>> on_circle(np.array([0.0])).tolist()
    [1.0, 0.0]
    """
    return np.concatenate([np.cos(angles), np.sin(angles)], axis=-1)


def fit_angle_reader(h: np.ndarray, angles: np.ndarray) -> AngleReader:
    """Fit how embeddings (N, m) are read as angles (N, k) in rad; whole turns make no difference.

    Raises:
        ValueError: fewer samples than unknowns, or values that are not finite.
    """
    return AngleReader(fit_affine(h, on_circle(np.asarray(angles, np.float64))))


def measure_circle(h_fit: np.ndarray, angles_fit: np.ndarray, h: np.ndarray, angles: np.ndarray) -> CircleReport:
    """Measure embeddings (N, m) against angles (N, k) in rad; maps are fitted on the first two arrays.

    Raises:
        ValueError: fewer samples than unknowns, or values that are not finite.
    """
    angles = np.asarray(angles, np.float64)
    reader = fit_angle_reader(h_fit, angles_fit)
    r2_cos, r2_sin = np.split(r2_score(on_circle(angles), reader.to_circle(h)), 2)
    error, spread = (_short_way(part) for part in (reader(h) - angles, angles - _middle(angles)))
    r2_angle = 1 - (error**2).mean(0) / (spread**2).mean(0)
    return CircleReport(*(tuple(values.tolist()) for values in (r2_cos, r2_sin, r2_angle)))


def _middle(angles: np.ndarray) -> np.ndarray:
    """Return the circular mean of angles (N, k): (k,) rad."""
    return np.arctan2(np.sin(angles).mean(0), np.cos(angles).mean(0))


def _short_way(angles: np.ndarray) -> np.ndarray:
    return np.arctan2(np.sin(angles), np.cos(angles))
