"""The encoder that an agent sees through: one that is given, or one trained on all that its frames may show."""

import json
from dataclasses import dataclass, replace
from math import pi, sqrt
from pathlib import Path
from typing import Any

import numpy as np

import worldmodel as wm
from worldmodel import figures
from worldmodel.agents import LatentOU, collect
from worldmodel.encoder import Encoder
from worldmodel.envs import Coordinate, LatentSpec, make, suite_of
from worldmodel.files import to_plain, write_json
from worldmodel.identifiability import measure
from worldmodel.scripts import cli
from worldmodel.stages import Stage, run_stage
from worldmodel.store import load_episodes
from worldmodel.training import TrainingOptions

RHO, CHAIN, COARSE = 0.97, 25, 3  # as in the main job: correlation per step, frames of a chain, lag at first
_ROUND = pi / sqrt(3)  # rad: as wide as uniform angles, since an agent meets every one
_RANGE = 4.4  # standard deviations that a joint's range spans: few poses lie beyond it, its ends are seen
_SIGREG = 0.002  # a circle is no Gaussian: whitening alone keeps the embedding from collapse


@dataclass(frozen=True)
class Sight:
    """An encoder, and how it came to be.

    Attributes:
        folder: of the encoder.
        digest: of its weights.
        frame_size: height and width of its frames.
        report: R² of everything that it should show, for one that was trained here.
        stages: what was done for it.
    """

    folder: Path
    digest: str
    frame_size: tuple[int, int]
    report: dict[str, Any] | None = None
    stages: tuple[Stage, ...] = ()


def given_sight(folder: Path) -> Sight:
    """Return an encoder that was trained elsewhere.

    Raises:
        ValueError: there is none in the folder.
    """
    frame_size = Encoder.load(folder).frame_size
    return Sight(folder, cli.file_digest(folder / "model.safetensors"), frame_size)


def trained_sight(
    env: str, target: bool, frames: int, steps: int, out: Path, device: str = "auto", seed: int = 0, processes: int = 0
) -> Sight:
    """Collect frames of poses, and of targets where the picture shows them, and train an encoder on them.

    Args:
        env: name of the task.
        target: whether the target is in the picture, and a latent like the joints.
        frames: frames of Ornstein-Uhlenbeck chains.
        steps: of training.
        out: where the stages are kept.
        device: where the encoder is trained.
        seed: decides data and training.
        processes: that collect; 0 means one per core.
    """
    spec = round_trip(_spec(env, target))
    options: dict[str, Any] = {"show_target": "latent" if target else False, "latent_spec": spec}
    explorer = LatentOU(tuple(speeds(spec).tolist()))
    data_key = {"env": env, "target": target, "latents": spec, "explorer": explorer, "frames": frames, "seed": seed}
    training = TrainingOptions(steps=steps, coarse_lag=COARSE, coarse_share=0.7, rho=RHO)
    objective = wm.LeJEPA(weight=_SIGREG)

    def gather(folder: Path) -> None:
        episodes = folder / "episodes"
        collect(env, explorer, frames, episodes, length=CHAIN, seed=seed, processes=processes, **options)

    collected = run_stage(out, "collect", data_key, gather)

    def train(folder: Path) -> None:
        episodes = load_episodes(collected.folder / "episodes")
        names, z = shown(spec, episodes.train.latents)
        encoder = wm.fit_encoder(episodes, len(names), objective, training, device=device, seed=seed, out=folder)
        encoder.save_pretrained(folder / "encoder")
        heldout = episodes.heldout
        h = [encoder.encode(part.frames) for part in (episodes.train, heldout)]
        truth = shown(spec, heldout.latents)[1]
        report = measure(h[0], z, h[1], truth, offsets=heldout.offsets, seed=seed)
        write_json(folder / "identifiability.json", to_plain({"names": names, **report.to_json()}))
        figures.save_figure(
            figures.identifiability_scatter(h[0], z, h[1], truth, names), folder / "identifiability.png"
        )

    key = {"data": collected.digest, "objective": objective, "training": training, "seed": seed}
    trained = run_stage(out, "encoder", key, train)
    report = json.loads((trained.folder / "identifiability.json").read_text())
    return replace(given_sight(trained.folder / "encoder"), report=report, stages=(collected, trained))


def round_trip(spec: LatentSpec) -> LatentSpec:
    """Widen the latents to all poses that an agent meets: free hinges all the way round, others over their range."""

    def widened(c: Coordinate) -> Coordinate:
        if c.period:
            return replace(c, scale=_ROUND * c.period / (2 * pi))
        if c.unit == "rad" and c.limits is not None:
            return replace(c, scale=(c.limits[1] - c.limits[0]) / _RANGE)
        return c

    return replace(spec, coordinates=tuple(widened(c) for c in spec.coordinates))


def speeds(spec: LatentSpec) -> np.ndarray:
    """Return the correlation (n,) of each latent per step, such that all that :func:`shown` lists moves equally slowly.

    Sine and cosine of an angle with deviation σ keep exp(-σ²(1 - ρ)) across a step where the angle keeps ρ. Were they
    faster than the squares of other latents, which keep ρ², the encoder would take those for its dimensions instead.
    """
    turns = np.isfinite(spec.periods)
    radians = 2 * pi * spec.scales / np.where(turns, spec.periods, 1.0)  # per unit of z, a full turn being 2π
    return np.where(turns, 1 + np.log(RHO) / radians**2, RHO)


def shown(spec: LatentSpec, latents: np.ndarray) -> tuple[list[str], np.ndarray]:
    """Name what a picture shows of the latents (N, n), and return it (N, k): of an angle that turns, its direction."""
    names: list[str] = []
    columns: list[np.ndarray] = []
    for c, z in zip(spec.coordinates, np.asarray(latents, np.float64).T, strict=True):
        if c.period:
            angle = (c.mean + c.scale * z) * (2 * pi / c.period)
            names += [f"cos {c.name}", f"sin {c.name}"]
            columns += [np.cos(angle), np.sin(angle)]
        else:
            names.append(c.name)
            columns.append(z)
    return names, np.stack(columns, axis=1)


def _spec(env: str, target: bool) -> LatentSpec:
    probe = make(env, show_target="latent" if target else False)
    spec = suite_of(probe).latent_spec
    probe.close()
    return spec
