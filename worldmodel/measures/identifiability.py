"""Linear identifiability: how far the embedding is from an orthogonal image of the true latents.

Maps are fitted on training episodes and scored on held-out ones (Klindt, LeCun, Balestriero, arXiv 2605.26379).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from worldmodel.data.episodes import Episodes
from worldmodel.data.streaming import StreamedEpisodes
from worldmodel.measures.certificate import Certificate, certificate
from worldmodel.stats.intervals import resample
from worldmodel.stats.linear import fit_affine, r2_score

if TYPE_CHECKING:
    from worldmodel.encoders.encoder import Encoder


@dataclass(frozen=True)
class Identifiability:
    """How linearly an embedding h (m,) identifies the latents z (n,).

    Attributes:
        r2_hz: R² of z from h, mean over latents, each of which counts alike.
        r2_zh: R² of h from z, mean over the embedding's coordinates.
        r2_per_latent: R² of each latent from h.
        r2_per_coordinate: R² of each coordinate of h from z.
        orthogonality_error: ‖AᵀA - I‖_F of the fitted map h = A z + b, as it is (not whitened first); at least
            √(n - m) where the embedding has fewer coordinates than there are latents.
        true_error: E‖h - Q z‖², both centred, Q the best matrix with orthonormal columns or rows (Procrustes).
        ceiling_per_latent: best R² that any encoder could reach, where known.
        r2_hz_ci95: 95% interval of ``r2_hz``, from a bootstrap over held-out episodes, where they are known.
        r2_per_latent_ci95: the same for each latent.
    """

    r2_hz: float
    r2_zh: float
    r2_per_latent: tuple[float, ...]
    r2_per_coordinate: tuple[float, ...]
    orthogonality_error: float
    true_error: float
    ceiling_per_latent: tuple[float, ...] | None = None
    r2_hz_ci95: tuple[float, float] | None = None
    r2_per_latent_ci95: tuple[tuple[float, float], ...] | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the fields as JSON values."""
        return {name: list(value) if isinstance(value, tuple) else value for name, value in vars(self).items()}


def identifiability(
    encoder: "Encoder", episodes: Episodes | StreamedEpisodes, ceiling: Sequence[float] | None = None
) -> Identifiability:
    """Measure an encoder: maps are fitted on ``episodes.train`` and scored on ``episodes.heldout``.

    Args:
        encoder: frames to embeddings.
        episodes: frames with their true latents.
        ceiling: best R² per latent (``LatentSpec.ceiling()``), reported beside.
    """
    train, heldout = episodes.train, episodes.heldout
    h_train, h_heldout = encoder.encode(train.frames), encoder.encode(heldout.frames)
    return measure(h_train, train.latents, h_heldout, heldout.latents, ceiling, offsets=heldout.offsets)


def measure(
    h_fit: np.ndarray,
    z_fit: np.ndarray,
    h: np.ndarray,
    z: np.ndarray,
    ceiling: Sequence[float] | None = None,
    *,
    offsets: np.ndarray | None = None,
    seed: int = 0,
) -> Identifiability:
    """Measure embeddings: maps are fitted on (h_fit, z_fit) and scored on (h, z), arrays (N, m) and (N, n).

    Args:
        h_fit: embeddings of training episodes.
        z_fit: their latents.
        h: embeddings of held-out episodes.
        z: their latents.
        ceiling: best R² per latent, reported beside.
        offsets: where the held-out episodes begin (E + 1,); with it, R² comes with intervals over episodes.
        seed: of their bootstrap.

    Raises:
        ValueError: too few samples, shapes that do not match, or values that are not finite.
    """
    if not z_fit.shape[1]:
        raise ValueError("the data has no true latents: there is nothing to identify")
    decode, encode = fit_affine(h_fit, z_fit), fit_affine(z_fit, h_fit)
    h, z = np.asarray(h, np.float64), np.asarray(z, np.float64)
    if len(h) != len(z) or h.shape[1:] != h_fit.shape[1:] or z.shape[1:] != z_fit.shape[1:]:
        raise ValueError(f"held-out embeddings {h.shape} and latents {z.shape} do not match each other, or the fitted")
    if not (np.isfinite(h).all() and np.isfinite(z).all()):
        raise ValueError("held-out embeddings or latents are not finite")
    r2_per_latent, r2_per_coordinate = r2_score(z, decode(h)), r2_score(h, encode(z))
    gram = encode.weight @ encode.weight.T  # AᵀA, since h = A z + b and weight = Aᵀ
    rotation = procrustes(h_fit, z_fit)
    gap = (h - h_fit.mean(0, np.float64)) - (z - z_fit.mean(0, np.float64)) @ rotation.T
    intervals = None if offsets is None else _r2_intervals(z, decode(h), offsets, seed)
    return Identifiability(
        r2_hz=float(r2_per_latent.mean()),
        r2_zh=float(r2_per_coordinate.mean()),
        r2_per_latent=tuple(r2_per_latent.tolist()),
        r2_per_coordinate=tuple(r2_per_coordinate.tolist()),
        orthogonality_error=float(np.linalg.norm(gram - np.eye(len(gram)))),
        true_error=float((gap**2).sum(1).mean()),
        ceiling_per_latent=None if ceiling is None else tuple(float(value) for value in ceiling),
        r2_hz_ci95=intervals[0] if intervals else None,
        r2_per_latent_ci95=tuple(intervals[1:]) if intervals else None,
    )


def _r2_intervals(z: np.ndarray, prediction: np.ndarray, offsets: np.ndarray, seed: int) -> list[tuple[float, float]]:
    """95% intervals of the mean R² and of each latent's.

    Frames of one episode depend on each other, so whole episodes are drawn, by their sums.
    """
    centred = z - z.mean(0)
    parts = [
        np.add.reduceat(x, offsets[:-1]) for x in ((z - prediction) ** 2, centred**2, centred, np.ones((len(z), 1)))
    ]

    def r2(chosen: np.ndarray) -> np.ndarray:
        residual, squares, total, count = (part[chosen].sum(0) for part in parts)
        variation = squares - total**2 / count
        scores = np.where(variation > 0, 1 - residual / np.where(variation > 0, variation, 1.0), 0.0)
        return np.append(scores.mean(), scores)

    return [(interval.low, interval.high) for interval in resample(r2, len(parts[0]), seed=seed)]


def procrustes(h: np.ndarray, z: np.ndarray) -> np.ndarray:
    """Return Q (m, n) with orthonormal columns (rows when m < n) that minimises E‖(h - mean) - Q (z - mean)‖²."""
    h, z = np.asarray(h, np.float64), np.asarray(z, np.float64)
    left, _, right = np.linalg.svd((h - h.mean(0)).T @ (z - z.mean(0)), full_matrices=False)
    return left @ right


def certify(
    encoder: "Encoder", episodes: Episodes | StreamedEpisodes, lag: int = 1, rho: float | None = None, seed: int = 0
) -> Certificate:
    """Certify an encoder on ``episodes.heldout``, without looking at their latents.

    Args:
        encoder: frames to embeddings.
        episodes: data; ρ is taken from its card unless given.
        lag: control steps of a pair.
        rho: correlation of the latents across one control step.
        seed: of the bootstrap over episodes.

    Raises:
        ValueError: ρ is neither given nor on the card.
    """
    heldout = episodes.heldout
    per_step = episodes.card.mean_rho if rho is None else rho
    if np.isnan(per_step):
        raise ValueError("the data does not tell rho, as it has no true latents that move: give rho")
    return certificate(encoder.encode(heldout.frames), heldout.offsets, lag=lag, rho=per_step**lag, seed=seed)
