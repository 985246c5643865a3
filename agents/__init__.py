"""What acts: explorers that collect data, and what plugs an encoder into agents."""

from worldmodel.agents.collect import collect
from worldmodel.agents.explorers import ActionOU, DrivingExplorer, LatentOU, PosedExplorer, RandomActions, explorer
from worldmodel.agents.ou import OrnsteinUhlenbeck, ou_chains

__all__ = [
    "ActionOU",
    "DrivingExplorer",
    "LatentOU",
    "OrnsteinUhlenbeck",
    "PosedExplorer",
    "RandomActions",
    "collect",
    "explorer",
    "ou_chains",
]
