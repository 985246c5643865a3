"""Train an agent of stable-baselines3: evaluated apart from training, with its best model kept, resumed when killed."""

import json
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, get_args

import numpy as np
from stable_baselines3 import PPO, SAC
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.callbacks import BaseCallback, CallbackList, ConvertCallback
from stable_baselines3.common.logger import configure
from stable_baselines3.common.vec_env import VecEnv

from worldmodel.agents.curve import LearningCurve
from worldmodel.agents.evaluation import Evaluation, RandomPolicy, Stopwatch, episode_returns
from worldmodel.agents.names import Algorithm
from worldmodel.agents.replay_memory import check_replay_memory
from worldmodel.agents.snapshots import Snapshots, resume
from worldmodel.utils.devices import one_core_spared, resolve_device
from worldmodel.utils.files import write_json
from worldmodel.utils.progress import Advance, progress_bar

_KINDS: dict[Algorithm, type[BaseAlgorithm]] = {"sac": SAC, "ppo": PPO}
_NETWORK, _GAMMA = (128, 128), 0.98
_TRAINING, _SELECTION, _TEST, _RESUMED = range(4)  # streams of seeds


@dataclass(frozen=True)
class AgentOptions:
    """How an agent is trained.

    Attributes:
        algo: sac or ppo.
        steps: environment steps, all environments together.
        envs: environments that are stepped side by side.
        evaluate_every: environment steps between evaluations; the last one is at the end.
        episodes: episodes of an evaluation, the same ones every time; the best model is chosen by them.
        test_episodes: other episodes, that the best model and the last one are scored on once, at the end.
        minutes: training ends after so many minutes, evaluations left out, though steps are left (default: never).
        buffer: transitions that the replay buffer of SAC keeps (default: all of them).
        snapshot_seconds: time between snapshots that an interrupted training goes on from.
    """

    algo: Algorithm = "sac"
    steps: int = 20_000
    envs: int = 4
    evaluate_every: int = 2_000
    episodes: int = 10
    test_episodes: int = 20
    minutes: float | None = None
    buffer: int | None = None
    snapshot_seconds: float = 60.0

    def __post_init__(self) -> None:
        if self.algo not in get_args(Algorithm):
            raise ValueError(f"unknown algorithm {self.algo!r}: take one of {', '.join(get_args(Algorithm))}")
        for name in ("steps", "envs", "evaluate_every", "episodes", "test_episodes"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} is {getattr(self, name)}; it must be at least 1")

    @property
    def transitions(self) -> int:
        """Transitions that the replay buffer keeps."""
        return min(self.steps, self.buffer or self.steps)


@dataclass(frozen=True)
class Agent:
    """A trained agent.

    Attributes:
        curve: its evaluations while it trained.
        best: returns of the best model on the test episodes (test_episodes,).
        last: returns of the last model on them.
        random: returns of uniform actions on them.
        seconds: of training, evaluations left out.
    """

    curve: LearningCurve
    best: np.ndarray
    last: np.ndarray
    random: np.ndarray
    seconds: float

    def save(self, path: Path) -> None:
        """Write JSON."""
        arrays = {name: getattr(self, name).tolist() for name in ("best", "last", "random")}
        write_json(path, {"curve": self.curve.to_json(), **arrays, "seconds": self.seconds})

    @classmethod
    def load(cls, path: Path) -> "Agent":
        """Read what :meth:`save` wrote."""
        value = json.loads(path.read_text())
        best, last, random = (np.array(value[name]) for name in ("best", "last", "random"))
        return cls(LearningCurve.from_json(value["curve"]), best, last, random, value["seconds"])


