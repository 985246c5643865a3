"""The encoder inside a policy of stable-baselines3."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Self

import gymnasium as gym
import numpy as np
import torch
from stable_baselines3.common.preprocessing import is_image_space
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from torch import Tensor, nn

from worldmodel.agents.observation import frame_and_rest
from worldmodel.encoders.encoder import Encoder


class EncoderFeatures(BaseFeaturesExtractor):
    """Embeds the frames of an observation, for ``CnnPolicy`` and ``MultiInputPolicy``; boxes beside it are kept.

    Takes one frame in either channel order, or a stack of k, as a fourth dimension or along the channels; the features
    of a stack are its k embeddings in their order. The encoder normalises: SB3's division by 255 is undone exactly.

        SAC("CnnPolicy", env, policy_kwargs=dict(
            features_extractor_class=EncoderFeatures, features_extractor_kwargs=dict(encoder="runs/reacher/encoder")))

    Frozen, the weights are buffers: saved with the model and moved with it, but no optimiser and no averaging of target
    networks changes a bit of them. Fine-tuned at a ``learning_rate`` of its own, for which the policy needs
    ``optimizer_class=EncoderAdam``, BatchNorm keeps its statistics all the same. SB3's orthogonal initialisation, which
    would wipe out what was learnt, does not reach it either way.

    On-policy algorithms share one extractor between actor and critic unless told otherwise; off-policy ones give actor,
    critic and target one each, unless ``share_features_extractor=True`` lets the actor's serve the critic, too. Every
    minibatch is embedded anew: where the encoder is frozen, :class:`~worldmodel.agents.EmbeddingObservation` embeds
    each frame once and keeps the replay buffer small.

    Args:
        observation_space: frames, or a dictionary of one and other boxes.
        encoder: the encoder's folder, needed again where the model is loaded; the weights are those of the model.
        learning_rate: None freezes the encoder.
        scaled: whether the policy divides frames by 255, as SB3 does unless it has ``normalize_images=False``.

    Raises:
        ValueError: no frames of the encoder's size.
    """

    def __init__(
        self,
        observation_space: gym.Space[Any],
        encoder: Path | str,
        learning_rate: float | None = None,
        scaled: bool = True,
    ) -> None:
        name, frame, beside = frame_and_rest(observation_space)
        loaded = Encoder.load(encoder)
        frames = _stacked(frame, loaded.frame_size)
        rest = sum(int(np.prod(box.shape)) for box in beside.values())
        super().__init__(observation_space, frames * loaded.dim + rest)
        self._frame, self._beside, self._frame_size = name, tuple(beside), loaded.frame_size
        self._scaled = scaled and is_image_space(frame)  # SB3 scales nothing else
        if learning_rate is None:
            _to_buffers(loaded.freeze())
        else:
            for parameter in loaded.parameters():
                parameter.own_learning_rate = learning_rate  # type: ignore[attr-defined]
        self.encoder = loaded.eval()

    def forward(self, observations: Any) -> Tensor:
        """Return features (B, k m + rest)."""
        pixels = observations if self._frame is None else observations[self._frame]
        h = self.encoder(unstacked(self._bytes(pixels), self._frame_size)).reshape(len(pixels), -1)
        return torch.cat([h, *(observations[name].float().flatten(1) for name in self._beside)], dim=1)

    def _bytes(self, pixels: Tensor) -> Tensor:
        if pixels.dtype == torch.uint8:
            return pixels
        if self._scaled and pixels.max() > 1:
            raise ValueError("frames come unscaled: give features_extractor_kwargs scaled=False, as the policy does")
        return (pixels * 255 if self._scaled else pixels).round().to(torch.uint8)

    def train(self, mode: bool = True) -> Self:
        """Set the training mode of all but the encoder, whose BatchNorm keeps its statistics."""
        super().train(mode)
        self.encoder.eval()
        return self

    def apply(self, fn: Callable[[nn.Module], object]) -> Self:
        """Do nothing: SB3 initialises weights this way, and these are trained already."""
        return self


class EncoderAdam(torch.optim.Adam):
    """Adam that gives parameters with a learning rate of their own just that, whatever SB3's schedule sets.

    Args:
        params: parameters; those of an :class:`EncoderFeatures` say their learning rate.
        lr: of the others.
        **options: those of ``torch.optim.Adam``.
    """

    def __init__(self, params: Iterable[Tensor], lr: float = 1e-3, **options: Any) -> None:
        groups: dict[float | None, list[Tensor]] = {None: []}
        for parameter in params:
            groups.setdefault(getattr(parameter, "own_learning_rate", None), []).append(parameter)
        filled = [{"params": group, "own_lr": own} for own, group in groups.items() if group]
        super().__init__(filled, lr=lr, **options)

    def step(self, closure: Any = None) -> Any:
        """Do one step."""
        for group in self.param_groups:
            if group["own_lr"] is not None:
                group["lr"] = group["own_lr"]
        return super().step(closure)


def unstacked(pixels: Tensor, frame_size: tuple[int, int]) -> Tensor:
    """View B stacks of k frames, of any layout that :class:`EncoderFeatures` takes, as B k frames in their order."""
    if pixels.ndim == 5:
        return pixels.flatten(0, 1)
    if tuple(pixels.shape[1:3]) == frame_size:  # (B, H, W, 3 k)
        return pixels.unflatten(3, (-1, 3)).permute(0, 3, 1, 2, 4).flatten(0, 1)
    return pixels.unflatten(1, (-1, 3)).flatten(0, 1)  # (B, 3 k, H, W)


def _stacked(box: gym.spaces.Box, frame_size: tuple[int, int]) -> int:
    """Count the frames of a space.

    Raises:
        ValueError: it holds none of the encoder's size.
    """
    height, width = frame_size
    shape, frames = box.shape, int(np.prod(box.shape)) // (3 * height * width)
    along_channels = ((height, width, 3 * frames), (3 * frames, height, width))
    along_a_fourth = ((frames, height, width, 3), (frames, 3, height, width))
    if box.dtype != np.uint8 or not frames or shape not in (*along_channels, *along_a_fourth):
        raise ValueError(
            f"observations are {shape} {box.dtype}; this encoder takes uint8 frames ({height}, {width}, 3), or stacks"
        )
    return frames


def _to_buffers(module: nn.Module) -> None:
    """Turn all parameters into buffers of the same names."""
    for part in module.modules():
        for name, parameter in list(part.named_parameters(recurse=False)):
            delattr(part, name)
            part.register_buffer(name, parameter.detach())
