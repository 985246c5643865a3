"""What acts: explorers that collect data, and what plugs an encoder into agents."""

from typing import TYPE_CHECKING

from worldmodel.utils.faces import late

if TYPE_CHECKING:
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

_HOMES = {
    "ActionOU": "explorers",
    "Agent": "training",
    "AgentOptions": "training",
    "CallablePolicy": "policies",
    "DrivingExplorer": "policies",
    "EmbeddingObservation": "observation",
    "EmbeddingVecEnv": "observation",
    "EmbeddingVectorObservation": "observation",
    "EncoderAdam": "features",
    "EncoderFeatures": "features",
    "EnvironmentExplorer": "policies",
    "LatentLaw": "explorers",
    "LatentOU": "explorers",
    "Mixture": "policies",
    "OrnsteinUhlenbeck": "ou",
    "Policy": "policies",
    "PosedExplorer": "explorers",
    "RandomActions": "explorers",
    "SB3Policy": "policies",
    "TrackingOU": "tracking",
    "begin": "policies",
    "collect": "collection",
    "explorer": "explorers",
    "ou_chains": "ou",
    "train_agent": "training",
}
__getattr__, __dir__ = late(__name__, _HOMES)
