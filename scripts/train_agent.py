"""Train agents of stable-baselines3, one for each seed.

python scripts/train_agent.py --env reacher-easy --algo sac --obs latent
"""

import shutil
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import tyro
from gymnasium.vector.utils import batch_space
from rich.table import Table

from worldmodel.agents.curve import draw_curves
from worldmodel.agents.memory import check_replay_memory
from worldmodel.agents.training import Agent, AgentOptions, Algorithm, train_agent
from worldmodel.devices import resolve_device
from worldmodel.figures import save_figure
from worldmodel.files import to_plain, write_json
from worldmodel.intervals import Interval, t_interval
from worldmodel.scripts import cli
from worldmodel.scripts.agent_encoder import Sight, given_sight, trained_sight
from worldmodel.scripts.agent_inputs import Goal, Observation, agent_inputs, make_env
from worldmodel.scripts.cli import console
from worldmodel.stages import Stage, run_stage
from worldmodel.versions import versions


@dataclass(frozen=True)
class TrainAgentOptions:
    """Options of the training of agents.

    Attributes:
        env: a DeepMind Control task: reacher-easy, point_mass, cartpole-swingup, ...
        algo: sac or ppo.
        obs: what the agent observes: the task's flat state, the latent that an encoder reads from a frame, pixels
            through SB3's own network, or features: an encoder inside the policy.
        goal: where frames leave the target of the task: in the picture, or beside it in numbers.
        encoder: folder of an encoder, for latent and features (default: one is trained first, on OU poses of joints
            and target).
        encoder_frames: frames that such an encoder is trained on.
        encoder_steps: steps that it is trained.
        history: frames that are looked back on: latents with their changes, stacked pixels.
        steps: environment steps of each agent.
        minutes: training of each agent ends after so many minutes, though steps are left.
        seeds: how many agents are trained, each with a seed of its own.
        frame_skip: control steps that an action lasts; the return counts every one of them.
        envs: environments that are stepped side by side.
        evaluate_every: environment steps between evaluations.
        episodes: episodes of an evaluation.
        size: height and width of a frame in pixels.
        test_episodes: other episodes, that the best model is scored on at the end.
        buffer: transitions that the replay buffer of SAC keeps (default: all of them).
        seed: of the first agent; the others count on from it.
        device: of the networks: auto, cpu or cuda.
        out: output folder (default: runs/agent-<env>-<algo>-<obs>); training resumes from what lies there.
    """

    env: str = "reacher-easy"
    algo: Algorithm = "sac"
    obs: Observation = "state"
    goal: Goal = "picture"
    encoder: Path | None = None
    encoder_frames: int = 40_000
    encoder_steps: int = 2_000
    history: int = 2
    steps: int = 20_000
    minutes: float | None = None
    seeds: int = 1
    frame_skip: int = 2
    envs: int = 4
    evaluate_every: int = 2_000
    episodes: int = 10
    size: int = 64
    test_episodes: int = 20
    buffer: int | None = None
    seed: int = 0
    device: str = "auto"
    out: Path | None = None


def main(options: Annotated[TrainAgentOptions, tyro.conf.arg(name="")]) -> None:
    """Train, and show what the agents reach beside a random policy."""
    training = _training(options)
    resolve_device(options.device)
    if options.seeds < 1 or options.seed < 0:
        raise ValueError(f"seeds is {options.seeds} and seed {options.seed}: at least 1, and not negative")
    if options.encoder is not None and options.obs not in ("latent", "features"):
        raise ValueError(f"--encoder is for --obs latent and features, not for {options.obs}")
    sight = None if options.encoder is None else given_sight(options.encoder)
    _check_task(options, training, sight)
    out = cli.run_folder(options.out, f"agent-{options.env}-{options.algo}-{options.obs}")
    console.print(
        f"{options.env}: {options.algo} on {options.obs}, {options.seeds} seed(s); into {out}", highlight=False
    )
    if options.obs in ("latent", "features") and sight is None:
        sight = _trained_sight(options, out)
    stages = [train_seed(options, out, options.seed + index, sight) for index in range(options.seeds)]
    agents = [Agent.load(stage.folder / "agent.json") for stage in stages]
    leader = int(np.argmax([agent.curve.mean.max() for agent in agents]))  # by the episodes that choose
    best = out / f"best-{options.algo}.zip"
    shutil.copy(stages[leader].folder / best.name, best)
    label = f"{options.algo} on {options.obs}"
    random = float(np.mean([agent.random.mean() for agent in agents]))
    save_figure(draw_curves({label: [agent.curve for agent in agents]}, random), out / "learning.png")
    console.print(_table(options, agents))
    console.print(f"The best model, which runs code when it is loaded, as any of SB3's: {best}", soft_wrap=True)
    console.print(
        str(write_json(out / "result.json", _result(options, training, agents, stages, sight))), soft_wrap=True
    )


