"""From pixels to a plan, with proof: the learned world model.

Names load on first use, so that a process that only renders or steps a simulator never imports torch.

>>> import worldmodel as wm
>>> wm.LeJEPA(weight=0.05).weight
0.05
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from worldmodel.certificate import certificate as certificate
    from worldmodel.encoder import Encoder as Encoder
    from worldmodel.episodes import Episodes as Episodes
    from worldmodel.identifiability import Identifiability as Identifiability
    from worldmodel.identifiability import certify as certify
    from worldmodel.identifiability import identifiability as identifiability
    from worldmodel.identifiability import measure as measure
    from worldmodel.objectives import LeJEPA as LeJEPA
    from worldmodel.store import EpisodeStore as EpisodeStore
    from worldmodel.training import TrainingOptions as TrainingOptions
    from worldmodel.training import fit_encoder as fit_encoder

_HOME = {
    "Encoder": "encoder",
    "Episodes": "episodes",
    "EpisodeStore": "store",
    "Identifiability": "identifiability",
    "certificate": "certificate",
    "measure": "identifiability",
    "certify": "identifiability",
    "identifiability": "identifiability",
    "LeJEPA": "objectives",
    "TrainingOptions": "training",
    "fit_encoder": "training",
}
__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'worldmodel' has no attribute {name!r}")
    value = getattr(import_module(f"worldmodel.{_HOME[name]}"), name)
    globals()[name] = value  # also where a function and its module share a name
    return value
