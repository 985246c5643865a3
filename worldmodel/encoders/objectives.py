"""Objectives: pure functions of the embeddings of a batch of pairs, free of logging and devices."""

import math
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from worldmodel.encoders.sigreg import random_slices, sigreg


class ObjectiveValue(NamedTuple):
    """What an objective returns, each a 0-dimensional tensor.

    Attributes:
        loss: what training minimises.
        alignment: E‖h' - h‖² / 2m in the objective's own coordinates; 1 - ρ at the optimum of a Gaussian world.
        regulariser: the term that forbids collapse, unweighted.
    """

    loss: Tensor
    alignment: Tensor
    regulariser: Tensor


class Objective(Protocol):
    """Anything that scores the two views of a batch of pairs."""

    def __call__(self, views: Tensor, generator: torch.Generator) -> ObjectiveValue:
        """Score ``views`` (2, B, m) float; randomness comes from ``generator`` alone."""
        ...


@dataclass(frozen=True)
class LeJEPA:
    """LeJEPA: align the two views of a pair, keep the embedding an isotropic Gaussian.

        loss = (1 - w) · E‖h' - h‖² / 2m  +  w · mean over views and slices of N · EppsPulley

    (Klindt, LeCun, Balestriero, arXiv 2605.26379; SIGReg as in arXiv 2511.08544.) With ``whiten`` the alignment is
    taken after both views together were centred and whitened by the Cholesky factor of their m x m covariance, which
    is differentiated through. At the optimum, where h is white, the two agree; on the way there the whitened one
    cannot be lowered by shrinking h, so a smaller weight suffices and training converges in about half the steps.

    Attributes:
        weight: w, between 0 and 1.
        whiten: measure the alignment of the whitened embedding.
        slices: random directions per step.
        knots: knots of the quadrature on [0, 3].
    """

    weight: float = 0.02
    whiten: bool = True
    slices: int = 256
    knots: int = 17

    def __post_init__(self) -> None:
        if not 0 <= self.weight <= 1:
            raise ValueError(f"the weight of SIGReg is {self.weight}; it must lie between 0 and 1")

    def __call__(self, views: Tensor, generator: torch.Generator) -> ObjectiveValue:
        """Score ``views`` (2, B, m)."""
        with torch.autocast(views.device.type, enabled=False):
            views = views if views.dtype == torch.float64 else views.float()
            first, second = whitened(views) if self.whiten else views
            alignment = (second - first).square().mean() / 2
            directions = random_slices(views.shape[-1], self.slices, generator)
            regulariser = sigreg(views, directions, self.knots)
            return ObjectiveValue((1 - self.weight) * alignment + self.weight * regulariser, alignment, regulariser)


def whitened(views: Tensor, floor: float = 1e-5) -> Tensor:
    """Centre and whiten all views together: (V, B, m) to (V, B, m) with mean 0 and covariance I.

    ``floor`` is added to the variances, so that a collapsed embedding stays finite. Where the covariance cannot be
    factored, since a few far values leave the rest to rounding, a thousandth of the mean variance is added, too. What
    cannot be factored even then is NaN: raising an error would have to wait for a GPU at every step.
    """
    pooled = views.reshape(-1, views.shape[-1])
    centred = pooled - pooled.mean(0)
    identity = torch.eye(views.shape[-1], dtype=views.dtype, device=views.device)
    covariance = centred.T @ centred / len(centred) + floor * identity
    failed = torch.linalg.cholesky_ex(covariance.detach()).info > 0
    more = torch.where(failed, 1e-3 * covariance.detach().diagonal().mean(), 0.0)
    factor, info = torch.linalg.cholesky_ex(covariance + more * identity)
    factor = factor.masked_fill(info > 0, torch.nan)
    return torch.linalg.solve_triangular(factor, centred.T, upper=False).T.reshape(views.shape)


@dataclass(frozen=True)
class Whitening:
    """Align the views and pull the covariance towards the identity; the paper's tables call this one VICReg.

        loss = (1 - w) · E‖h' - h‖² / 2m  +  w · ‖Cov(h) - I‖²_F / m

    (Klindt, LeCun, Balestriero, arXiv 2605.26379.) The covariance is that of both views together.

    Attributes:
        weight: w, between 0 and 1.
    """

    weight: float = 0.5

    def __post_init__(self) -> None:
        if not 0 <= self.weight <= 1:
            raise ValueError(f"the weight of whitening is {self.weight}; it must lie between 0 and 1")

    def __call__(self, views: Tensor, generator: torch.Generator) -> ObjectiveValue:
        """Score ``views`` (2, B, m); there is nothing random in it."""
        with torch.autocast(views.device.type, enabled=False):
            views = _precise(views)
            alignment = _alignment(views)
            covariance = _covariance(views.reshape(-1, views.shape[-1]))
            off = covariance - torch.eye(len(covariance), dtype=views.dtype, device=views.device)
            regulariser = off.square().sum() / len(covariance)
            return ObjectiveValue((1 - self.weight) * alignment + self.weight * regulariser, alignment, regulariser)


