"""Is the law of the latents what the theory asks for: Gaussian, isotropic, covering the space?"""

from dataclasses import dataclass

import numpy as np
from scipy import stats


@dataclass(frozen=True)
class Gaussianity:
    """How far latents are from a standard isotropic Gaussian.

    Attributes:
        skewness: per latent; 0 for a Gaussian.
        excess_kurtosis: per latent; 0 for a Gaussian.
        distance: per latent, the Kolmogorov-Smirnov distance to the Gaussian of the same mean and std; 0 to 1.
        anisotropy: largest over smallest eigenvalue of the covariance; 1 when isotropic.
        coverage: share of the cells of the cube [-2, 2]ⁿ (5 per latent, first 3 latents) that hold a frame.
    """

    skewness: tuple[float, ...]
    excess_kurtosis: tuple[float, ...]
    distance: tuple[float, ...]
    anisotropy: float
    coverage: float


def gaussianity(latents: np.ndarray) -> Gaussianity:
    """Measure latents (F, n); with n = 0 there is no law, and its numbers are NaN."""
    latents = np.asarray(latents, np.float64)
    if not latents.shape[1]:
        return Gaussianity((), (), (), anisotropy=float("nan"), coverage=float("nan"))
    std = latents.std(0)
    moving = np.where(std > 0, std, 1.0)
    standard = (latents - latents.mean(0)) / moving
    spectrum = np.linalg.eigvalsh(np.atleast_2d(np.cov(latents.T, bias=True)))
    ratio = float(spectrum[-1] / spectrum[0]) if spectrum[0] > 0 else float("inf")
    return Gaussianity(
        skewness=tuple((standard**3).mean(0).tolist()),
        excess_kurtosis=tuple(((standard**4).mean(0) - 3).tolist()),
        distance=tuple(float(stats.kstest(column, "norm").statistic) for column in standard.T),
        anisotropy=ratio,
        coverage=coverage(latents),
    )


def coverage(latents: np.ndarray, cells: int = 5, most: int = 3) -> float:
    """Return the share of the cells of [-2, 2]ⁿ that hold a frame, over the first ``most`` latents."""
    shown = latents[:, :most]
    inside = shown[(np.abs(shown) < 2).all(1)]
    index = ((inside + 2) / 4 * cells).astype(int)
    return len(np.unique(index, axis=0)) / cells ** shown.shape[1] if len(inside) else 0.0
