"""The main job, stage by stage."""

import time
from dataclasses import dataclass
from pathlib import Path

import gymnasium as gym
import numpy as np

import worldmodel as wm
from worldmodel.agents import LatentOU, collect
from worldmodel.data.episodes import Episodes
from worldmodel.data.store import load_episodes
from worldmodel.dynamics.states import Encodes
from worldmodel.encoders.encoder import Encoder
from worldmodel.encoders.history import TrainingHistory
from worldmodel.encoders.training import TrainingOptions
from worldmodel.envs import SuiteEnv, make
from worldmodel.envs.control_tasks import control_setting
from worldmodel.envs.goals import sample_tasks
from worldmodel.planners.decoders import Decoder, NearestDecoder, linear_decoder
from worldmodel.planners.kinematic import plan_kinematic
from worldmodel.planners.straight_line import StraightLine
from worldmodel.scripts import cli
from worldmodel.scripts.cli import console
from worldmodel.scripts.planning import report as plan_report
from worldmodel.scripts.planning.control import Control, ControlJob
from worldmodel.scripts.planning.options import BUDGETS, PlanOptions
from worldmodel.utils.devices import resolve_device
from worldmodel.utils.files import file_digest
from worldmodel.utils.stages import Stage, run_stage

CHAIN = 25  # frames of an Ornstein-Uhlenbeck chain: many short ones cover more poses
COARSE = 3  # steps between the frames of a pair at first, and of the certificate


@dataclass(frozen=True)
class Encoding:
    """An encoder, and what is known of how it came to be.

    Attributes:
        encoder: frames to embeddings.
        digest: of its training, or of its weights.
        stage: its training here; None for one that was given.
        history: what happened during training.
        world: the world model that it was given in.
        world_digest: of that one's dynamics.
    """

    encoder: Encodes
    digest: str
    stage: Stage | None = None
    history: TrainingHistory | None = None
    world: wm.WorldModel | None = None
    world_digest: str = ""


@dataclass(frozen=True)
class Embeddings:
    """Embeddings of the training and of the held-out episodes, (F, m) each."""

    train: np.ndarray
    heldout: np.ndarray


def run(options: PlanOptions) -> None:
    """Collect, train, measure, plan, and show it beside the oracle."""
    start = time.perf_counter()
    with _environment(options) as env:  # bad input ends here, before any long work
        suite = env.unwrapped
        assert isinstance(suite, SuiteEnv)
        given = _check(options, suite)
        planner = StraightLine(options.plan_steps)
        rng = np.random.default_rng([options.seed, 1])
        tasks = sample_tasks(suite.latent_spec, options.tasks, rng)
        out = cli.run_folder(options.out, f"plan-{options.env}")
        _announce(options, suite, out)

        collected = _collect(options, out, suite)
        episodes = load_episodes(collected.folder / "episodes")
        encoding = given or _train(options, out, collected, episodes, suite)
        embeddings = _embed(options, out, collected, encoding, episodes)

        ceiling = suite.latent_spec.ceiling().tolist()
        report = wm.measure(
            embeddings.train,
            episodes.train.latents,
            embeddings.heldout,
            episodes.heldout.latents,
            ceiling,
            offsets=episodes.heldout.offsets,
            seed=options.seed,
        )
        rho = float(np.mean(episodes.card.rho)) ** COARSE
        proof = wm.certificate(embeddings.heldout, episodes.heldout.offsets, lag=COARSE, rho=rho, seed=options.seed)
        begin = time.perf_counter()
        env.reset(seed=options.seed)
        decoder = _decoder(options, embeddings, episodes)
        plans = plan_kinematic(encoding.encoder, decoder, suite, tasks, planner, seed=options.seed)
        plan_seconds = time.perf_counter() - begin
        control = _control(options, out, encoding, suite)

        done = [stage for stage in (collected, encoding.stage, *(control.stages if control else ())) if stage]
        seconds = {
            "collect": collected.seconds,
            "train": encoding.stage.seconds if encoding.stage else 0.0,
            "dynamics": sum(stage.seconds for stage in done if stage.name in ("drive", "embed-driven")),
            "plan": plan_seconds
            + sum(stage.seconds for stage in done if stage.name.startswith(("control-", "targets-"))),
            "total": time.perf_counter() - start,
            "cached": sorted({stage.name for stage in done if stage.cached}),
        }
        if control is not None:
            control.world.save_pretrained(out / "world_model")
        plan_report.draw(out, suite, episodes, embeddings.train, embeddings.heldout, encoding.history, plans, control)
        plan_report.show(suite.latent_spec.names, report, proof, plans, control)
        result = plan_report.write_result(
            out, options, episodes.card, embeddings.train.shape[1], report, proof, plans, control, seconds, done
        )
    kept = ", the world model in world_model/" if control is not None else ""
    console.print(f"\nFigures, film and numbers{kept}: {out}")
    console.print(str(result), soft_wrap=True, highlight=False)


def _environment(options: PlanOptions, frame_skip: int = 1) -> gym.Env[np.ndarray, np.ndarray]:
    return make(options.env, height=options.size, width=options.size, camera=options.camera, frame_skip=frame_skip)


