"""Episodes of a few tiny frames."""

import numpy as np

from worldmodel.data.datacard import describe
from worldmodel.data.episodes import Episode, Episodes, stack

IDENTITY = {"env": "e", "explorer": "x", "seed": 0, "dt": 0.02, "latent_names": ("a", "b"), "latent_scales": (1.0, 1.0)}


MEASURED = ("latents", "actions", "offsets", "rewards")


def episode(length: int, value: int = 0) -> Episode:
    rng = np.random.default_rng(value)
    frames = np.full((length, 4, 4, 3), value, np.uint8)
    latents = rng.standard_normal((length, 2)).astype(np.float32)
    actions, rewards = np.full((length - 1, 1), value, np.float32), np.full(length - 1, value, np.float32)
    return Episode(frames, rng.standard_normal((length, 4)), latents, actions, rewards)


def episodes(*lengths: int) -> Episodes:
    arrays = stack([episode(length, index) for index, length in enumerate(lengths)])
    return Episodes(**arrays, card=describe(*(arrays[name] for name in MEASURED), **IDENTITY))
