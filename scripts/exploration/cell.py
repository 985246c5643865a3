"""One cell of the benchmark: an encoder trained on one explorer's data of one seed at one lag, and its scores."""

import json
import warnings
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

import worldmodel as wm
from worldmodel.agents import PosedExplorer
from worldmodel.agents.explorers import Explorer
from worldmodel.data.datacard import lag_correlation
from worldmodel.data.episodes import Episodes
from worldmodel.data.gaussianity import gaussianity
from worldmodel.data.store import load_episodes
from worldmodel.encoders.encoder import Encoder
from worldmodel.envs.goals import sample_tasks
from worldmodel.envs.latents import LatentSpec
from worldmodel.measures.ceiling import sampled_r2
from worldmodel.measures.circle import measure_circle
from worldmodel.measures.identifiability import measure
from worldmodel.planners.decoders import circle_decoder, linear_decoder
from worldmodel.planners.kinematic import plan_kinematic
from worldmodel.planners.straight_line import StraightLine
from worldmodel.scripts.exploration.control import control, untimed
from worldmodel.scripts.exploration.setup import Common, Setup, law_parts
from worldmodel.scripts.exploration.training import Recipe
from worldmodel.utils.files import to_plain, write_json
from worldmodel.utils.stages import Stage, run_stage

_LEAST = 0.1  # correlation of the slowest latent across a pair, below which there is nothing to align
_CEILING_DRAWS = 200_000


@dataclass(frozen=True)
class Scores:
    """How well an embedding identifies the latents under one law; maps fitted on frames of it, scored on others.

    Attributes:
        r2: mean of ``r2_per_latent``.
        r2_per_latent: linear R² of each latent.
        ceiling_per_latent: the best that any encoder could reach.
        r2_cos: R² of the cosine of each latent that turns all the way round.
        r2_sin: of its sine.
        r2_angle: of the angle itself, read by atan2.
    """

    r2: float
    r2_per_latent: tuple[float, ...]
    ceiling_per_latent: tuple[float, ...]
    r2_cos: tuple[float, ...] = ()
    r2_sin: tuple[float, ...] = ()
    r2_angle: tuple[float, ...] = ()


@dataclass(frozen=True)
class Cell:
    """One cell.

    Attributes:
        explorer: as it was asked for.
        training: how the encoder is trained.
        lag: control steps between the frames of a pair.
        seed: of data and training.
    """

    explorer: str
    training: str
    lag: int
    seed: int


def run_cell(setup: Setup, common: Common, baselines: Stage, data: Stage, explorer: Explorer, cell: Cell) -> Stage:
    """Train and score one cell; its folder holds ``cell.json`` and the encoder."""
    recipe = Recipe.of(cell.training)
    key = {"data": data.digest, "common": [*common.digests, baselines.digest], "recipe": recipe}
    key |= {"lag": cell.lag, "seed": cell.seed, "steps": setup.steps}

    def build(folder: Path) -> None:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            episodes = load_episodes(data.folder / "episodes")
            scores = _score(setup, common, episodes, explorer, recipe, cell, folder)
            if "skipped" not in scores:
                encoder = Encoder.load(folder / "encoder")
                scores["lqr"] = control(setup, common.driven, baselines, encoder)
        alarms = sorted(
            {warning.category.__name__ for warning in caught if "worldmodel" in warning.category.__module__}
        )
        write_json(folder / "cell.json", to_plain(scores | {"warnings": alarms}))

    return run_stage(setup.out, "cell", key, build, made_by=[run_cell])


def read_cell(stage: Stage, cell: Cell) -> dict[str, Any]:
    """Return the scores of a finished cell beside what it is."""
    return asdict(cell) | json.loads((stage.folder / "cell.json").read_bytes())


