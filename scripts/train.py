"""Train an encoder on collected episodes.

python scripts/train.py --data data/reacher --out runs/reacher
python scripts/train.py --data data/reacher --out runs/vicreg vicreg --objective.variance 10
"""

import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import tyro

import worldmodel as wm
from worldmodel.data.episodes import Episodes
from worldmodel.data.streaming import StreamedEpisodes, open_episodes, spare_memory
from worldmodel.encoders.objectives import BarlowTwins, InfoNCE, LeJEPA, VICReg, Whitening
from worldmodel.encoders.ranks import Ranks, joined
from worldmodel.encoders.training import TrainingOptions
from worldmodel.report import figures
from worldmodel.scripts import cli
from worldmodel.scripts.cli import console
from worldmodel.utils.files import to_plain, write_json
from worldmodel.utils.versions import versions

AnyObjective = (
    Annotated[LeJEPA, tyro.conf.subcommand("lejepa", prefix_name=False)]
    | Annotated[Whitening, tyro.conf.subcommand("whitening", prefix_name=False)]
    | Annotated[VICReg, tyro.conf.subcommand("vicreg", prefix_name=False)]
    | Annotated[InfoNCE, tyro.conf.subcommand("infonce", prefix_name=False)]
    | Annotated[BarlowTwins, tyro.conf.subcommand("barlow-twins", prefix_name=False)]
)
"""An objective and its options, chosen by a word after the other options; LeJEPA where there is none."""


@dataclass(frozen=True)
class TrainOptions:
    """Options of a training.

    Attributes:
        data: folder of a data set, from scripts/collect.py.
        dim: dimensions of the embedding (default: as many as the data has true latents).
        objective: what is minimised, with its own options: a word at the end of the line, LeJEPA by default.
        training: how.
        seed: decides initial weights, order of pairs and random slices.
        device: where to train: auto, cpu or cuda.
        out: output folder (default: runs/train-<data>); training resumes from what lies there.
        memory: GB that frames may take in each process; data of more than half of it streams from disk (default: half
            of what is free, rounded down to a power of two).
    """

    data: Path
    dim: int | None = None
    objective: AnyObjective = field(default_factory=LeJEPA)
    training: TrainingOptions = field(default_factory=TrainingOptions)
    seed: int = 0
    device: str = "auto"
    out: Path | None = None
    memory: float | None = None


def main(options: Annotated[TrainOptions, tyro.conf.arg(name="")]) -> None:
    """Train, measure on held-out episodes, and save the encoder; of several processes, the first one speaks."""
    with joined() as ranks:
        episodes = _episodes(options, ranks)
        true_latents = len(episodes.card.mean)
        dim = options.dim or true_latents
        if not dim:
            raise ValueError(f"{options.data} has no true latents: say how many the embedding has, with --dim")
        out = cli.run_folder(options.out, f"train-{options.data.name}")
        start = time.monotonic()
        encoder = wm.fit_encoder(
            episodes, dim, options.objective, options.training, device=options.device, seed=options.seed, out=out
        )
    if not ranks.first:
        return
    seconds = {"train": time.monotonic() - start}
    if isinstance(episodes, StreamedEpisodes):
        seconds |= {"first_frames": episodes.waits[0], "waited": sum(episodes.waits[1:])}
        console.print(
            "frames came after {first_frames:.1f} s, waits later {waited:.1f} of {train:.0f} s".format(**seconds)
        )
    encoder.save_pretrained(out / "encoder")
    if encoder.history is not None:
        figures.save_figure(figures.training_curve(encoder.history), out / "training.png")
    measured: dict[str, Any] = {"dim": dim}
    if true_latents:
        report = wm.identifiability(encoder, episodes)
        for name, value in zip(episodes.card.latent_names, report.r2_per_latent, strict=True):
            console.print(f"R² of {name} from h, held-out episodes: {value:.4f}", highlight=False)
        measured |= report.to_json()
    rho = episodes.card.mean_rho if options.training.rho is None else options.training.rho
    if np.isfinite(rho):
        proof = wm.certify(encoder, episodes, lag=options.training.lag, rho=rho)
        measured["certificate"] = proof.to_json()
    result = {
        "options": vars(options) | {"objective": asdict(options.objective), "training": vars(options.training)},
        "versions": versions(),
        "data": episodes.card.to_json(),
        "encoder": measured,
        "wall_seconds": seconds,
    }
    console.print(str(write_json(out / "result.json", to_plain(result))), soft_wrap=True, highlight=False)


def _episodes(options: TrainOptions, ranks: Ranks) -> Episodes | StreamedEpisodes:
    """Load the data, or open it where it does not fit; say so in one line."""
    memory = ranks.least(spare_memory(ranks.neighbours) if options.memory is None else options.memory * 1e9)
    episodes = open_episodes(options.data, memory)
    if isinstance(episodes, StreamedEpisodes) and ranks.first:
        held = f"at most {memory / 1e9:.3g} GB of {episodes.frame_bytes / 1e9:.3g} GB are in memory at a time"
        console.print(f"frames stream from disk: {held} (--memory {memory / 1e9:g})", highlight=False)
    return episodes


if __name__ == "__main__":
    cli.run(main, "train")
