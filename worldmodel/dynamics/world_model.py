"""The world model: what sees, what keeps a state, and what knows what actions do, as one object and in one folder."""

import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from worldmodel.dynamics.fitting import FitDynamics, fit_named
from worldmodel.dynamics.linear import Excitation
from worldmodel.dynamics.names import DynamicsName
from worldmodel.dynamics.states import Dynamics, Encodes, LinearModel, Prediction, encode_episodes
from worldmodel.utils.files import write_json, write_whole
from worldmodel.utils.parts import Part, class_of, name_of
from worldmodel.utils.versions import versions

if TYPE_CHECKING:
    from worldmodel.data.episodes import Episodes

FORMAT = 1
"""Of the folder; a newer one is refused."""

FILES = ("config.json", "encoder.safetensors", "dynamics.safetensors")
"""What the folder holds."""

KNOWN = {
    "encoder": "worldmodel.encoders.encoder:Encoder",
    "linear": "worldmodel.dynamics.linear:LinearGaussianDynamics",
    "kalman": "worldmodel.dynamics.kalman:KalmanFilter",
    "neural": "worldmodel.dynamics.neural:NeuralDynamics",
}
"""Classes that a folder may name without being trusted."""


@dataclass(frozen=True)
class Eye:
    """Sees by any function of observations, as an oracle does by one of the true latents.

    Attributes:
        look: observations (B, ...) to embeddings (B, m).
    """

    look: Callable[[np.ndarray], np.ndarray]

    def encode(self, frames: np.ndarray) -> np.ndarray:
        """Return what the function does."""
        return self.look(frames)


