"""A data set that needs no simulator: small pictures of a dot whose place is the latent."""

from pathlib import Path

import numpy as np

from worldmodel.data.episodes import Episode
from worldmodel.data.store import EpisodeStore

SIZE, RHO = 16, 0.9


def dots(length: int, rng: np.random.Generator) -> Episode:
    """One episode of a dot that an Ornstein-Uhlenbeck process moves."""
    latents = np.empty((length, 2))
    latents[0] = rng.standard_normal(2)
    for step in range(1, length):
        latents[step] = RHO * latents[step - 1] + np.sqrt(1 - RHO**2) * rng.standard_normal(2)
    across, down = SIZE / 2 + 2 * latents.T[..., None] - np.arange(SIZE)
    dot = 240 * np.exp(-(across[:, None, :] ** 2 + down[:, :, None] ** 2) / 4)
    frames = np.repeat(dot.astype(np.uint8)[..., None], 3, axis=-1)
    states = np.concatenate([latents, np.zeros_like(latents)], axis=1)
    return Episode(frames, states, latents.astype(np.float32), np.zeros((length - 1, 0), np.float32))


def store_dots(folder: Path, shards: int, lengths: tuple[int, ...] = (20,) * 10) -> EpisodeStore:
    """Write shards of episodes of the given lengths."""
    frames = shards * sum(lengths)
    identity = {"env": "dots", "explorer": "ou", "seed": 0, "dt": 0.1, "latent_scales": [1.0, 1.0]}
    store = EpisodeStore.open(folder, identity | {"latent_names": ["across", "down"], "frames": frames})
    rng = np.random.default_rng(0)
    for shard in range(shards):
        store.write_shard(shard, [dots(length, rng) for length in lengths])
    store.write_card(store.measure())
    return store
