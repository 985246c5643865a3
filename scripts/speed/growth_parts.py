"""Parts of the library that grow: what takes the time of one call, at sizes of one kind, all else as by default."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from stable_baselines3.common.vec_env import DummyVecEnv

from worldmodel import envs
from worldmodel.agents import EmbeddingVecEnv, LatentOU, collect
from worldmodel.data.store import load_episodes
from worldmodel.dynamics.linear import LinearGaussianDynamics
from worldmodel.encoders.encoder import Encoder
from worldmodel.encoders.objectives import LeJEPA
from worldmodel.encoders.training import TrainingOptions, TrainingRun
from worldmodel.planners import LQR, MPC, QuadraticCost
from worldmodel.planners.optimisers import CEM, QP, Bounds, Optimiser
from worldmodel.synthetic.training import VectorTraining, losses_of, new_encoder
from worldmodel.synthetic.worlds import World

Axis = Literal["frames", "latents", "samples", "environments"]
Call = Callable[[], Any]
_SIZE, _PAIRS, _STATES, _ACTIONS = 64, 128, 8, 2
_COST = QuadraticCost(action_weight=0.1)
_BOUNDS = Bounds.of(-np.ones(_ACTIONS), np.ones(_ACTIONS))


@dataclass(frozen=True)
class Part:
    """A part of the library, and the sizes that it is measured at.

    Attributes:
        axis: what grows.
        what: is called, for people.
        sizes: ascending.
        prepare: returns what does one call at a size; preparing is not measured.
    """

    axis: Axis
    what: str
    sizes: tuple[int, ...]
    prepare: Callable[[int], Call]


@dataclass(frozen=True)
class Setting:
    """What all parts share.

    Attributes:
        folder: for data sets.
        device: of networks and objectives.
        seed: of data, weights and noise.
    """

    folder: Path
    device: torch.device
    seed: int

    @property
    def generator(self) -> torch.Generator:
        """Noise on the device, from its start."""
        return torch.Generator(self.device).manual_seed(self.seed)

    @property
    def rng(self) -> np.random.Generator:
        """Noise for arrays, from its start."""
        return np.random.default_rng(self.seed)


def parts(setting: Setting) -> list[Part]:
    """Return every part with its sizes."""
    return [
        Part("frames", "collect", _doubled(1_000, 8_000), lambda F: _collect(F, setting)),
        Part("frames", "load_episodes", _doubled(1_000, 8_000), lambda F: _load(F, setting)),
        Part("frames", "Encoder.encode", _doubled(64, 4_096), lambda F: _encode(F, setting)),
        Part("latents", "LeJEPA and its gradient", _doubled(2, 512), lambda m: _lejepa(_PAIRS, m, setting)),
        Part("latents", "step of fit_encoder", _doubled(2, 512), lambda m: _fit_encoder(_PAIRS, m, setting)),
        Part("latents", "step of fit_vectors, coupling", _doubled(2, 512), lambda N: _fit_vectors(N, setting)),
        Part("latents", "LQR's gain", _doubled(2, 256), lambda S: lambda: LQR(_model(S, setting), _COST)),
        Part("latents", "MPC-QP plans", _doubled(2, 256), lambda S: _plans(QP(), 8, S, setting)),
        Part("samples", "LeJEPA and its gradient", _doubled(32, 4_096), lambda N: _lejepa(N, 8, setting)),
        Part("samples", "step of fit_encoder", _doubled(16, 512), lambda N: _fit_encoder(N, 2, setting)),
        Part("samples", "MPC-CEM plans", _doubled(32, 4_096), lambda K: _plans(CEM(K), 8, _STATES, setting)),
        Part("environments", "EmbeddingVecEnv.step", _doubled(1, 64), lambda E: _step(E, setting)),
        Part("environments", "LQR acts", _doubled(16, 4_096), lambda E: _acts(E, setting)),
        Part("environments", "MPC-QP plans", _doubled(4, 1_024), lambda E: _plans(QP(), E, _STATES, setting)),
        Part("environments", "MPC-CEM plans", _doubled(4, 128), lambda E: _plans(CEM(), E, _STATES, setting)),
    ]


def _doubled(first: int, last: int) -> tuple[int, ...]:
    return tuple(first * 2**k for k in range((last // first).bit_length()))


def _collect(frames: int, setting: Setting) -> Call:
    out = setting.folder / f"collect-{frames}"
    return lambda: collect("reacher", LatentOU(0.8), frames, out, seed=setting.seed, mode="overwrite", progress=False)


def _load(frames: int, setting: Setting) -> Call:
    out = setting.folder / f"load-{frames}"
    collect("reacher", LatentOU(0.8), frames, out, seed=setting.seed, progress=False)
    return lambda: load_episodes(out)


def _encode(frames: int, setting: Setting) -> Call:
    encoder = Encoder(2, (_SIZE, _SIZE)).to(setting.device).freeze()
    images = setting.rng.integers(0, 256, (frames, _SIZE, _SIZE, 3), np.uint8)
    return lambda: encoder.encode(images)


def _lejepa(pairs: int, latents: int, setting: Setting) -> Call:
    generator, objective = setting.generator, LeJEPA()
    views = torch.randn(2, pairs, latents, generator=generator, device=setting.device).requires_grad_()
    return lambda: torch.autograd.grad(objective(views, generator).loss, views)[0]


def _fit_encoder(pairs: int, latents: int, setting: Setting) -> Call:
    frames = torch.from_numpy(setting.rng.integers(0, 256, (2 * pairs, _SIZE, _SIZE, 3), np.uint8)).to(setting.device)
    options = TrainingOptions(steps=1_000_000, batch_size=pairs)
    run = TrainingRun(Encoder(latents, (_SIZE, _SIZE)), LeJEPA(), options, 0.8, setting.seed, setting.device, "bench")
    run.encoder.train()
    return lambda: run.update(frames, pairs)[1]


def _fit_vectors(latents: int, setting: Setting) -> Call:
    world, generator = World(latents=latents, mixing="coupling", seed=setting.seed), setting.generator
    training, objective = VectorTraining(copies=1, encoder="coupling"), LeJEPA(whiten=False)
    encoder = new_encoder(world, latents, training, generator)
    parameters = list(encoder.parameters())

    def step() -> torch.Tensor:
        loss = losses_of(encoder, world, objective, training.batch_size, generator).sum()
        return torch.autograd.grad(loss, parameters)[0]

    return step


def _model(states: int, setting: Setting) -> LinearGaussianDynamics:
    rng = setting.rng
    A = rng.standard_normal((states, states))
    A *= 0.95 / np.abs(np.linalg.eigvals(A)).max()
    B = rng.standard_normal((states, _ACTIONS)) / np.sqrt(states)
    return LinearGaussianDynamics(A, B, np.zeros(states), np.zeros((states, states)), 1, states, _ACTIONS)


def _plans(optimiser: Optimiser, environments: int, states: int, setting: Setting) -> Call:
    mpc = MPC(_model(states, setting), _COST, _BOUNDS, optimiser, seed=setting.seed)
    s, goals = setting.rng.standard_normal((2, environments, states))
    mpc.plan(s, goals)  # the plans after it start from the last one, as in closed loop
    return lambda: mpc.plan(s, goals)


def _acts(environments: int, setting: Setting) -> Call:
    lqr = LQR(_model(_STATES, setting), _COST, _BOUNDS)
    s, goals = setting.rng.standard_normal((2, environments, _STATES))
    return lambda: lqr.act(s, goals)


def _step(environments: int, setting: Setting) -> Call:
    venv = DummyVecEnv([lambda: envs.make("reacher", pixels=True)] * environments)
    agents = EmbeddingVecEnv(venv, Encoder(2, (_SIZE, _SIZE)).to(setting.device).freeze())
    agents.seed(setting.seed)
    agents.reset()
    actions = np.zeros((environments, _ACTIONS), np.float32)
    return lambda: agents.step(actions)
