"""BatchNorm over the batch of all processes: the statistics, and the gradients, of one process with the whole batch."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from worldmodel.encoders.ranks import Ranks


@contextmanager
def whole_batch_statistics(network: nn.Module, ranks: Ranks) -> Iterator[None]:
    """While it trains, let every BatchNorm of a network take the statistics of the rows of all processes.

    torch's own ``SyncBatchNorm`` does this on GPUs only.
    """
    norms = [m for m in network.modules() if isinstance(m, nn.BatchNorm1d | nn.BatchNorm2d) and ranks.count > 1]
    for norm in norms:
        norm.forward = partial(_forward, norm, ranks)  # type: ignore[method-assign]
    try:
        yield
    finally:
        for norm in norms:
            del norm.forward  # uncovers the class's own


def _forward(norm: nn.BatchNorm1d | nn.BatchNorm2d, ranks: Ranks, x: Tensor) -> Tensor:
    if not norm.training:
        return type(norm).forward(norm, x)
    y, mean, variance, count = _Normalise.apply(x, norm.weight, norm.bias, norm.eps, ranks)
    assert norm.running_mean is not None and norm.running_var is not None and norm.num_batches_tracked is not None
    norm.num_batches_tracked.add_(1)
    momentum = 1 / float(norm.num_batches_tracked) if norm.momentum is None else norm.momentum
    norm.running_mean.lerp_(mean.to(norm.running_mean.dtype), momentum)
    norm.running_var.lerp_((variance * (count / (count - 1))).to(norm.running_var.dtype), momentum)
    return y


class _Normalise(torch.autograd.Function):
    """y = weight · (x - mean) / √(variance + eps) + bias for x (B, C, ...), mean and variance those of all processes.

    Means and variances of the processes are combined by Chan's formula, which loses no digits as sums of squares do.
    Also returns mean (C,), variance (C,) and the number of values behind them.
    """

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, weight: Tensor, bias: Tensor, eps: float, ranks: Ranks
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        values = x if x.dtype == torch.float64 else x.float()
        variance, mean = torch.var_mean(values, _all_but_channels(x), correction=0)
        count = mean.new_full((1,), x.numel() // len(mean))
        rows = ranks.gathered(torch.cat([mean, variance, count]))
        means, variances, counts = rows.split([len(mean), len(mean), 1], dim=1)
        total = counts.sum()
        mean = (counts * means).sum(0) / total
        variance = (counts * (variances + (means - mean).square())).sum(0) / total
        scale = (variance + eps).rsqrt()
        normal = (values - _channels(mean, x)) * _channels(scale, x)
        ctx.save_for_backward(normal, weight, scale, total)
        ctx.ranks = ranks
        ctx.mark_non_differentiable(mean, variance, total)
        return (normal * _channels(weight, x) + _channels(bias, x)).to(x.dtype), mean, variance, total

    @staticmethod
    def backward(ctx: Any, grad_y: Tensor, *_: Any) -> tuple[Tensor, Tensor, Tensor, None, None]:
        normal, weight, scale, total = ctx.saved_tensors
        grad = grad_y.to(normal.dtype)
        dims = _all_but_channels(grad)
        grad_bias, grad_weight = grad.sum(dims), (grad * normal).sum(dims)  # of these rows, summed with others later
        by_mean, by_scale = ctx.ranks.summed(torch.stack([grad_bias, grad_weight])) / total
        grad = (grad - _channels(by_mean, grad) - normal * _channels(by_scale, grad)) * _channels(weight * scale, grad)
        return grad.to(grad_y.dtype), grad_weight, grad_bias, None, None


def _all_but_channels(x: Tensor) -> list[int]:
    return [dim for dim in range(x.ndim) if dim != 1]


def _channels(values: Tensor, like: Tensor) -> Tensor:
    """View one value per channel (C,) so that it broadcasts over (B, C, ...)."""
    return values.view(-1, *[1] * (like.ndim - 2))
