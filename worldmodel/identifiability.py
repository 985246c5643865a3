"""Linear identifiability: how far the embedding is from an orthogonal image of the true latents.

Maps are fitted on training episodes and scored on held-out ones (Klindt, LeCun, Balestriero, arXiv 2605.26379).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from worldmodel.certificate import Certificate, certificate
from worldmodel.episodes import Episodes
from worldmodel.linear import fit_affine, r2_score

if TYPE_CHECKING:
    from worldmodel.encoder import Encoder


@dataclass(frozen=True)
class Identifiability:
    """How linearly an embedding h (m,) identifies the latents z (n,).

    Attributes:
        r2_hz: R² of z from h, mean over latents.
        r2_zh: R² of h from z, mean over the embedding's coordinates.
        r2_per_latent: R² of each latent from h.
        orthogonality_error: ‖AᵀA - I‖_F of the fitted map h = A z + b, as it is (not whitened first).
        true_error: E‖h - Q z‖², both centred, Q the best matrix with orthonormal columns or rows (Procrustes).
        ceiling_per_latent: best R² that any encoder could reach, where known.
    """

    r2_hz: float
    r2_zh: float
    r2_per_latent: tuple[float, ...]
    orthogonality_error: float
    true_error: float
    ceiling_per_latent: tuple[float, ...] | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the fields as JSON values."""
        return {name: list(value) if isinstance(value, tuple) else value for name, value in vars(self).items()}


def identifiability(encoder: "Encoder", episodes: Episodes, ceiling: Sequence[float] | None = None) -> Identifiability:
    """Measure an encoder: maps are fitted on ``episodes.train`` and scored on ``episodes.heldout``.

    Args:
        encoder: frames to embeddings.
        episodes: frames with their true latents.
        ceiling: best R² per latent (``LatentSpec.ceiling()``), reported beside.
    """
    train, heldout = episodes.train, episodes.heldout
    h_train, h_heldout = encoder.encode(train.frames), encoder.encode(heldout.frames)
    return measure(h_train, train.latents, h_heldout, heldout.latents, ceiling)


def measure(
    h_fit: np.ndarray,
    z_fit: np.ndarray,
    h: np.ndarray,
    z: np.ndarray,
    ceiling: Sequence[float] | None = None,
) -> Identifiability:
    """Measure embeddings: maps are fitted on (h_fit, z_fit) and scored on (h, z), arrays (N, m) and (N, n).

    Raises:
        ValueError: too few samples, or values that are not finite.
    """
    decode, encode = fit_affine(h_fit, z_fit), fit_affine(z_fit, h_fit)
    r2_per_latent = r2_score(z, decode(h))
    gram = encode.weight @ encode.weight.T  # AᵀA, since h = A z + b and weight = Aᵀ
    rotation = procrustes(h_fit, z_fit)
    gap = (h - h_fit.mean(0)) - (z - z_fit.mean(0)) @ rotation.T
    return Identifiability(
        r2_hz=float(r2_per_latent.mean()),
        r2_zh=float(r2_score(h, encode(z)).mean()),
        r2_per_latent=tuple(r2_per_latent.tolist()),
        orthogonality_error=float(np.linalg.norm(gram - np.eye(len(gram)))),
        true_error=float((gap.astype(np.float64) ** 2).sum(1).mean()),
        ceiling_per_latent=None if ceiling is None else tuple(float(value) for value in ceiling),
    )


def procrustes(h: np.ndarray, z: np.ndarray) -> np.ndarray:
    """Return Q (m, n) with orthonormal columns (rows when m < n) that minimises E‖(h - mean) - Q (z - mean)‖²."""
    h, z = np.asarray(h, np.float64), np.asarray(z, np.float64)
    left, _, right = np.linalg.svd((h - h.mean(0)).T @ (z - z.mean(0)), full_matrices=False)
    return left @ right


def certify(
    encoder: "Encoder", episodes: Episodes, lag: int = 1, rho: float | None = None, seed: int = 0
) -> Certificate:
    """Certify an encoder on ``episodes.heldout``, without looking at their latents.

    Args:
        encoder: frames to embeddings.
        episodes: data; ρ is taken from its card unless given.
        lag: control steps of a pair.
        rho: correlation of the latents across one control step.
        seed: of the bootstrap over episodes.
    """
    heldout = episodes.heldout
    per_step = float(np.mean(episodes.card.rho)) if rho is None else rho
    return certificate(encoder.encode(heldout.frames), heldout.offsets, lag=lag, rho=per_step**lag, seed=seed)
