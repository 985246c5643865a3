"""What acts: explorers that collect data, and what plugs an encoder into agents."""

from worldmodel.agents.collection import collect
from worldmodel.agents.explorers import ActionOU, LatentLaw, LatentOU, PosedExplorer, RandomActions, explorer
from worldmodel.agents.features import EncoderAdam, EncoderFeatures
from worldmodel.agents.observation import EmbeddingObservation, EmbeddingVecEnv, EmbeddingVectorObservation
from worldmodel.agents.ou import OrnsteinUhlenbeck, ou_chains
from worldmodel.agents.policies import (
    CallablePolicy,
    DrivingExplorer,
    EnvironmentExplorer,
    Mixture,
    Policy,
    SB3Policy,
    begin,
)
from worldmodel.agents.tracking import TrackingOU
from worldmodel.agents.training import Agent, AgentOptions, train_agent

__all__ = [
    "ActionOU",
    "Agent",
    "AgentOptions",
    "CallablePolicy",
    "DrivingExplorer",
    "EmbeddingObservation",
    "EmbeddingVecEnv",
    "EmbeddingVectorObservation",
    "EncoderAdam",
    "EncoderFeatures",
    "EnvironmentExplorer",
    "LatentLaw",
    "LatentOU",
    "Mixture",
    "OrnsteinUhlenbeck",
    "Policy",
    "PosedExplorer",
    "RandomActions",
    "SB3Policy",
    "TrackingOU",
    "begin",
    "collect",
    "explorer",
    "ou_chains",
    "train_agent",
]