@dataclass(frozen=True)
class VICReg:
    """Invariance, variance, covariance (Bardes, Ponce, LeCun, arXiv 2105.04906).

        loss = a · E‖h' - h‖² / m  +  mean over views of [v · mean_j max(0, 1 - std h_j)  +  c · Σ_{i≠j} Cov_ij² / m]

    (the covariance is summed over views, as published).

    Attributes:
        invariance: a.
        variance: v.
        covariance: c.
    """

    invariance: float = 25.0
    variance: float = 25.0
    covariance: float = 1.0

    def __call__(self, views: Tensor, generator: torch.Generator) -> ObjectiveValue:
        """Score ``views`` (2, B, m); there is nothing random in it."""
        with torch.autocast(views.device.type, enabled=False):
            views = _precise(views)
            alignment, regulariser = _alignment(views), views.new_zeros(())
            for view in views:
                covariance = _covariance(view, correction=1)
                variances = covariance.diagonal()
                hinge = (1 - (variances + 1e-4).sqrt()).clamp_min(0).mean() / len(views)
                off = (covariance.square().sum() - variances.square().sum()) / len(covariance)
                regulariser = regulariser + self.variance * hinge + self.covariance * off
            return ObjectiveValue(2 * self.invariance * alignment + regulariser, alignment, regulariser)


@dataclass(frozen=True)
class InfoNCE:
    """Tell the partner of a pair from the rest of the batch, by a Gaussian kernel, both ways.

        loss = E‖h' - h‖² / 2σ²  +  mean of log Σ_j exp(-‖h_i - h'_j‖² / 2σ²) over rows i, and over columns

    (van den Oord et al., arXiv 1807.03748; with this kernel in Klindt, LeCun, Balestriero, arXiv 2605.26379.)
    An encoder that can choose its scale makes the kernel as wide as it needs; for one that cannot, such as a coupling,
    :meth:`matched` chooses it.

    Attributes:
        sigma: σ, in the embedding's unit.
    """

    sigma: float = 1.0

    @classmethod
    def matched(cls, correlation: float) -> "InfoNCE":
        """Return the objective whose best linear embedding of Gaussian latents of variance 1 has variance 1, too.

        In large batches h = z costs, per latent and with s = 1/σ²,

            s (1 - ρ) - log(1 + s) / 2 - s / 2(1 + s),

        which is least where u = 1/(1 + s) solves u² + u = 2(1 - ρ).

        Args:
            correlation: ρ of the two views, between 0 and 1.

        >>> round(InfoNCE.matched(0.9025).sigma, 3)
        0.448
        """
        if not 0 < correlation < 1:
            raise ValueError(f"the views' correlation is {correlation}; it must lie between 0 and 1")
        u = (math.sqrt(1 + 8 * (1 - correlation)) - 1) / 2
        return cls(math.sqrt(u / (1 - u)))

    def __post_init__(self) -> None:
        if not self.sigma > 0:
            raise ValueError(f"the kernel's width sigma is {self.sigma}; it must be positive")

    def __call__(self, views: Tensor, generator: torch.Generator) -> ObjectiveValue:
        """Score ``views`` (2, B, m); there is nothing random in it."""
        with torch.autocast(views.device.type, enabled=False):
            first, second = views = _precise(views)
            alignment = _alignment(views)
            squares = first.square().sum(-1)[:, None] + second.square().sum(-1) - 2 * first @ second.T
            logits = squares.clamp_min(0) / (-2 * self.sigma**2)
            regulariser = (logits.logsumexp(0).mean() + logits.logsumexp(1).mean()) / 2
            pull = alignment * (views.shape[-1] / self.sigma**2)
            return ObjectiveValue(pull + regulariser, alignment, regulariser)


@dataclass(frozen=True)
class BarlowTwins:
    """Make the correlation of the views, coordinate by coordinate, the identity (Zbontar et al., arXiv 2103.03230).

        loss = Σ_i (1 - C_ii)² + w Σ_{i≠j} C_ij²,   C the correlations (m, m) of the coordinates of h with those of h'

    At the optimum of a Gaussian world C = ρI.

    Attributes:
        weight: w.
    """

    weight: float = 5e-3

    def __call__(self, views: Tensor, generator: torch.Generator) -> ObjectiveValue:
        """Score ``views`` (2, B, m); there is nothing random in it."""
        with torch.autocast(views.device.type, enabled=False):
            views = _precise(views)
            centred = views - views.mean(1, keepdim=True)
            first, second = centred / (centred.square().mean(1, keepdim=True) + 1e-5).sqrt()
            correlation = first.T @ second / len(first)
            diagonal = correlation.diagonal()
            off = correlation.square().sum() - diagonal.square().sum()
            return ObjectiveValue((1 - diagonal).square().sum() + self.weight * off, _alignment(views), off)


def _precise(views: Tensor) -> Tensor:
    return views if views.dtype == torch.float64 else views.float()


def _alignment(views: Tensor) -> Tensor:
    return (views[1] - views[0]).square().mean() / 2


def _covariance(h: Tensor, correction: int = 0) -> Tensor:
    centred = h - h.mean(0)
    return centred.T @ centred / max(1, len(h) - correction)
