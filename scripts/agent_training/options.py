"""Options of the training of agents."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from worldmodel.agents.names import Algorithm

Observation = Literal["state", "embedding", "pixels", "features"]
Goal = Literal["picture", "beside"]


@dataclass(frozen=True)
class TrainAgentOptions:
    """Options of the training of agents.

    Attributes:
        env: a DeepMind Control task: reacher-easy, point_mass, cartpole-swingup, ...
        algo: sac or ppo.
        obs: what the agent observes, one or several to compare: the task's flat state, the embedding of a
            frame, pixels through SB3's own network, or features: an encoder inside the policy.
        goal: where frames leave the target of the task: in the picture, or beside it in numbers.
        encoder: folder of an encoder, for embedding and features (default: one is trained first, on OU poses of joints
            and target).
        encoder_frames: frames that such an encoder is trained on.
        encoder_steps: steps that it is trained.
        history: frames that are looked back on: embeddings with their changes, stacked pixels.
        steps: environment steps of each agent.
        minutes: training of each agent ends after so many minutes, though steps are left.
        seeds: how many agents are trained on each, each with a seed of its own.
        jobs: agents that are trained side by side, each in a process of its own.
        frame_skip: control steps that an action lasts; the return counts every one of them. Actions that last longer
            mean more episodes, so more targets, in as many steps.
        envs: environments that are stepped side by side.
        evaluate_every: environment steps between evaluations.
        episodes: episodes of an evaluation.
        size: height and width of a frame in pixels.
        test_episodes: other episodes, that the best model is scored on at the end.
        buffer: transitions that the replay buffer of SAC keeps (default: all of them).
        seed: of the first agent; the others count on from it.
        device: of the networks: auto, cpu or cuda.
        out: output folder (default: runs/agent-<env>-<algo>); training resumes from what lies there.
    """

    env: str = "reacher-easy"
    algo: Algorithm = "sac"
    obs: tuple[Observation, ...] = ("state",)
    goal: Goal = "picture"
    encoder: Path | None = None
    encoder_frames: int = 40_000
    encoder_steps: int = 3_000
    history: int = 2
    steps: int = 20_000
    minutes: float | None = None
    seeds: int = 1
    jobs: int = 1
    frame_skip: int = 4
    envs: int = 4
    evaluate_every: int = 2_000
    episodes: int = 10
    size: int = 64
    test_episodes: int = 20
    buffer: int | None = None
    seed: int = 0
    device: str = "auto"
    out: Path | None = None
