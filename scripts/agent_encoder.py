"""The encoder that an agent sees through: one that is given, or one trained on all that its frames may show."""

import json
import warnings
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
from worldmodel.episodes import Episodes
from worldmodel.files import to_plain, write_json
from worldmodel.history import LocalOptimumWarning
from worldmodel.identifiability import measure
from worldmodel.scripts import cli
from worldmodel.stages import Stage, run_stage
from worldmodel.store import load_episodes
from worldmodel.training import TrainingOptions

RHO, CHAIN, COARSE = 0.97, 25, 3  # correlation per step of directions, frames of a chain, lag at first
_RHO_REST = 0.94  # of all else that is shown: squares of it, which keep the square of that, are to stay behind
_ROUND = pi / sqrt(3)  # rad: as wide as uniform angles, since an agent meets every one
_RANGE = 4.4  # standard deviations that a joint's range spans: few poses lie beyond it, its ends are seen
_NEARLY_ROUND = 1.5 * pi  # rad: a hinge with a wider range is a circle, too
_SIGREG = 0.002  # a circle is no Gaussian: whitening alone keeps the embedding from collapse
WIDENING: tuple[tuple[float | None, float, float], ...] = ((0.7, 0.5, 0.8), (1.3, 0.2, 0.8), (None, 0.3, 0.6))
"""Deviation of free hinges from their mean (rad; None: all angles), share of the steps, the part of it with far pairs.

Over all angles of the shoulder, the average picture with the wrist bent to the left is the one with it bent to the
right, so nothing that is linear in pixels says which, and training without this start never finds out: R² of the
wrist's sine is 0.05 after 2000 steps, and 0.98 with it.
"""


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
    objective = wm.LeJEPA(weight=_SIGREG)

    def gather(folder: Path) -> None:
        episodes = folder / "episodes"
        collect(env, explorer, frames, episodes, length=CHAIN, seed=seed, processes=processes, **options)

    collected = run_stage(out, "collect", data_key, gather)

    def train(folder: Path) -> None:
        episodes = load_episodes(collected.folder / "episodes")
        names, z = shown(spec, episodes.train.latents)
        encoder = _widened(spec, episodes, len(names), objective, steps, device, seed, folder)
        encoder.save_pretrained(folder / "encoder")
        heldout = episodes.heldout
        h = [encoder.encode(part.frames) for part in (episodes.train, heldout)]
        truth = shown(spec, heldout.latents)[1]
        report = measure(h[0], z, h[1], truth, offsets=heldout.offsets, seed=seed)
        write_json(folder / "identifiability.json", to_plain({"names": names, **report.to_json()}))
        figures.save_figure(
            figures.identifiability_scatter(h[0], z, h[1], truth, names), folder / "identifiability.png"
        )

    how = {"steps": steps, "widening": WIDENING, "coarse": COARSE, "rho": RHO}
    key = {"data": collected.digest, "objective": objective, "training": how, "seed": seed}
    trained = run_stage(out, "encoder", key, train)
    report = json.loads((trained.folder / "identifiability.json").read_text())
    return replace(given_sight(trained.folder / "encoder"), report=report, stages=(collected, trained))


def _widened(
    spec: LatentSpec,
    episodes: Episodes,
    latents: int,
    objective: wm.LeJEPA,
    steps: int,
    device: str,
    seed: int,
    folder: Path,
) -> Encoder:
    """Train on poses near the middle of free hinges first, and on ever wider ones from there."""
    encoder = None
    widening = WIDENING if len(spec.turning) else WIDENING[-1:]
    shares = np.cumsum([0.0, *(share for _, share, _ in widening)])
    ends = np.round(steps * shares / shares[-1]).astype(int)
    for index, (deviation, _, coarse) in enumerate(widening):
        options = TrainingOptions(
            steps=max(1, int(ends[index + 1] - ends[index])), coarse_lag=COARSE, coarse_share=coarse, rho=RHO
        )
        with warnings.catch_warnings():
            if deviation is not None:
                warnings.simplefilter("ignore", LocalOptimumWarning)
            encoder = wm.fit_encoder(
                episodes,
                latents,
                objective,
                options,
                device=device,
                weights=None if deviation is None else nearness(spec, episodes.train.latents, deviation),
                start=encoder,
                seed=seed,
                out=folder / f"training{index}",
            )
    assert encoder is not None
    return encoder


def nearness(spec: LatentSpec, latents: np.ndarray, deviation: float) -> np.ndarray:
    """Weigh frames (F,) by how near their free hinges are to the mean: a Gaussian of that deviation (rad)."""
    angles = np.angle(np.exp(1j * spec.angles(latents)))
    return np.exp(-(angles**2).sum(-1) / (2 * deviation**2))


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
    """Return the correlation (n,) of each latent per step, such that directions move slowest.

    Sine and cosine of an angle with deviation σ keep exp(-σ²(1 - ρ)) across a step where the angle keeps ρ. Were they
    faster than the squares of other latents, which keep ρ², the encoder would take those for its dimensions instead;
    and near the middle of a hinge, where training begins, less is kept than over the full circle.
    """
    radians = np.array([_radians(c) for c in spec.coordinates])
    round_ = np.array([goes_round(c) for c in spec.coordinates])
    return np.where(round_, 1 + np.log(RHO) / radians**2, _RHO_REST)


def goes_round(c: Coordinate) -> bool:
    """Say whether a latent is the angle of a hinge that turns all the way, or nearly."""
    return bool(c.period) or (c.unit == "rad" and c.limits is not None and c.limits[1] - c.limits[0] > _NEARLY_ROUND)


def shown(spec: LatentSpec, latents: np.ndarray) -> tuple[list[str], np.ndarray]:
    """Name what a picture shows of the latents (N, n), and return it (N, k): of an angle that turns, its direction."""
    names: list[str] = []
    columns: list[np.ndarray] = []
    for c, z in zip(spec.coordinates, np.asarray(latents, np.float64).T, strict=True):
        if goes_round(c):
            angle = (c.mean / c.scale + z) * _radians(c)
            names += [f"cos {c.name}", f"sin {c.name}"]
            columns += [np.cos(angle), np.sin(angle)]
        else:
            names.append(c.name)
            columns.append(z)
    return names, np.stack(columns, axis=1)


def _radians(c: Coordinate) -> float:
    """Return how far a latent of 1 turns, a full turn being 2π."""
    return c.scale * (2 * pi / c.period if c.period else 1.0)


def _spec(env: str, target: bool) -> LatentSpec:
    probe = make(env, show_target="latent" if target else False)
    spec = suite_of(probe).latent_spec
    probe.close()
    return spec
