"""What planners know of the world: how to see, how to keep a state, what actions do; for the oracle, in truth."""

from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from worldmodel.data.episodes import Episodes
from worldmodel.dynamics.kalman import fit_kalman
from worldmodel.dynamics.linear import Excitation, fit_linear_dynamics
from worldmodel.dynamics.neural import fit_neural_dynamics
from worldmodel.dynamics.states import Estimator, LinearModel, Trajectories, encode_episodes
from worldmodel.encoders.encoder import Encoder
from worldmodel.envs.latents import LatentSpec
from worldmodel.planners.policy import See

ModelKind = Literal["linear", "kalman", "neural"]
"""Linear over the last embeddings and actions; linear over a Kalman filter's estimate; networks that correct it."""


@dataclass(frozen=True, eq=False)
class World:
    """A world as a planner sees it.

    Attributes:
        observes: frames; or the true latents, which makes it an oracle.
        see: observations (B, ...) to embeddings (B, m).
        estimator: keeps the state, from embeddings and actions.
        model: what actions do to that state.
        linear: its linear model: ``model`` itself, or what it corrects.
        excitation: how well the data determined the dynamics; None where a direction was not excited.
    """

    observes: Literal["frames", "latents"]
    see: See
    estimator: Estimator
    model: Any
    linear: LinearModel
    excitation: Excitation | None = None


def embedding_world(
    encoder: Encoder, train: Trajectories, selection: Trajectories, kind: ModelKind = "kalman"
) -> World:
    """Fit the dynamics of embeddings, see through the encoder.

    Args:
        encoder: frames to embeddings.
        train: driven episodes, embedded by it.
        selection: others, on which the history is chosen.
        kind: of dynamics.
    """
    return _world("frames", encoder.encode, train, selection, kind)


def oracle_world(spec: LatentSpec, train: Trajectories, selection: Trajectories, kind: ModelKind = "kalman") -> World:
    """Fit the dynamics of the true latents by the same code, on the same episodes; see the latents themselves."""
    return _world("latents", spec.wrap, train, selection, kind)


def fit_worlds(
    encoder: Encoder, episodes: Episodes, spec: LatentSpec, kind: ModelKind = "kalman"
) -> tuple[World, World]:
    """Return the embedding's world and its oracle twin, from the same driven episodes."""
    train, selection = episodes.train, episodes.selection
    return (
        embedding_world(encoder, encode_episodes(encoder, train), encode_episodes(encoder, selection), kind),
        oracle_world(spec, true_trajectories(train), true_trajectories(selection), kind),
    )


def true_trajectories(episodes: Episodes) -> Trajectories:
    """Take the true latents of driven episodes in place of embeddings."""
    return Trajectories(episodes.latents.astype(np.float64), episodes.actions, episodes.offsets)


def _world(
    observes: Literal["frames", "latents"], see: See, train: Trajectories, selection: Trajectories, kind: ModelKind
) -> World:
    if kind == "kalman":
        kalman, excitation = fit_kalman(*train), None
        with suppress(ValueError):  # likelihood needs no excitation of every direction; whoever reads the report does
            excitation = fit_linear_dynamics(*train, history=2).excitation
        return World(observes, see, kalman, kalman, kalman, excitation)
    linear = fit_linear_dynamics(*train, history=None, selection=selection)
    model = fit_neural_dynamics(*train, linear=linear) if kind == "neural" else linear
    return World(observes, see, linear.layout, model, linear, linear.excitation)
