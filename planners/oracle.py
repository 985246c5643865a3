"""World models for planners: the embedding's, and its oracle twin, which observes the true latents."""

import numpy as np

from worldmodel.data.episodes import Episodes
from worldmodel.dynamics.fitting import FitDynamics, fit_named
from worldmodel.dynamics.names import DynamicsName
from worldmodel.dynamics.states import Encodes, LinearModel, Trajectories, encode_episodes
from worldmodel.dynamics.world_model import Eye, WorldModel
from worldmodel.envs.latents import LatentSpec
from worldmodel.planners.lqr import ControlError


def embedding_world(
    encoder: Encodes, train: Trajectories, selection: Trajectories, kind: DynamicsName | FitDynamics = "kalman"
) -> WorldModel:
    """Fit the dynamics of embeddings, see through the encoder.

    Args:
        encoder: frames to embeddings.
        train: driven episodes, embedded by it.
        selection: others, on which the history is chosen.
        kind: of dynamics.
    """
    dynamics, excitation = fit_named(kind, train, selection)
    return WorldModel(encoder, dynamics, "frames", excitation)


def oracle_world(
    spec: LatentSpec, train: Trajectories, selection: Trajectories, kind: DynamicsName | FitDynamics = "kalman"
) -> WorldModel:
    """Fit the dynamics of the true latents by the same code, on the same episodes; see the latents themselves."""
    dynamics, excitation = fit_named(kind, train, selection)
    return WorldModel(Eye(spec.wrap), dynamics, "latents", excitation)


def fit_worlds(
    encoder: Encodes, episodes: Episodes, spec: LatentSpec, kind: DynamicsName | FitDynamics = "kalman"
) -> tuple[WorldModel, WorldModel]:
    """Return the embedding's world and its oracle twin, from the same driven episodes."""
    train, selection = episodes.train, episodes.selection
    return (
        embedding_world(encoder, encode_episodes(encoder, train), encode_episodes(encoder, selection), kind),
        oracle_world(spec, true_trajectories(train), true_trajectories(selection), kind),
    )


def true_trajectories(episodes: Episodes) -> Trajectories:
    """Take the true latents of driven episodes in place of embeddings."""
    return Trajectories(episodes.latents.astype(np.float64), episodes.actions, episodes.offsets)


def linear_of(world: WorldModel, needed_by: str) -> LinearModel:
    """Return the linear model of a world, which LQR and QP plan by.

    Raises:
        ControlError: its dynamics have none.
    """
    if world.linear is None:
        raise ControlError(f"without a linear model, which {needed_by} plans by: take mpc-cem, or another that samples")
    return world.linear
