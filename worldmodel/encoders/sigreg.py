"""SIGReg: the sketched isotropic Gaussian regulariser (Balestriero & LeCun, LeJEPA, arXiv 2511.08544).

Embeddings are projected on random unit directions (slices), and each projection's empirical characteristic function is
compared with that of a standard Gaussian (the Epps-Pulley statistic)

    T = N ∫ |φ_N(t) - exp(-t²/2)|² exp(-t²/2) dt,    φ_N(t) = 1/N Σ_i exp(i t x_i),

over [-t_max, t_max], by the trapezoid rule on equispaced knots of [0, t_max], doubled since the integrand is even. With
t_max = 3 a perfect Gaussian batch has T ≈ 1.053 on average whatever N; a batch collapsed to zero has T ≈ 0.402 N.
"""

import math
from typing import Any, NamedTuple

import torch
from torch import Tensor

GAUSSIAN_FLOOR = math.sqrt(2 * math.pi) * (math.erf(3 / math.sqrt(2)) - math.erf(3 * math.sqrt(1.5)) / math.sqrt(3))
"""Mean of the statistic over Gaussian batches: ∫ (1 - exp(-t²)) exp(-t²/2) dt over [-3, 3] (17 knots give 1.0525)."""

_BLOCK = 65_536
"""Numbers per block of slices on a CPU with one thread: it stays in the cache."""
_SMALL_BLOCK = 16_384
"""The same with more threads: too little for torch to start any on. Threads that wait for each other after every one of
hundreds of small steps cost a second on a machine with other work."""


def random_slices(dimensions: int, slices: int, generator: torch.Generator) -> Tensor:
    """Draw unit vectors, uniform on the sphere: (dimensions, slices), on the generator's device."""
    directions = torch.randn(dimensions, slices, generator=generator, device=generator.device)
    return directions / directions.norm(dim=0, keepdim=True).clamp_min(1e-12)


def sigreg(h: Tensor, directions: Tensor, knots: int = 17, t_max: float = 3.0) -> Tensor:
    """Mean Epps-Pulley statistic of the projections of each view, in float32 with autocast off.

    Args:
        h: embeddings (V, N, m). Each view is its own sample: pooling the two views of a pair would break the
            independence that the statistic assumes (its floor would rise to about 2.1 at ρ = 0.95).
        directions: unit vectors (m, S).
        knots: equispaced knots on [0, t_max].
        t_max: last knot.

    Returns:
        The statistic, averaged over views and slices; finite for one sample and for constant inputs.
    """
    with torch.autocast(h.device.type, enabled=False):
        dtype = h.dtype if h.dtype == torch.float64 else torch.float32
        return _EppsPulley.apply(directions.to(dtype).T @ h.to(dtype).transpose(1, 2), knots, t_max).mean()


def sigreg_direct(h: Tensor, directions: Tensor, knots: int = 17, t_max: float = 3.0) -> Tensor:
    """Compute the same as :func:`sigreg` by the formula itself: slower, any order of derivative."""
    t = torch.linspace(0, t_max, knots, dtype=h.dtype, device=h.device)
    window = torch.exp(-(t**2) / 2)  # the weight of the integral, and the Gaussian's own characteristic function
    weights = 2 * torch.full_like(t, t_max / (knots - 1)) * window
    weights[[0, -1]] /= 2  # trapezoid
    angles = (h @ directions)[..., None] * t  # (V, N, S, knots)
    gap = angles.cos().mean(-3) - window
    return ((gap**2 + angles.sin().mean(-3) ** 2) @ weights).mean() * h.shape[-2]


class _EppsPulley(torch.autograd.Function):
    """The statistic (V, S) of projections (V, S, N), with its gradient gathered in the same walk over the knots."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, knots: int, t_max: float) -> Tensor:
        rows = x.reshape(-1, x.shape[-1])
        values, gradient = x.new_empty(len(rows)), torch.empty_like(rows)
        block = _BLOCK if torch.get_num_threads() == 1 else _SMALL_BLOCK
        size = len(rows) if x.is_cuda else max(1, block // max(1, x.shape[-1]))
        constants = _Knots.of(knots, t_max, x)
        for first in range(0, len(rows), size):
            part = slice(first, first + size)
            values[part], gradient[part] = _walk(rows[part], constants)
        ctx.save_for_backward(gradient.reshape(x.shape))
        return values.reshape(x.shape[:-1])

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor, None, None]:
        (gradient,) = ctx.saved_tensors
        return gradient * grad_output[..., None], None, None


class _Knots(NamedTuple):
    """What the walk needs of the knots k = 1, 2, ... (that at 0 contributes nothing), each with its sign s_k.

    Attributes:
        step: distance of the knots.
        signs: s_k for k = 0, 1, ...: 1, 1, -1, -1, 1, ...
        target: s_k φ_k (K, 1), the signed cosines' means if the sample were Gaussian.
        weight: w_k (K,).
        swap: 2 w_k t_k (1, -1) as (K, 2, 1), and ``shift`` (K, 2, 1): what the means turn into the gradient with.
        shift: see there.
    """

    step: float
    signs: list[float]
    target: Tensor
    weight: Tensor
    swap: Tensor
    shift: Tensor

    @classmethod
    def of(cls, knots: int, t_max: float, like: Tensor) -> "_Knots":
        step = t_max / (knots - 1)
        signs = [1.0 if k % 4 < 2 else -1.0 for k in range(knots)]
        t = step * torch.arange(1, knots, dtype=like.dtype, device=like.device)
        window = torch.exp(-(t**2) / 2)
        weight = 2 * step * window
        weight[-1:] /= 2  # trapezoid
        target = torch.tensor(signs[1:], dtype=like.dtype, device=like.device) * window
        slope = (2 * weight * t)[:, None, None]
        swap = torch.cat([slope, -slope], dim=1)
        shift = torch.cat([torch.zeros_like(slope), slope * target[:, None, None]], dim=1)
        return cls(step, signs, target[:, None], weight, swap, shift)


def _walk(x: Tensor, knots: _Knots) -> tuple[Tensor, Tensor]:
    """Walk the knots: the statistic (S,) and its gradient (S, N) from projections x (S, N).

    Knots are equispaced, so with a = x · step the cosines and sines of one knot follow from those of the two before,
    cos (k + 1)a = 2 cos a · cos ka - cos (k - 1)a. Cosines and sines lie in one tensor (2, S, N), and carry a sign s_k
    with s_{k+1} = -s_{k-1}, which makes that a single multiplication and addition in place. As soon as a knot's values
    are there, so are the batch means, and with them that knot's part of the gradient:
    d T / d x_i = Σ_k 2 w_k t_k [mean sin · cos(t_k x_i) - (mean cos - φ_k) · sin(t_k x_i)].
    """
    angle = x * knots.step
    now = torch.stack([angle.cos(), angle.sin()])
    before = torch.stack([torch.ones_like(x), torch.zeros_like(x)])
    twice, gradient = 2 * now[0], torch.zeros_like(now)
    means = x.new_empty(len(knots.weight), 2, len(x))
    for k, mean in enumerate(means, start=1):
        torch.mean(now, dim=2, out=mean)
        slope = torch.addcmul(knots.shift[k - 1], knots.swap[k - 1], mean.flip(0))
        gradient.addcmul_(now, slope[..., None])
        if k < len(means):
            ratio = knots.signs[k + 1] / knots.signs[k]
            before, now = now, before.addcmul_(twice, now, value=ratio)
    means[:, 0] -= knots.target
    return (means.square_().sum(1).T @ knots.weight) * x.shape[1], gradient[0].add_(gradient[1])
