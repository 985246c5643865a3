"""Objectives: pure functions of the embeddings of a batch of pairs, free of logging and devices."""

from dataclasses import dataclass
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from worldmodel.sigreg import random_slices, sigreg


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

    ``floor`` is added to the variances, so that a collapsed embedding stays finite.
    """
    pooled = views.reshape(-1, views.shape[-1])
    centred = pooled - pooled.mean(0)
    identity = torch.eye(views.shape[-1], dtype=views.dtype, device=views.device)
    factor = torch.linalg.cholesky(centred.T @ centred / len(centred) + floor * identity)
    return torch.linalg.solve_triangular(factor, centred.T, upper=False).T.reshape(views.shape)
