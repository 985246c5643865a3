"""What happened during training, and the alarms that read it."""

import dataclasses
import json
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from worldmodel.utils.files import to_plain, write_json

_STUCK = 1.25  # trained encoders reach 1.05; a quadratic coordinate among two, at ρ = 0.9, has 1.45


class CollapseWarning(UserWarning):
    """The embedding loses its spread or a dimension."""


class LocalOptimumWarning(UserWarning):
    """Training ended with pairs farther apart than any linear image of the latents would leave them."""


@dataclass(frozen=True)
class TrainingHistory:
    """Values along training, one per report (all lists of equal length).

    Attributes:
        step: optimiser steps done.
        loss: the objective.
        regulariser: its unweighted second term.
        alignment: E‖h' - h‖² of the batch.
        optimum: 2(1 - ρ) tr Cov(h), the least that a linear image of the latents can have; NaN where ρ is not known.
        std: smallest standard deviation among the embedding's coordinates.
        effective_rank: exp of the entropy of the covariance's spectrum, at most m.
        rho: correlation ρ of the latents across a pair.
    """

    step: list[int] = dataclasses.field(default_factory=list)
    loss: list[float] = dataclasses.field(default_factory=list)
    regulariser: list[float] = dataclasses.field(default_factory=list)
    alignment: list[float] = dataclasses.field(default_factory=list)
    optimum: list[float] = dataclasses.field(default_factory=list)
    std: list[float] = dataclasses.field(default_factory=list)
    effective_rank: list[float] = dataclasses.field(default_factory=list)
    rho: list[float] = dataclasses.field(default_factory=list)

    def record(self, step: int, loss: Tensor, regulariser: Tensor, views: Tensor, rho: float) -> None:
        """Append one report from the embeddings ``views`` (2, B, m) of a batch, of pairs with correlation ρ."""
        spread = spread_of(views)
        self.step.append(step)
        self.loss.append(float(loss))
        self.regulariser.append(float(regulariser))
        self.alignment.append(spread.alignment)
        self.optimum.append(spread.optimum(rho))
        self.std.append(spread.std)
        self.effective_rank.append(spread.effective_rank)
        self.rho.append(rho)

    def save(self, path: Path) -> None:
        """Write as JSON; what is not finite becomes ``None``."""
        write_json(path, to_plain(dataclasses.asdict(self)))

    @classmethod
    def load(cls, path: Path) -> "TrainingHistory":
        """Read what :meth:`save` wrote; ``None`` comes back as NaN."""
        columns: dict[str, Any] = json.loads(path.read_text())
        for name, column in columns.items():
            columns[name] = [float("nan") if value is None else value for value in column]
        return cls(**columns)


@dataclass(frozen=True)
class Spread:
    """How embeddings lie: E‖h' - h‖², trace of the covariance, smallest std, effective rank."""

    alignment: float
    trace: float
    std: float
    effective_rank: float

    def optimum(self, rho: float) -> float:
        """Return 2(1 - ρ) tr Cov(h), the least E‖h' - h‖² of a linear image of latents with correlation ρ."""
        return 2 * (1 - rho) * self.trace


def spread_of(views: Tensor) -> Spread:
    """Measure embeddings of pairs (2, B, m)."""
    views = views.detach().double()
    pooled = views.reshape(-1, views.shape[-1])
    covariance = torch.atleast_2d(torch.cov(pooled.T, correction=0))
    spectrum = torch.linalg.eigvalsh(covariance).clamp_min(0)
    share = spectrum / spectrum.sum().clamp_min(1e-300)
    entropy = -(share * share.clamp_min(1e-300).log()).sum()
    return Spread(
        alignment=float((views[1] - views[0]).square().sum(-1).mean()),
        trace=float(covariance.trace()),
        std=float(covariance.diagonal().clamp_min(0).min().sqrt()),
        effective_rank=float(entropy.exp()),
    )


def warn_of_collapse(spread: Spread, dim: int) -> bool:
    """Warn when the embedding has lost its spread or half of a dimension; return whether it did."""
    collapsed = not np.isfinite(spread.std) or spread.std < 0.1 or spread.effective_rank < dim - 0.5
    if collapsed:
        warnings.warn(
            f"the embedding collapses: smallest std {spread.std:.3g}, effective rank {spread.effective_rank:.2f} of "
            f"{dim}; raise the weight of the regulariser, or ask for a smaller dim",
            CollapseWarning,
            stacklevel=3,
        )
    return collapsed


def warn_of_local_optimum(spread: Spread, rho: float) -> bool:
    """Warn when pairs stay far above the optimum 2(1 - ρ) tr Cov(h) of alignment; return whether they do."""
    optimum = spread.optimum(rho)
    stuck = spread.alignment > _STUCK * optimum
    if stuck:
        warnings.warn(
            f"training ended in a local optimum: E‖h'-h‖² = {spread.alignment:.3g} on episodes kept apart, where a "
            f"linear image of the latents has {optimum:.3g}; train longer, with more data, or with another seed",
            LocalOptimumWarning,
            stacklevel=3,
        )
    return stuck
