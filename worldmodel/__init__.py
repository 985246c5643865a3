"""From pixels to a plan, with proof: the learned world model.

Every name loads on first use: a process that only renders or steps a simulator never waits for torch, an encoder loads
where Gymnasium is not installed, and ``worldmodel doctor`` has its say where a library beneath is broken.

>>> import worldmodel as wm
>>> wm.LeJEPA(weight=0.05).weight
0.05
"""

from typing import TYPE_CHECKING

from worldmodel.utils import loading
from worldmodel.utils.faces import late

if TYPE_CHECKING:
    from worldmodel.data.episodes import Episode, Episodes
    from worldmodel.data.formats.minari import ObservationKeys, export_minari, import_minari
    from worldmodel.data.store import EpisodeStore, load_episodes
    from worldmodel.data.streaming import StreamedEpisodes
    from worldmodel.dynamics.linear import LinearGaussianDynamics, fit_dynamics, fit_linear_dynamics
    from worldmodel.dynamics.world_model import WorldModel, fit_world_model
    from worldmodel.encoders.encoder import Encoder
    from worldmodel.encoders.objectives import BarlowTwins, InfoNCE, LeJEPA, VICReg, Whitening
    from worldmodel.encoders.training import TrainingOptions, fit_encoder
    from worldmodel.measures.certificate import Certificate, certificate
    from worldmodel.measures.identifiability import Identifiability, certify, identifiability, measure

loading.settle()  # before anything of ours draws or computes

_ON_FIRST_USE = {
    "Episode": "data.episodes",
    "Episodes": "data.episodes",
    "EpisodeStore": "data.store",
    "load_episodes": "data.store",
    "StreamedEpisodes": "data.streaming",
    "Certificate": "measures.certificate",
    "certificate": "measures.certificate",
    "Identifiability": "measures.identifiability",
    "certify": "measures.identifiability",
    "identifiability": "measures.identifiability",
    "measure": "measures.identifiability",
    "LinearGaussianDynamics": "dynamics.linear",
    "fit_dynamics": "dynamics.linear",
    "fit_linear_dynamics": "dynamics.linear",
    "WorldModel": "dynamics.world_model",
    "fit_world_model": "dynamics.world_model",
    "Encoder": "encoders.encoder",
    "BarlowTwins": "encoders.objectives",
    "InfoNCE": "encoders.objectives",
    "LeJEPA": "encoders.objectives",
    "VICReg": "encoders.objectives",
    "Whitening": "encoders.objectives",
    "ObservationKeys": "data.formats.minari",
    "export_minari": "data.formats.minari",
    "import_minari": "data.formats.minari",
    "TrainingOptions": "encoders.training",
    "fit_encoder": "encoders.training",
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
    "WorldModel",
    "certificate",
    "certify",
    "export_minari",
    "fit_dynamics",
    "fit_encoder",
    "fit_linear_dynamics",
    "fit_world_model",
    "identifiability",
    "import_minari",
    "load_episodes",
    "measure",
]

__getattr__, __dir__ = late(__name__, _ON_FIRST_USE)
