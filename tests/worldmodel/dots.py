"""A data set that needs no simulator: small pictures of a dot whose place is the latent."""

from pathlib import Path

import numpy as np

from worldmodel.data.datacard import describe
from worldmodel.data.episodes import Episode, Episodes, stack
from worldmodel.data.store import EpisodeStore

SIZE, RHO = 16, 0.9
IDENTITY = {"env": "dots", "explorer": "ou", "seed": 0, "dt": 0.1, "latent_scales": [1.0, 1.0]}
IDENTITY |= {"latent_names": ["across", "down"]}


def dots(length: int, rng: np.random.Generator) -> Episode:
    """One episode of a dot that an Ornstein-Uhlenbeck process moves."""
    latents = np.empty((length, 2))
    latents[0] = rng.standard_normal(2)
    for step in range(1, length):
        latents[step] = RHO * latents[step - 1] + np.sqrt(1 - RHO**2) * rng.standard_normal(2)
    return episode(latents, np.zeros((length - 1, 0)))


def driven_dots(episodes: int, length: int) -> Episodes:
    """Episodes of a dot that random actions push, and that friction slows down."""
    rng, made = np.random.default_rng(0), []
    for _ in range(episodes):
        latents, velocity = [0.5 * rng.standard_normal(2)], np.zeros(2)
        actions = rng.uniform(-1, 1, (length - 1, 2))
        for action in actions:
            velocity = 0.7 * velocity + 0.2 * action
            latents.append(latents[-1] + velocity)
        made.append(episode(np.array(latents), actions))
    arrays = stack(made)
    measured = (arrays[name] for name in ("latents", "actions", "offsets", "rewards"))
    return Episodes(**arrays, card=describe(*measured, **IDENTITY | {"explorer": "random"}))


def episode(latents: np.ndarray, actions: np.ndarray) -> Episode:
    """The pictures of a dot at latents (T, 2)."""
    across, down = SIZE / 2 + 2 * latents.T[..., None] - np.arange(SIZE)
    dot = 240 * np.exp(-(across[:, None, :] ** 2 + down[:, :, None] ** 2) / 4)
    frames = np.repeat(dot.astype(np.uint8)[..., None], 3, axis=-1)
    states = np.concatenate([latents, np.zeros_like(latents)], axis=1)
    return Episode(frames, states, latents.astype(np.float32), actions.astype(np.float32))


def store_dots(folder: Path, shards: int, lengths: tuple[int, ...] = (20,) * 10) -> EpisodeStore:
    """Write shards of episodes of the given lengths."""
    frames = shards * sum(lengths)
    store = EpisodeStore.open(folder, IDENTITY | {"frames": frames})
    rng = np.random.default_rng(0)
    for shard in range(shards):
        store.write_shard(shard, [dots(length, rng) for length in lengths])
    store.write_card(store.measure())
    return store