def _check_task(options: TrainAgentOptions, training: AgentOptions, sight: Sight | None) -> None:
    """Refuse a task that there is not, and a replay buffer that does not fit, before any long work."""
    env = make_env(options, sight.frame_size if sight else None)
    if options.algo == "sac" and options.obs != "latent":  # a latent is small
        stacked = 1 if options.obs == "state" else options.history
        check_replay_memory(batch_space(env.observation_space, stacked), env.action_space, training.transitions)
    env.close()


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
    scores = zip(sight.report["names"], sight.report["r2_per_latent"], strict=True)
    console.print("R² from the embedding, held-out episodes: " + ", ".join(f"{name} {r2:.3f}" for name, r2 in scores))
    return sight


def train_seed(options: TrainAgentOptions, out: Path, seed: int, sight: Sight | None = None) -> Stage:
    """Train the agent of one seed, or take the one of an earlier run; its folder holds ``best-<algo>.zip``."""
    training, inputs = _training(options), agent_inputs(options, sight)

    def build(folder: Path) -> None:
        train_agent(
            inputs.make_envs,
            folder,
            training,
            policy=inputs.policy,
            policy_options=inputs.policy_options,
            device=options.device,
            seed=seed,
        )

    key = {"env": options.env, "frame_skip": options.frame_skip, "obs": options.obs, "training": training, "seed": seed}
    if options.obs != "state":
        key |= {"goal": options.goal, "history": options.history, "size": options.size}
        key |= {"encoder": sight.digest if sight else None}
    stage = run_stage(out, f"seed{seed}", key, build)
    if stage.cached:
        console.print(f"{stage.name}: kept from an earlier run ({stage.seconds:.0f} s then)", highlight=False)
    return stage


def _returns(agents: list[Agent]) -> dict[str, Interval]:
    """Returns on test episodes with intervals over seeds; over the episodes where there is a single seed."""
    scores = {name: [getattr(agent, name) for agent in agents] for name in ("best", "last", "random")}
    if len(agents) == 1:
        return {name: t_interval(returns) for name, (returns,) in scores.items()}
    return {name: t_interval([returns.mean() for returns in of]) for name, of in scores.items()}


def _table(options: TrainAgentOptions, agents: list[Agent]) -> Table:
    unit = f"{len(agents)} seeds" if len(agents) > 1 else f"{options.test_episodes} episodes of one seed"
    table = Table(title=f"Return on test episodes, 95% over {unit}", title_justify="left")
    for column in ("policy", "return"):
        table.add_column(column, justify="left" if column == "policy" else "right")
    for name, value in _returns(agents).items():
        label = {"best": "best model", "last": f"last model, {options.steps} steps", "random": "random"}[name]
        table.add_row(label, f"{value.mean:.0f} [{value.low:.0f}, {value.high:.0f}]")
    return table


def _result(
    options: TrainAgentOptions, training: AgentOptions, agents: list[Agent], stages: list[Stage], sight: Sight | None
) -> dict[str, Any]:
    returns = _returns(agents)
    rows = [
        {
            "seed": options.seed + index,
            "model": stage.folder / f"best-{options.algo}.zip",
            "train_seconds": agent.seconds,
            "wall_seconds": stage.seconds,
            "test": {name: getattr(agent, name) for name in ("best", "last", "random")},
            "curve": agent.curve.to_json(),
        }
        for index, (agent, stage) in enumerate(zip(agents, stages, strict=True))
    ]
    value = {
        "env": options.env,
        "algo": options.algo,
        "obs": options.obs,
        "seed": options.seed,
        "options": asdict(options) | {"training": asdict(training)},
        "versions": versions(),
        "encoder": None if sight is None else {"folder": sight.folder, "identifiability": sight.report},
        "unit": "seed" if len(agents) > 1 else "episode",
        "return": returns["best"].to_json(),
        "return_last": returns["last"].to_json(),
        "return_random": returns["random"].to_json(),
        "seeds": rows,
    }
    return to_plain(value)


if __name__ == "__main__":
    cli.run(main, "train_agent")
