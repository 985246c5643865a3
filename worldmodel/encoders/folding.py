"""Normalisation folded into the layers before it: the same function in fewer operations, while weights stand still."""

from copy import deepcopy

import torch
from torch import Tensor, nn
from torch.nn.utils.fusion import fuse_conv_bn_eval, fuse_linear_bn_eval


@torch.inference_mode(False)
@torch.no_grad()
def folded(network: nn.Sequential, pixel_mean: Tensor, pixel_std: Tensor) -> nn.Sequential:
    """Return what ``network`` does in evaluation mode to (x - mean) / std, as a network that takes pixels x.

    Args:
        network: begins with a convolution, which does not pad and is followed by BatchNorm; any layer may be.
        pixel_mean: (C, 1, 1).
        pixel_std: (C, 1, 1).
    """
    layers = list(deepcopy(network).double().eval())
    kept: list[nn.Module] = []
    for layer, following in zip(layers, [*layers[1:], None], strict=True):
        if isinstance(layer, nn.Conv2d) and isinstance(following, nn.BatchNorm2d):
            layer = fuse_conv_bn_eval(layer, following)
        elif isinstance(layer, nn.Linear) and isinstance(following, nn.BatchNorm1d):
            layer = fuse_linear_bn_eval(layer, following)
        if not isinstance(layer, nn.BatchNorm1d | nn.BatchNorm2d):
            kept.append(layer)
    stem, mean, std = kept[0], pixel_mean.double(), pixel_std.double()
    assert isinstance(stem, nn.Conv2d) and stem.bias is not None
    stem.weight.div_(std)
    stem.bias.sub_((stem.weight * mean).sum((1, 2, 3)))
    whole = nn.Sequential(*kept).to(pixel_mean.dtype).requires_grad_(False)
    return whole.to(memory_format=torch.channels_last)  # type: ignore[call-overload]


class Folding:
    """The folded network of a frozen encoder, kept until a weight or statistic is loaded or moved.

    It serves no encoder that still learns: fused optimisers and BatchNorm write to tensors without counting it.
    """

    def __init__(self, encoder: nn.Module) -> None:
        self._tensors_of = [part for module in encoder.modules() for part in (module._parameters, module._buffers)]
        self._seen: tuple[list[Tensor | None], list[int]] = [], []
        self._network = nn.Sequential()

    def network(self, network: nn.Sequential, pixel_mean: Tensor, pixel_std: Tensor) -> nn.Sequential:
        """Return :func:`folded` of the present weights."""
        tensors = [tensor for part in self._tensors_of for tensor in part.values()]
        written = [0 if tensor is None or tensor.is_inference() else tensor._version for tensor in tensors]
        seen, before = self._seen
        if written != before or any(one is not other for one, other in zip(tensors, seen, strict=True)):
            self._network = folded(network, pixel_mean, pixel_std)
            self._seen = tensors, written
        return self._network
