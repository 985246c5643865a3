"""Agents of several seeds and observations, trained and compared."""

import shutil
from pathlib import Path

import joblib
import numpy as np
from gymnasium.vector.utils import batch_space

from worldmodel.agents.replay_memory import check_replay_memory
from worldmodel.agents.training import Agent, AgentOptions, train_agent
from worldmodel.scripts import cli
from worldmodel.scripts.agent_training.encoder import Sight, given_sight, trained_sight
from worldmodel.scripts.agent_training.inputs import agent_inputs, make_env
from worldmodel.scripts.agent_training.options import Observation, TrainAgentOptions
from worldmodel.scripts.agent_training.report import Agents, report
from worldmodel.scripts.cli import console
from worldmodel.utils.devices import resolve_device
from worldmodel.utils.progress import progress_bar
from worldmodel.utils.stages import Stage, run_stage
from worldmodel.utils.workers import HOURS, dismiss, in_parallel


def run(options: TrainAgentOptions) -> None:
    """Train, and show what the agents reach beside a random policy."""
    training, sees = _training(options), bool({"embedding", "features"} & set(options.obs))
    _check_options(options, sees)
    sight = None if options.encoder is None else given_sight(options.encoder)
    for obs in options.obs:
        _check_task(options, obs, training, sight)
    out = cli.run_folder(options.out, f"agent-{options.env}-{options.algo}")
    what = f"{options.algo} on {', '.join(options.obs)}, {options.seeds} seed(s)"
    console.print(f"{options.env}: {what}; into {out}", highlight=False)
    if sees and sight is None:
        sight = _trained_sight(options, out)
    stages = _train_all(options, out, sight)
    agents: Agents = {obs: [Agent.load(stage.folder / "agent.json") for stage in of] for obs, of in stages.items()}
    report(options, training, agents, stages, sight, out)
    for obs, group in agents.items():
        leader = int(np.argmax([agent.curve.mean.max() for agent in group]))  # by the episodes that choose
        best = out / f"best-{options.algo}-{obs}.zip"
        shutil.copy(stages[obs][leader].folder / f"best-{options.algo}.zip", best)
        console.print(f"The best model, which runs code when it is loaded, as any of SB3's: {best}", soft_wrap=True)


def _check_options(options: TrainAgentOptions, sees: bool) -> None:
    resolve_device(options.device)
    if options.seeds < 1 or options.seed < 0 or options.jobs < 1:
        counts = f"seeds is {options.seeds}, seed {options.seed} and jobs {options.jobs}"
        raise ValueError(f"{counts}: at least 1, not negative, at least 1")
    if len(set(options.obs)) < max(1, len(options.obs)):
        raise ValueError(f"--obs {' '.join(options.obs)}: one or several, each once")
    if options.encoder is not None and not sees:
        raise ValueError(f"--encoder is for --obs embedding and features, not for {', '.join(options.obs)}")


def _check_task(options: TrainAgentOptions, obs: Observation, training: AgentOptions, sight: Sight | None) -> None:
    """Refuse a task that there is not, and a replay buffer that does not fit, before any long work."""
    env = make_env(options, obs, sight.frame_size if sight else None)
    if options.algo == "sac" and obs != "embedding":  # an embedding is small
        stacked = 1 if obs == "state" else options.history
        transitions = training.transitions * min(options.jobs, options.seeds)
        check_replay_memory(batch_space(env.observation_space, stacked), env.action_space, transitions)
    env.close()


def _train_all(options: TrainAgentOptions, out: Path, sight: Sight | None) -> dict[Observation, list[Stage]]:
    """Train the agents of all seeds, side by side where that is asked for."""
    cells = [(obs, options.seed + index) for obs in options.obs for index in range(options.seeds)]
    done: list[Stage] = []
    if options.jobs == 1:
        done = [train_seed(options, out, seed, obs, sight) for obs, seed in cells]
    else:
        calls = [joblib.delayed(train_seed)(options, out, seed, obs, sight, progress=False) for obs, seed in cells]
        running = in_parallel(calls, options.jobs, "training agents", ordered=True, patience=HOURS)
        with progress_bar("agents", len(cells)) as advance:
            for stage in running:
                done.append(stage)
                advance(1, f"{stage.name} {stage.seconds:.0f} s")
        dismiss()
    stages: dict[Observation, list[Stage]] = {obs: [] for obs in options.obs}
    for (obs, _), stage in zip(cells, done, strict=True):
        stages[obs].append(stage)
    return stages


def _training(options: TrainAgentOptions) -> AgentOptions:
    return AgentOptions(
        algo=options.algo,
        steps=options.steps,
        envs=options.envs,
        evaluate_every=options.evaluate_every,
        episodes=options.episodes,
        test_episodes=options.test_episodes,
        minutes=options.minutes,
        buffer=options.buffer,
    )


def _trained_sight(options: TrainAgentOptions, out: Path) -> Sight:
    sight = trained_sight(
        options.env,
        options.goal == "picture",
        options.encoder_frames,
        options.encoder_steps,
        out,
        options.device,
        options.seed,
    )
    assert sight.report is not None
    shutil.copytree(sight.folder, out / "encoder", dirs_exist_ok=True)
    scores = zip(sight.report["names"], sight.report["r2_per_latent"], strict=True)
    listed = ", ".join(f"{name} {r2:.3f}" for name, r2 in scores)
    console.print(f"R² from the embedding {out / 'encoder'}, held-out episodes: {listed}", soft_wrap=True)
    return sight


def train_seed(
    options: TrainAgentOptions,
    out: Path,
    seed: int,
    obs: Observation = "state",
    sight: Sight | None = None,
    progress: bool = True,
) -> Stage:
    """Train the agent of one seed, or take the one of an earlier run; its folder holds ``best-<algo>.zip``."""
    training = _training(options)
    sight = sight if obs in ("embedding", "features") else None
    inputs = agent_inputs(options, obs, sight)

    def build(folder: Path) -> None:
        train_agent(
            inputs.make_envs,
            folder,
            training,
            policy=inputs.policy,
            policy_options=inputs.policy_options,
            device=options.device,
            seed=seed,
            progress=progress,
        )

    key = {"env": options.env, "frame_skip": options.frame_skip, "obs": obs, "training": training, "seed": seed}
    if obs != "state":
        key |= {"goal": options.goal, "history": options.history, "size": options.size}
        key |= {"encoder": sight.digest if sight else None}
    stage = run_stage(out, f"{obs}-seed{seed}", key, build, made_by=[train_agent, agent_inputs])
    if stage.cached or stage.changed:
        console.print(stage.told(), highlight=False)
    return stage
