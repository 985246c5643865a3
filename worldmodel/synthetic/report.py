"""What a trained encoder of a synthetic world is worth, judged on fresh latents that nothing was fitted on."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch

from worldmodel.measures.certificate import Bound, bound_of_pairs
from worldmodel.measures.identifiability import measure
from worldmodel.stats.laws import shape_of
from worldmodel.stats.linear import fit_affine, r2_score
from worldmodel.stats.spectrum import hermite_spectrum, nonlinear_energy
from worldmodel.synthetic.worlds import World

Encode = Callable[[np.ndarray], np.ndarray]
"""Observations (N, d) to embeddings (N, m), float64."""

_GRID = np.linspace(-3.0, 3.0, 100)
_NODES = {1: 128, 2: 96, 3: 24}  # of quadrature, by the number of latents


@dataclass(frozen=True)
class VectorReport:
    """Maps are fitted on one half of fresh pairs and scored on the other, in float64.

    Attributes:
        r2_hz: R² of z from h, mean over latents, under the law of the views.
        r2_zh: R² of h from z.
        r2_xz: R² of z from x: how linear the mixing itself is.
        r2_grid: R² of z from h on an even grid over [-3, 3]², as the paper's figure has it; None for n ≠ 2.
        orthogonality_error: ‖AᵀA - I‖_F of h = A z + b.
        true_error: E‖h - Q z‖² of the best orthogonal Q.
        alignment: E‖h' - h‖² / 2m.
        alignment_gap: δ, at the true correlation of the two views.
        whitening_error: ε.
        bound: D + (ε + D)², which true_error cannot exceed if the latents are Gaussian.
        certificate: the same bound from embeddings of the scored pairs alone, as a user without latents has it; the
            sampling noise of δ is far larger there.
        nonlinear_energy: W_nl = E‖h - (A z + b)‖².
        energy: per Hermite degree from 0 on, by quadrature; None unless z is Gaussian and n ≤ 3.
    """

    r2_hz: float
    r2_zh: float
    r2_xz: float
    r2_grid: float | None
    orthogonality_error: float
    true_error: float
    alignment: float
    alignment_gap: float
    whitening_error: float
    bound: float
    certificate: float
    nonlinear_energy: float
    energy: tuple[float, ...] | None


def examine(encode: Encode, world: World, count: int = 20_000, seed: int = 0) -> VectorReport:
    """Judge an encoder of a world's observations.

    Args:
        encode: the encoder.
        world: what it was trained on.
        count: fresh pairs to fit maps on, and as many again to score them on.
        seed: of these pairs; training with any seed does not meet them.

    Raises:
        ValueError: embeddings that are not finite, or too few pairs for a map.
    """
    generator = torch.Generator().manual_seed(seed + 7_000_001)
    z = world.draw_pairs(2 * count, generator, torch.float64)
    x = world.observe(z).numpy()
    first, second = (encode(view) for view in x)
    latents, fit, score = z[0].numpy(), slice(count), slice(count, None)
    found = measure(first[fit], latents[fit], first[score], latents[score])
    scored = z[:, score].numpy(), np.stack([first, second])[:, score]
    moments = _Moments.of(*scored, world.correlation, shape_of(world.law) == 2)
    bound = Bound.of(moments.steps, moments.covariance, world.correlation)
    direct = fit_affine(x[0][fit], latents[fit])
    return VectorReport(
        r2_hz=found.r2_hz,
        r2_zh=found.r2_zh,
        r2_xz=float(r2_score(latents[score], direct(x[0][score])).mean()),
        r2_grid=_on_a_grid(encode, world) if world.latents == 2 else None,
        orthogonality_error=found.orthogonality_error,
        true_error=moments.true_error,
        alignment=moments.steps / (2 * first.shape[1]),
        alignment_gap=bound.alignment_gap,
        whitening_error=bound.whitening_error,
        bound=bound.bound,
        certificate=bound_of_pairs(first[score], second[score], world.correlation).bound,
        nonlinear_energy=nonlinear_energy(first[score], latents[score]),
        energy=_energy(encode, world),
    )


@dataclass(frozen=True)
class _Moments:
    """Second moments of h = A z + b + r, with those of z put in exactly: mean 0, covariance I, correlation ρ.

    Only what has r in it is sampled, so that a nearly linear h has nearly no sampling noise. Gaussian latents of one
    view do not correlate with r of the other either, since E[z' | z] is linear: that term is left out, too.

    Attributes:
        steps: E‖h' - h‖².
        covariance: Cov(h) (m, m).
        cross: Cov(h, z) (m, n).
    """

    steps: float
    covariance: np.ndarray
    cross: np.ndarray

    @classmethod
    def of(cls, z: np.ndarray, h: np.ndarray, rho: float, gaussian: bool) -> "_Moments":
        """Take the moments of latents (2, N, n) and embeddings (2, N, m) of the two views."""
        both = z.reshape(-1, z.shape[2]), h.reshape(-1, h.shape[2])
        linear = fit_affine(*both)
        A, rest = linear.weight.T, h - linear(z)  # the rest of a fit is centred, and uncorrelated with z
        left = rest[1] - rest[0]
        steps = 2 * (1 - rho) * (A**2).sum() + (left**2).sum(1).mean()
        if not gaussian:
            steps += 2 * ((z[1] - z[0]) @ linear.weight * left).sum(1).mean()
        flat = rest.reshape(-1, h.shape[2])
        return cls(float(steps), A @ A.T + flat.T @ flat / len(flat), A)

    @property
    def true_error(self) -> float:
        """E‖h - Q z‖² of the best orthogonal Q, both centred: tr Cov(h) + min(m, n) - 2 ‖Cov(h, z)‖_*."""
        kept = min(self.cross.shape)
        nuclear = np.linalg.svd(self.cross, compute_uv=False).sum()
        return float(np.trace(self.covariance) + kept - 2 * nuclear)


def _on_a_grid(encode: Encode, world: World) -> float:
    z = np.stack(np.meshgrid(_GRID, _GRID, indexing="ij"), axis=-1).reshape(-1, 2)
    h = encode(world.observe(torch.from_numpy(z)).numpy())
    return float(r2_score(z, fit_affine(h, z)(h)).mean())


def _energy(encode: Encode, world: World) -> tuple[float, ...] | None:
    if shape_of(world.law) != 2 or world.latents not in _NODES:
        return None

    def of_latents(z: np.ndarray) -> np.ndarray:
        return encode(world.observe(torch.from_numpy(z)).numpy())

    spectrum = hermite_spectrum(of_latents, world.latents, degree=8, nodes=_NODES[world.latents])
    return (*spectrum.energy, spectrum.beyond)
