"""The encoder that an agent sees through: one that is given, or one trained on all that its frames may show."""

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from worldmodel.agents import LatentOU, collect
from worldmodel.agents.pose_encoder import (
    CHAIN,
    COARSE,
    OBJECTIVE,
    RHO,
    WIDENING,
    fit_pose_encoder,
    round_trip,
    shown,
    speeds,
)
from worldmodel.data.store import load_episodes
from worldmodel.encoders.encoder import Encoder
from worldmodel.envs import LatentSpec, make, suite_of
from worldmodel.measures.identifiability import measure
from worldmodel.report import figures
from worldmodel.utils.files import file_digest, to_plain, write_json
from worldmodel.utils.stages import Stage, run_stage


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
    return Sight(folder, file_digest(folder / "model.safetensors"), frame_size)


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

    def gather(folder: Path) -> None:
        episodes = folder / "episodes"
        collect(env, explorer, frames, episodes, length=CHAIN, seed=seed, processes=processes, **options)

    collected = run_stage(out, "collect", data_key, gather, made_by=[collect])

    def train(folder: Path) -> None:
        episodes = load_episodes(collected.folder / "episodes")
        names, z = shown(spec, episodes.train.latents)
        encoder = fit_pose_encoder(spec, episodes, len(names), steps, device=device, seed=seed, out=folder)
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
    key = {"data": collected.digest, "objective": OBJECTIVE, "training": how, "seed": seed}
    trained = run_stage(out, "encoder", key, train, made_by=[fit_pose_encoder, measure])
    report = json.loads((trained.folder / "identifiability.json").read_text())
    return replace(given_sight(trained.folder / "encoder"), report=report, stages=(collected, trained))


def _spec(env: str, target: bool) -> LatentSpec:
    probe = make(env, show_target="latent" if target else False)
    spec = suite_of(probe).latent_spec
    probe.close()
    return spec
