"""The pixel encoder: uint8 frames in, embeddings out."""

import copy
from collections.abc import Mapping, Sequence
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import torch
from huggingface_hub import PyTorchModelHubMixin
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor, nn

from worldmodel.encoders.folding import Folding
from worldmodel.utils.devices import one_core_spared

if TYPE_CHECKING:
    from worldmodel.encoders.history import TrainingHistory

_STRIDE = 16  # the stem divides height and width by 4, two later convolutions by 2 each


class Encoder(nn.Module, PyTorchModelHubMixin, tags=["world-model", "lejepa"]):
    """A small CNN with a patchify stem and BatchNorm throughout, that owns its normalisation.

    Without BatchNorm the same network ends in a local optimum, where the second coordinate is a non-linear function of
    the first latent.

    Args:
        dim: dimensions m of the embedding.
        frame_size: (height, width) in pixels, multiples of 16.
        channels: channels of the stem and of the four convolutions after it.
        hidden: width of the two hidden layers.

    >>> import numpy as np
    >>> encoder = Encoder(dim=2)
    >>> encoder.encode(np.zeros((5, 64, 64, 3), np.uint8)).shape
    (5, 2)
    """

    history: "TrainingHistory | None" = None
    """What happened during training; None in an encoder that was loaded."""
    pixel_mean: Tensor
    pixel_std: Tensor

    def __init__(
        self,
        dim: int = 2,
        frame_size: Sequence[int] = (64, 64),
        channels: Sequence[int] = (32, 32, 64, 64, 128),
        hidden: int = 256,
    ) -> None:
        super().__init__()
        height, width = frame_size
        if height % _STRIDE or width % _STRIDE or min(height, width) < _STRIDE:
            raise ValueError(f"frame size {height}x{width}: height and width must be multiples of {_STRIDE}")
        if dim < 1:
            raise ValueError(f"an encoder has at least one dimension, not {dim}")
        self.dim = dim
        self.frame_size = (height, width)
        self._frozen = False
        self._options = {
            "dim": dim,
            "frame_size": list(self.frame_size),
            "channels": list(channels),
            "hidden": hidden,
        }
        stem, *convolutions = channels
        layers = [*_convolution(3, stem, size=4, stride=4)]
        for stride, before, after in zip((1, 2, 1, 2), channels[:-1], convolutions, strict=True):
            layers += _convolution(before, after, size=3, stride=stride)
        features = channels[-1] * (height // _STRIDE) * (width // _STRIDE)
        self.network = nn.Sequential(
            *layers,
            nn.Flatten(),
            *_hidden(features, hidden),
            *_hidden(hidden, hidden),
            nn.Linear(hidden, dim),
        )
        self.register_buffer("pixel_mean", torch.full((3, 1, 1), 127.5))
        self.register_buffer("pixel_std", torch.full((3, 1, 1), 127.5))
        self._folding = Folding(self)

    def forward(self, frames: Tensor) -> Tensor:
        """Embed frames: uint8 (B, H, W, 3) or (B, 3, H, W) to float32 (B, m)."""
        pixels = channels_first(frames, self.frame_size)
        dtype = torch.bfloat16 if torch.is_autocast_enabled(frames.device.type) else self.pixel_mean.dtype
        # uint8 is exact in bfloat16; a (B, H, W, 3) batch is channels-last memory already, so nothing is copied twice
        pixels = pixels.to(dtype=dtype, memory_format=torch.channels_last)
        return self.network(self._normalised(pixels)).float()

    def _normalised(self, pixels: Tensor) -> Tensor:
        """Subtract the mean and divide by the deviation, along rows of pixels (ten times as fast as by channel)."""
        mean, std = (
            row.flatten().to(pixels.dtype).repeat(pixels.shape[3]) for row in (self.pixel_mean, self.pixel_std)
        )
        rows = pixels.permute(0, 2, 3, 1).flatten(2)
        return ((rows - mean) / std).unflatten(2, (-1, 3)).permute(0, 3, 1, 2)

    def fit_normalisation(self, frames: np.ndarray) -> None:
        """Set mean and standard deviation per channel from uint8 frames (N, H, W, 3)."""
        pixels = torch.from_numpy(frames.reshape(-1, 3)).double()
        self.pixel_mean.copy_(pixels.mean(0)[:, None, None])
        self.pixel_std.copy_(pixels.std(0).clamp_min(1.0)[:, None, None])

    def freeze(self) -> Self:
        """Fix weights and statistics for good: no gradients, and a parent's ``train()`` does not wake BatchNorm."""
        self._frozen = True
        self.requires_grad_(False)
        return self.eval()

    def thawed(self) -> Self:
        """Return a copy that can be trained, whether or not this encoder is frozen."""
        thawed = copy.deepcopy(self).requires_grad_(True)
        thawed._frozen, thawed.history = False, None
        return thawed

    def train(self, mode: bool = True) -> Self:
        """Set training mode, unless the encoder is frozen."""
        return super().train(mode and not self._frozen)

    def encode(self, frames: np.ndarray, batch_size: int = 512) -> np.ndarray:
        """Embed frames (N, H, W, 3) or (N, 3, H, W) uint8 in evaluation mode: (N, m) float32.

        Runs on the encoder's device in float32, and leaves the module's training mode as it was. A frozen encoder takes
        about half as long for a single frame.
        """
        check_frames(frames.shape[1:], str(frames.dtype), self.frame_size)
        mode, device = self.training, self.pixel_mean.device
        if mode:
            self.eval()
        try:
            with one_core_spared(), torch.inference_mode():
                batches = [
                    self._embed(torch.from_numpy(np.ascontiguousarray(frames[i : i + batch_size])).to(device))
                    for i in range(0, len(frames), batch_size)
                ]
        finally:
            if mode:
                self.train()
        return np.concatenate(batches) if batches else np.zeros((0, self.dim), np.float32)

    def _embed(self, frames: Tensor) -> np.ndarray:
        if not self._frozen:
            return self(frames).cpu().numpy()
        network = self._folding.network(self.network, self.pixel_mean, self.pixel_std)
        pixels = channels_first(frames, self.frame_size)
        pixels = pixels.to(dtype=self.pixel_mean.dtype, memory_format=torch.channels_last)
        return network(pixels).float().cpu().numpy()

    def options(self) -> dict[str, Any]:
        """Return the sizes, by which :meth:`rebuilt` makes an encoder like this one."""
        return copy.deepcopy(self._options)

    def arrays(self) -> dict[str, np.ndarray]:
        """Return weights and statistics by name, whatever wraps the networks."""
        return {_unwrapped(name): value.detach().cpu().numpy() for name, value in self.state_dict().items()}

    @classmethod
    def rebuilt(cls, options: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> Self:
        """Make an encoder of these sizes and weights, on the CPU and frozen.

        Raises:
            RuntimeError, TypeError, ValueError: they are not those of such an encoder.
        """
        encoder = cls(**options)
        encoder.load_state_dict({name: torch.tensor(value) for name, value in arrays.items()})
        return encoder.freeze()

    @classmethod
    def load(cls, folder: Path | str) -> Self:
        """Load what :meth:`save_pretrained` wrote, on the CPU; data only, no code runs.

        Raises:
            ValueError: the folder is missing, foreign or damaged.
        """
        folder = Path(folder)
        for name in ("config.json", "model.safetensors"):
            if not (folder / name).is_file():
                raise ValueError(f"{folder} is not an encoder: it has no {name} (save one with save_pretrained)")
        try:
            with redirect_stdout(StringIO()):  # the hub announces on standard output that it reads a folder
                return cls.from_pretrained(folder)
        except (TypeError, ValueError) as error:
            raise ValueError(f"{folder} does not hold an encoder of this version: {error}") from error

    @classmethod
    def _load_as_safetensor(cls, model: Any, model_file: str, map_location: str, strict: bool) -> Any:
        """Load all weights or fail (the hub alone would fill in what it finds), whatever wrapped the saved model."""
        try:
            state = load_file(model_file, device=map_location)
            model.load_state_dict({_unwrapped(name): value for name, value in state.items()})
        except (SafetensorError, RuntimeError, OSError) as error:
            reason = " ".join(str(error).split())
            raise ValueError(f"{model_file} does not hold the weights of this encoder: {reason[:300]}") from error
        return model.eval()


def channels_first(frames: Tensor, frame_size: tuple[int, int]) -> Tensor:
    """View frames of either channel order as (B, 3, H, W); heights are never 3, so the order is never in doubt."""
    check_frames(tuple(frames.shape[1:]), str(frames.dtype).removeprefix("torch."), frame_size)
    return frames.permute(0, 3, 1, 2) if frames.shape[-1] == 3 else frames


def check_frames(shape: tuple[int, ...], dtype: str, frame_size: tuple[int, int]) -> None:
    """Raise ValueError unless frames of this shape (without the batch) and type are what the encoder takes."""
    height, width = frame_size
    if dtype != "uint8":
        raise ValueError(f"frames are {dtype}; the encoder takes uint8 and normalises them itself")
    if shape not in ((height, width, 3), (3, height, width)):
        raise ValueError(
            f"frames have the shape {shape}; this encoder takes (B, {height}, {width}, 3) or (B, 3, {height}, {width})"
        )


def _unwrapped(name: str) -> str:
    """Take the prefixes of torch.compile and of data parallelism off the name of a weight."""
    for prefix in ("_orig_mod.", "module.", "_orig_mod."):
        name = name.removeprefix(prefix)
    return name


def _convolution(before: int, after: int, size: int, stride: int) -> list[nn.Module]:
    padding = 0 if size == stride else size // 2
    convolution = nn.Conv2d(before, after, size, stride, padding, bias=False)
    return [convolution, nn.BatchNorm2d(after), nn.ReLU(inplace=True)]


def _hidden(before: int, after: int) -> list[nn.Module]:
    return [nn.Linear(before, after, bias=False), nn.BatchNorm1d(after), nn.ReLU(inplace=True)]