@dataclass(frozen=True, eq=False)
class WorldModel:
    """Sees, estimates, predicts. An oracle is one, too: it observes the true latents instead of frames.

    Attributes:
        encoder: sees: an `Encoder`, a network of your own, or the `Eye` of an oracle.
        dynamics: keep the state, and know what actions do to it.
        observes: frames; or the true latents, which makes it an oracle.
        excitation: how well the data determined linear dynamics; None where a direction was not excited.
        about: what else is to be kept of it, as JSON values: its environment, its control step, ...

    >>> import numpy as np
    >>> from worldmodel.dynamics.linear import LinearGaussianDynamics
    >>> still = LinearGaussianDynamics(np.eye(2), np.zeros((2, 1)), np.zeros(2), 0.01 * np.eye(2), 1, 2, 1)
    >>> oracle = WorldModel(Eye(lambda z: z), still, observes="latents")
    >>> state = oracle.start(oracle.see(np.array([[0.5, -0.5]])))
    >>> oracle.predict(state, np.zeros((1, 1))).mean.tolist(), oracle.predict(state, np.zeros((1, 1))).spread.tolist()
    ([[0.5, -0.5]], [[0.1, 0.1]])
    """

    encoder: Encodes
    dynamics: Dynamics
    observes: Literal["frames", "latents"] = "frames"
    excitation: Excitation | None = None
    about: Mapping[str, Any] = field(default_factory=dict)

    @property
    def dim(self) -> int:
        """Dimensions m of the embedding."""
        return self.dynamics.dim

    @property
    def linear(self) -> LinearModel | None:
        """Its linear model, which LQR and QP plan by: the dynamics themselves, or what they correct; None without."""
        return self.dynamics.linear

    def see(self, observations: np.ndarray) -> np.ndarray:
        """Embed frames (B, H, W, C) uint8, or an oracle's latents (B, n): (B, m)."""
        return self.encoder.encode(observations)

    def start(self, h: np.ndarray) -> np.ndarray:
        """Return the states (B, S) of a rest at embeddings h (B, m)."""
        return self.dynamics.start(h)

    def estimate(self, s: np.ndarray, a: np.ndarray, h: np.ndarray) -> np.ndarray:
        """Return the states (B, S) once actions a (B, a) were executed and embeddings h (B, m) were seen."""
        return self.dynamics.step(s, a, h)

    def predict(self, s: np.ndarray, a: np.ndarray) -> Prediction:
        """Return what is expected after states (B, S) and actions (B, a).

        The spread (B, m) is one standard deviation of what will be seen next, by the noise that was fitted, or by how
        far the networks of an ensemble differ; None from dynamics that cannot tell.
        """
        state = self.dynamics.transition(s, a)
        return Prediction(state, state[..., : self.dim], self.dynamics.spread(s, a))

    def save_pretrained(self, folder: Path | str) -> Path:
        """Write encoder and dynamics into one folder: ``config.json`` and two safetensors files, data and no code.

        Raises:
            ValueError: an oracle sees the truth, which is not kept; or a class of yours lacks what keeping it takes.
        """
        folder = Path(folder)
        if self.observes != "frames":
            raise ValueError("an oracle sees the true latents by a function of its environment: it cannot be saved")
        parts: dict[str, Any] = {"encoder": self.encoder, "dynamics": self.dynamics}
        for part in parts.values():
            missing = [needed for needed in ("options", "arrays", "rebuilt") if not hasattr(part, needed)]
            if missing:
                raise ValueError(f"{type(part).__name__} cannot be saved: it has no {', '.join(missing)}")
        config: dict[str, Any] = {"format": FORMAT, "kind": "world_model"}
        for name, part in parts.items():
            _save_arrays(folder / f"{name}.safetensors", part.arrays())
            config[name] = {"class": name_of(part, KNOWN), "options": part.options()}
        config["excitation"] = None if self.excitation is None else vars(self.excitation)
        config |= {"about": dict(self.about), "versions": versions()}
        write_json(folder / "config.json", config)
        return folder

    @classmethod
    def from_pretrained(
        cls, folder: Path | str, *, classes: Collection[type] = (), trust: bool = False
    ) -> "WorldModel":
        """Read what :meth:`save_pretrained` wrote, onto the CPU; no simulator is needed.

        Args:
            folder: on disk, or the name of a repository of the Hugging Face hub.
            classes: your own, where it holds some.
            trust: import classes of others by name, which runs the code of their modules.

        Raises:
            ValueError: there is none, it is damaged, or of a newer format.
        """
        path = Path(folder)
        if not path.exists() and len(path.parts) == 2 and not path.is_absolute():
            from huggingface_hub import snapshot_download  # only who loads from the hub needs it

            path = Path(snapshot_download(str(folder)))
        missing = [name for name in FILES if not (path / name).is_file()]
        if missing:
            raise ValueError(f"{folder} is no world model: it has no {missing[0]}")
        try:
            config = json.loads((path / "config.json").read_text())
            if config.get("kind") != "world_model":
                raise ValueError("its config.json is that of something else")
            if config["format"] > FORMAT:
                raise ValueError(f"its format is {config['format']}, this version reads {FORMAT}: update worldmodel")
            parts = [_part(path, config, name, classes, trust) for name in ("encoder", "dynamics")]
            excitation = None if config["excitation"] is None else Excitation(**config["excitation"])
            return cls(parts[0], parts[1], "frames", excitation, config["about"])
        except (ValueError, KeyError, TypeError, AttributeError, RuntimeError, SafetensorError) as error:
            raise ValueError(f"{folder} holds no world model of use: {' '.join(str(error).split())}") from error


def _save_arrays(file: Path, arrays: Mapping[str, np.ndarray]) -> None:
    whole = {name: np.ascontiguousarray(value) for name, value in arrays.items()}
    write_whole(file, lambda temporary: save_file(whole, temporary))


def _part(path: Path, config: Mapping[str, Any], name: str, classes: Collection[type], trust: bool) -> Any:
    kind: type[Part] = class_of(config[name]["class"], KNOWN, classes, trust)
    return kind.rebuilt(config[name]["options"], load_file(path / f"{name}.safetensors"))


def fit_world_model(
    encoder: Encodes,
    episodes: "Episodes",
    dynamics: DynamicsName | FitDynamics = "kalman",
    *,
    about: Mapping[str, Any] | None = None,
) -> WorldModel:
    """Fit what actions do to the embeddings of driven episodes: on ``episodes.train``, chosen on ``.selection``.

    Args:
        encoder: frames to embeddings.
        episodes: driven ones, with actions.
        dynamics: ``"kalman"``, ``"linear"``, ``"neural"``, or a function that fits your own to trajectories.
        about: what to keep beside it; by default environment and control step of the data.

    Raises:
        ValueError: the episodes were posed, or allow no such dynamics.
    """
    train, selection = (encode_episodes(encoder, part) for part in (episodes.train, episodes.selection))
    fitted, excitation = fit_named(dynamics, train, selection)
    card = episodes.card
    known = {"env": card.env, "dt": card.dt, "actions": int(train.actions.shape[1])}
    return WorldModel(encoder, fitted, "frames", excitation, known if about is None else about)