def _score(
    setup: Setup,
    common: Common,
    episodes: Episodes,
    explorer: Explorer,
    recipe: Recipe,
    cell: Cell,
    folder: Path,
) -> dict[str, Any]:
    """Return all that is known of one cell, as JSON values."""
    env = setup.make()
    spec = env.latent_spec
    rho = lag_correlation(episodes.latents, episodes.offsets, cell.lag)
    shape = gaussianity(episodes.latents)
    measured: dict[str, Any] = {"data": {"rho": rho, **asdict(shape), "returns": episodes.card.returns}}
    measured["turning"] = spec.turning.tolist()
    slowest = np.nanmax(rho, initial=-1.0)
    if not slowest > _LEAST:
        reason = "no pairs are so far apart" if np.isnan(rho).all() else f"latents correlate by {slowest:.2f} at most"
        return measured | {"skipped": reason}
    encoder = recipe.train(episodes, spec, cell.lag, setup.steps, setup.device, cell.seed, folder)
    encoder.save_pretrained(folder / "encoder")
    h = {part: encoder.encode(getattr(episodes, part).frames) for part in ("train", "heldout")}
    measured["identifiability"] = _laws(common, spec, encoder, episodes, explorer, h)
    measured["certificate"] = _certificate(h["heldout"], episodes.heldout.offsets, cell.lag, float(np.mean(rho)))
    env.reset(seed=setup.seed)
    z = _latents(spec, explorer, episodes.train.latents)
    decoder = circle_decoder(h["train"], z, spec) if recipe.circle else linear_decoder(h["train"], z)
    tasks = sample_tasks(spec, setup.tasks, np.random.default_rng([setup.seed, 1]))
    (line, *_) = plan_kinematic(encoder, decoder, env, tasks, StraightLine(), seed=setup.seed).outcomes
    measured["straight_line"] = untimed(line)
    env.close()
    return measured


def _latents(spec: LatentSpec, explorer: Explorer, latents: np.ndarray) -> np.ndarray:
    """Forget how often driven hinges have turned, which no frame shows; posed ones turn as their law says."""
    return latents if isinstance(explorer, PosedExplorer) else spec.wrap(latents)


def _laws(
    common: Common,
    spec: LatentSpec,
    encoder: Encoder,
    episodes: Episodes,
    explorer: Explorer,
    h: dict[str, np.ndarray],
) -> dict[str, Any]:
    """Score on the explorer's own held-out episodes, and on the frames of both common laws."""
    own = {part: _latents(spec, explorer, getattr(episodes, part).latents) for part in ("train", "heldout")}
    measured = {"own": _scores(spec, h["train"], own["train"], h["heldout"], own["heldout"], _ceiling(spec, explorer))}
    whole = np.ones(spec.n)
    for name, stage, ceiling in (("gaussian", common.gaussian, spec.ceiling()), ("uniform", common.uniform, whole)):
        law = load_episodes(stage.folder / "episodes")
        seen = encoder.encode(law.frames)
        parts = {part: (seen[rows], law.latents[rows]) for part, rows in law_parts(len(seen)).items()}
        measured[name] = _scores(spec, *parts["train"], *parts["heldout"], ceiling)
        if name == "gaussian":
            measured["selection"] = _scores(spec, *parts["train"], *parts["selection"], ceiling)
            measured["transfer"] = _scores(spec, h["train"], own["train"], *parts["heldout"], ceiling)
    return {name: asdict(scores) for name, scores in measured.items()}


def _scores(
    spec: LatentSpec, h_fit: np.ndarray, z_fit: np.ndarray, h: np.ndarray, z: np.ndarray, ceiling: np.ndarray
) -> Scores:
    report = measure(h_fit, z_fit, h, z)
    circle = {}
    if len(spec.turning):
        circle = vars(measure_circle(h_fit, spec.angles(z_fit), h, spec.angles(z)))
    return Scores(report.r2_hz, report.r2_per_latent, tuple(ceiling.tolist()), **circle)


def _ceiling(spec: LatentSpec, explorer: Explorer) -> np.ndarray:
    """Return the best R² (n,) on an explorer's own data: below 1 where it poses hinges beyond half a turn."""
    ceiling = np.ones(spec.n)
    if isinstance(explorer, PosedExplorer):
        length = 100  # enough chains that slow ones cover their law, too
        z = explorer.chains(_CEILING_DRAWS // length, length, spec.n, np.random.default_rng(0)).reshape(-1, spec.n)
        for index in spec.turning:
            ceiling[index] = sampled_r2(z[:, index] * spec.scales[index], spec.periods[index])
    return ceiling


def _certificate(h: np.ndarray, offsets: np.ndarray, lag: int, rho: float) -> dict[str, Any] | None:
    try:
        return wm.certificate(h, offsets, lag=lag, rho=rho, seed=0).to_json()
    except ValueError:  # the theorem needs correlations between 0 and 1
        return None