def _check(options: PlanOptions, suite: SuiteEnv) -> Encoding | None:
    """Refuse what would fail later, before any long work; return the encoder that was given."""
    resolve_device(options.device)
    LatentOU(options.rho)
    if options.dynamics == "neural" and "mpc-qp" in options.planner:
        raise ValueError("mpc-qp needs linear dynamics: take mpc-cem or mpc-gradient with --dynamics neural")
    if options.encoder is not None and options.world_model is not None:
        raise ValueError("give --encoder or --world-model, not both: a world model has an encoder")
    if options.world_model is not None:
        world = wm.WorldModel.from_pretrained(options.world_model, trust=options.trust)
        digests = [file_digest(options.world_model / f"{part}.safetensors") for part in ("encoder", "dynamics")]
        given = Encoding(world.encoder, digests[0], world=world, world_digest=digests[1])
    elif options.encoder is not None:
        given = Encoding(Encoder.load(options.encoder).freeze(), file_digest(options.encoder / "model.safetensors"))
    else:
        Encoder(_dim(options, suite), (options.size, options.size))
        return None
    height, width = getattr(given.encoder, "frame_size", (options.size, options.size))
    if (height, width) != (options.size, options.size):
        folder = options.encoder or options.world_model
        raise ValueError(f"the encoder in {folder} takes {height}x{width} frames: give --size {height}")
    return given


def _dim(options: PlanOptions, suite: SuiteEnv) -> int:
    return suite.latent_spec.n if options.dim is None else options.dim


def _announce(options: PlanOptions, suite: SuiteEnv, out: Path) -> None:
    spec = suite.latent_spec
    console.print(f"{suite.domain}-{suite.task}: latents {', '.join(spec.names)}; budget {options.budget}; into {out}")
    for joint, reason in spec.left_out.items():
        console.print(f"  left out: {joint} ({reason})", highlight=False)


def _collect(options: PlanOptions, out: Path, suite: SuiteEnv) -> Stage:
    frames = BUDGETS[options.budget].frames
    key = {
        "env": options.env,
        "explorer": LatentOU(options.rho),
        "latents": suite.latent_spec,
        "frames": frames,
        "length": CHAIN,
        "seed": options.seed,
        "size": options.size,
        "camera": options.camera,
    }

    def build(folder: Path) -> None:
        collect(
            options.env,
            LatentOU(options.rho),
            frames,
            folder / "episodes",
            length=CHAIN,
            seed=options.seed,
            processes=options.processes,
            height=options.size,
            width=options.size,
            camera=options.camera,
        )

    return _tell(run_stage(out, "collect", key, build, made_by=[collect], keep=options.keep))


def _train(options: PlanOptions, out: Path, collected: Stage, episodes: Episodes, suite: SuiteEnv) -> Encoding:
    sizes = BUDGETS[options.budget]
    training = TrainingOptions(steps=sizes.steps, batch_size=sizes.batch_size, coarse_lag=COARSE, coarse_share=0.7)
    dim, objective = _dim(options, suite), wm.LeJEPA()
    key = {
        "data": collected.digest,
        "dim": dim,
        "objective": objective,
        "training": training,
        "seed": options.seed,
    }

    def build(folder: Path) -> None:
        encoder = wm.fit_encoder(
            episodes, dim, objective, training, device=options.device, seed=options.seed, out=folder
        )
        encoder.save_pretrained(folder / "encoder")

    stage = _tell(run_stage(out, "train", key, build, made_by=[wm.fit_encoder], keep=options.keep))
    history = TrainingHistory.load(stage.folder / "history.json")
    return Encoding(Encoder.load(stage.folder / "encoder").freeze(), stage.digest, stage, history)


def _embed(options: PlanOptions, out: Path, collected: Stage, encoding: Encoding, episodes: Episodes) -> Embeddings:
    """Embed all frames, or take the embeddings that an earlier run kept."""

    def build(folder: Path) -> None:
        for name in ("train", "heldout"):
            h = encoding.encoder.encode(getattr(episodes, name).frames)
            np.save(folder / f"{name}.npy", h, allow_pickle=False)

    key = {"data": collected.digest, "encoder": encoding.digest}
    stage = _tell(run_stage(out, "embed", key, build, made_by=[Encoder], keep=options.keep))
    return Embeddings(*(np.load(stage.folder / f"{name}.npy", allow_pickle=False) for name in ("train", "heldout")))


def _control(options: PlanOptions, out: Path, encoding: Encoding, suite: SuiteEnv) -> Control | None:
    """Close the loop at the control step of the task's domain; None where that is not asked for or not possible."""
    if not options.planner:
        return None
    setting = control_setting(suite.latent_spec)
    env = _environment(options, frame_skip=setting.frame_skip(suite.dt))
    slower = env.unwrapped
    assert isinstance(slower, SuiteEnv)
    env.reset(seed=options.seed)
    driven = BUDGETS[options.budget].driven
    try:
        job = ControlJob(options, out, slower, setting, encoding.encoder, encoding.digest, driven, _tell)
        return job.run(encoding.world, encoding.world_digest)
    except ValueError as error:  # the data allow no dynamics: what was learnt so far is shown all the same
        console.print(f"[yellow]closed loop left out:[/] {error}", highlight=False)
        return None
    finally:
        env.close()


def _decoder(options: PlanOptions, embeddings: Embeddings, episodes: Episodes) -> Decoder:
    if options.decoder == "linear":
        return linear_decoder(embeddings.train, episodes.train.latents)
    return NearestDecoder(embeddings.train, episodes.train.latents)


def _tell(stage: Stage) -> Stage:
    colour = "yellow" if stage.outdated else "none"
    console.print(stage.told(), style=colour, highlight=False, soft_wrap=True)
    return stage