def train_agent(
    make_envs: Callable[[int], VecEnv],
    out: Path,
    options: AgentOptions = AgentOptions(),
    *,
    policy: str = "MlpPolicy",
    policy_options: Mapping[str, Any] | None = None,
    device: str = "auto",
    seed: int = 0,
    progress: bool = True,
) -> Agent:
    """Train one agent.

    Interrupted, it goes on from its last snapshot when called again, on other random numbers than an uninterrupted run
    would have drawn. A model file holds pickles, and so does a snapshot: load only what you or someone you trust made.

    Args:
        make_envs: makes that many environments, each with a Monitor.
        out: folder for ``best-<algo>.zip``, ``last-<algo>.zip``, ``agent.json``, TensorBoard's files and snapshots.
        options: how to train.
        policy: SB3's name of the policy.
        policy_options: SB3's ``policy_kwargs``.
        device: auto, cpu or cuda.
        seed: decides networks, exploration and episodes. SB3 sets the global generators by it.
        progress: draw a progress bar.

    Raises:
        ValueError: the replay buffer does not fit into memory, or TensorBoard is not installed.
    """
    if find_spec("tensorboard") is None:
        raise ValueError("TensorBoard is not installed: pip install 'worldmodel[train]'")
    envs, watched = make_envs(options.envs), make_envs(options.episodes)
    try:
        if options.algo == "sac":
            check_replay_memory(envs.observation_space, envs.action_space, options.transitions)
        where = str(resolve_device(device))
        kind, best = _KINDS[options.algo], out / f"best-{options.algo}.zip"
        snapshots = out / "snapshots"
        found = resume(snapshots, kind, envs, best, where, _seed(seed, _RESUMED))
        model = found.model if found else _new_model(options, policy, policy_options, envs, where, seed)
        model.set_logger(configure(str(out / "tensorboard"), ["tensorboard"]))
        watch = Stopwatch(found.seconds if found else 0.0)
        curve = found.curve if found else None
        evaluation = Evaluation(watched, _seed(seed, _SELECTION), options.evaluate_every, watch, best, curve)
        done, label = model.num_timesteps, f"{options.algo} seed {seed}"
        with one_core_spared(), progress_bar(label, options.steps, progress, done=done) as advance:
            saving = Snapshots(snapshots, evaluation, options.snapshot_seconds)
            timing = ConvertCallback(lambda *_: watch.seconds < 60 * (options.minutes or np.inf))
            callbacks = CallbackList([evaluation, saving, _Bar(advance, evaluation), timing])
            model.learn(options.steps - done, callbacks, reset_num_timesteps=False)
        seconds = watch.seconds
        model.save(out / f"last-{options.algo}.zip")
        chosen = kind.load(best, device=where, buffer_size=1)
        agent = _score(make_envs, options, evaluation.curve, seconds, model, chosen, seed)
    finally:
        envs.close()
        watched.close()
    agent.save(out / "agent.json")
    shutil.rmtree(snapshots, ignore_errors=True)
    return agent


def _new_model(
    options: AgentOptions,
    policy: str,
    policy_options: Mapping[str, Any] | None,
    envs: VecEnv,
    device: str,
    seed: int,
) -> BaseAlgorithm:
    """Make an untrained model, its settings chosen on reacher-easy's state at steps of 0.04 s."""
    kwargs = {"net_arch": list(_NETWORK), **(policy_options or {})}
    seed = _seed(seed, _TRAINING)
    if options.algo == "ppo":
        rollout = max(2, min(256, options.steps // options.envs))
        return PPO(
            policy,
            envs,
            n_steps=rollout,
            batch_size=rollout,
            gamma=_GAMMA,
            policy_kwargs=kwargs,
            device=device,
            seed=seed,
        )
    return SAC(
        policy,
        envs,
        learning_rate=1e-3,
        buffer_size=options.transitions,
        learning_starts=min(1_000, options.steps // 10),
        batch_size=256,
        tau=0.01,
        gamma=_GAMMA,
        train_freq=1,
        gradient_steps=-1,  # as many updates as steps, since reward is rare
        ent_coef="auto_0.1",  # at 1, where SB3 starts, entropy outweighs reward for thousands of steps
        policy_kwargs=kwargs,
        device=device,
        seed=seed,
    )


def _score(
    make_envs: Callable[[int], VecEnv],
    options: AgentOptions,
    curve: LearningCurve,
    seconds: float,
    last: BaseAlgorithm,
    best: BaseAlgorithm,
    seed: int,
) -> Agent:
    """Score the models on episodes that chose nothing."""
    envs, episodes = make_envs(options.test_episodes), _seed(seed, _TEST)
    try:
        return Agent(
            curve=curve,
            best=episode_returns(best, envs, episodes),
            last=episode_returns(last, envs, episodes),
            random=episode_returns(RandomPolicy(envs, episodes), envs, episodes),
            seconds=seconds,
        )
    finally:
        envs.close()


class _Bar(BaseCallback):
    """Moves the progress bar on."""

    def __init__(self, advance: Advance, evaluation: Evaluation) -> None:
        super().__init__()
        self._advance, self._evaluation = advance, evaluation

    def _on_step(self) -> bool:
        means = self._evaluation.curve.mean
        note = f"return {means[-1]:.0f}, best {means.max():.0f}" if len(means) else ""
        self._advance(self.training_env.num_envs, note)
        return True


def _seed(seed: int, stream: int) -> int:
    """Return a seed for SB3 and its environments, which number on from it, far from those of other streams."""
    return int(np.random.SeedSequence([seed, stream]).generate_state(1)[0]) % 2**31
