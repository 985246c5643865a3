"""From pixels to a plan, with proof: the learned world model.

What needs torch or Gymnasium loads on first use: a process that only renders or steps a simulator never waits for
torch, and an encoder loads where Gymnasium is not installed.

>>> import worldmodel as wm
>>> wm.LeJEPA(weight=0.05).weight
0.05
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from worldmodel import loading
from worldmodel.certificate import Certificate, certificate
from worldmodel.episodes import Episode, Episodes
from worldmodel.identifiability import Identifiability, certify, identifiability, measure
from worldmodel.store import EpisodeStore, load_episodes
from worldmodel.streaming import StreamedEpisodes

if TYPE_CHECKING:
    from worldmodel.dynamics import LinearGaussianDynamics, fit_dynamics, fit_linear_dynamics
    from worldmodel.encoder import Encoder
    from worldmodel.minari_data import ObservationKeys, export_minari, import_minari
    from worldmodel.objectives import BarlowTwins, InfoNCE, LeJEPA, VICReg, Whitening
    from worldmodel.training import TrainingOptions, fit_encoder

loading.settle()  # before anything of ours draws or computes

_ON_FIRST_USE = {
    "LinearGaussianDynamics": "dynamics",
    "fit_dynamics": "dynamics",
    "fit_linear_dynamics": "dynamics",
    "Encoder": "encoder",
    "BarlowTwins": "objectives",
    "InfoNCE": "objectives",
    "LeJEPA": "objectives",
    "VICReg": "objectives",
    "Whitening": "objectives",
    "ObservationKeys": "minari_data",
    "export_minari": "minari_data",
    "import_minari": "minari_data",
    "TrainingOptions": "training",
    "fit_encoder": "training",
}

__all__ = [
    "BarlowTwins",
    "Certificate",
    "Encoder",
    "Episode",
    "EpisodeStore",
    "Episodes",
    "Identifiability",
    "InfoNCE",
    "LeJEPA",
    "LinearGaussianDynamics",
    "ObservationKeys",
    "StreamedEpisodes",
    "TrainingOptions",
    "VICReg",
    "Whitening",
    "certificate",
    "certify",
    "export_minari",
    "fit_dynamics",
    "fit_encoder",
    "fit_linear_dynamics",
    "identifiability",
    "import_minari",
    "load_episodes",
    "measure",
]


def __getattr__(name: str) -> Any:
    if name not in _ON_FIRST_USE:
        raise AttributeError(f"module 'worldmodel' has no attribute {name!r}")
    return getattr(import_module(f"worldmodel.{_ON_FIRST_USE[name]}"), name)
