"""The world model: what it was fitted to comes back from one folder, whatever kind of dynamics, your own as well."""

import json
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from dots import SIZE, driven_dots

import worldmodel as wm
from worldmodel.data.episodes import Episodes
from worldmodel.dynamics.kalman import fit_kalman
from worldmodel.dynamics.neural import NeuralDynamics, NeuralOptions, fit_neural_dynamics
from worldmodel.dynamics.states import Trajectories
from worldmodel.dynamics.world_model import Eye, fit_world_model


@pytest.fixture(scope="module")
def episodes() -> Episodes:
    return driven_dots(episodes=40, length=20)


@pytest.fixture(scope="module")
def encoder(episodes: Episodes) -> wm.Encoder:
    return wm.Encoder(dim=2, frame_size=(SIZE, SIZE), channels=(8, 8, 8, 8, 8), hidden=16).freeze()


@dataclass(frozen=True)
class Still:
    """Somebody's own dynamics: nothing ever moves."""

    size: int

    @property
    def dim(self) -> int:
        return self.size

    @property
    def linear(self) -> None:
        return None

    def start(self, h: np.ndarray) -> np.ndarray:
        return h

    def step(self, s: np.ndarray, a: np.ndarray, h: np.ndarray) -> np.ndarray:
        return h

    def transition(self, s: Any, a: Any) -> Any:
        return s

    def spread(self, s: np.ndarray, a: np.ndarray) -> None:
        return None

    def options(self) -> dict[str, Any]:
        return {"size": self.size}

    def arrays(self) -> dict[str, np.ndarray]:
        return {}

    @classmethod
    def rebuilt(cls, options: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> "Still":
        return cls(**options)


def still(train: Trajectories, selection: Trajectories) -> Still:
    return Still(train.h.shape[1])


def few_networks(train: Trajectories, selection: Trajectories) -> NeuralDynamics:
    return fit_neural_dynamics(*train, options=NeuralOptions(members=2, hidden=8, steps=3))


KINDS = pytest.mark.parametrize("kind", ["linear", "kalman", few_networks])


@KINDS
def test_what_was_saved_sees_estimates_and_predicts_the_same(
    kind: Any, encoder: wm.Encoder, episodes: Episodes, tmp_path: Path
) -> None:
    model = fit_world_model(encoder, episodes, kind)
    loaded = wm.WorldModel.from_pretrained(model.save_pretrained(tmp_path / "world_model"))
    assert sorted(file.name for file in (tmp_path / "world_model").iterdir()) == [
        "config.json",
        "dynamics.safetensors",
        "encoder.safetensors",
    ]
    frames, a = episodes.frames[:5], np.full((5, 2), 0.3)
    h = model.see(frames)
    assert np.array_equal(loaded.see(frames), h)
    s = model.estimate(model.start(h), a, h)
    assert np.array_equal(loaded.estimate(loaded.start(h), a, h), s)
    for one, other in zip(loaded.predict(s, a), model.predict(s, a), strict=True):
        assert np.array_equal(one, other)
    assert (loaded.excitation, loaded.about, loaded.observes) == (model.excitation, model.about, "frames")


@KINDS
def test_it_tells_how_sure_it_is(kind: Any, encoder: wm.Encoder, episodes: Episodes) -> None:
    model = fit_world_model(encoder, episodes, kind)
    s = model.start(model.see(episodes.frames[:3]))
    state, mean, spread = model.predict(s, np.zeros((3, 2)))
    assert state.shape == s.shape and mean.shape == (3, model.dim) == np.shape(spread)
    assert np.array_equal(mean, state[:, : model.dim]) and (spread >= 0).all()


def test_the_spread_of_a_fitted_filter_is_that_of_what_is_seen_next() -> None:
    rng = np.random.default_rng(0)
    z = np.zeros((200, 40, 1))
    actions = rng.standard_normal((200, 39, 1))
    for t in range(39):
        z[:, t + 1] = 0.8 * z[:, t] + 0.5 * actions[:, t] + 0.1 * rng.standard_normal((200, 1))
    seen = z + 0.2 * rng.standard_normal(z.shape)
    data = Trajectories(seen.reshape(-1, 1), actions.reshape(-1, 1), np.arange(0, 8001, 40))
    kalman = fit_kalman(*data)
    s, surprises = kalman.start(seen[:, 0]), []
    for t in range(39):
        ahead = kalman.transition(s, actions[:, t])[:, :1]
        surprises.append(seen[:, t + 1] - ahead)
        s = kalman.step(s, actions[:, t], seen[:, t + 1])
    assert np.std(surprises[10:]) == pytest.approx(kalman.spread(s, actions[:, 0])[0, 0], rel=0.03)


def test_dynamics_of_your_own_are_fitted_saved_and_loaded(
    encoder: wm.Encoder, episodes: Episodes, tmp_path: Path
) -> None:
    model = fit_world_model(encoder, episodes, still)
    assert model.linear is None and model.predict(np.ones((1, 2)), np.zeros((1, 2))).spread is None
    model.save_pretrained(tmp_path)
    loaded = wm.WorldModel.from_pretrained(tmp_path, classes=[Still])
    assert loaded.dynamics == Still(2)
    with pytest.raises(ValueError, match=r"holds a .*:Still: hand that class in, or trust the folder"):
        wm.WorldModel.from_pretrained(tmp_path)


def test_a_class_is_imported_only_where_the_folder_is_trusted(
    encoder: wm.Encoder, episodes: Episodes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = fit_world_model(encoder, episodes, still).save_pretrained(tmp_path / "model")
    (tmp_path / "elsewhere.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\nfrom {__name__} import Still\n")
    config = json.loads((folder / "config.json").read_text())
    config["dynamics"]["class"] = "elsewhere:Still"
    (folder / "config.json").write_text(json.dumps(config))
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setitem(sys.modules, __name__, sys.modules.get(__name__) or _this_module())
    with pytest.raises(ValueError, match="trust the folder"):
        wm.WorldModel.from_pretrained(folder)
    assert not (tmp_path / "ran").exists()
    assert wm.WorldModel.from_pretrained(folder, trust=True).dynamics.dim == 2
    assert (tmp_path / "ran").exists()


def _this_module() -> Any:
    from types import SimpleNamespace

    return SimpleNamespace(Still=Still)


def test_an_oracle_is_not_saved(encoder: wm.Encoder, episodes: Episodes, tmp_path: Path) -> None:
    oracle = wm.WorldModel(Eye(lambda z: z), Still(2), "latents")
    with pytest.raises(ValueError, match="an oracle sees the true latents"):
        oracle.save_pretrained(tmp_path / "oracle")
    assert not (tmp_path / "oracle").exists()


def test_what_cannot_be_kept_is_named_before_anything_is_written(episodes: Episodes, tmp_path: Path) -> None:
    model = wm.WorldModel(Eye(lambda frames: frames[:, 0, 0, :2].astype(float)), Still(2))
    with pytest.raises(ValueError, match="Eye cannot be saved: it has no options, arrays, rebuilt"):
        model.save_pretrained(tmp_path / "model")
    assert not (tmp_path / "model").exists()


def damaged(folder: Path, kind: str) -> None:
    config = json.loads((folder / "config.json").read_text())
    match kind:
        case "no config":
            (folder / "config.json").unlink()
        case "no dynamics":
            (folder / "dynamics.safetensors").unlink()
        case "cut short":
            (folder / "encoder.safetensors").write_bytes((folder / "encoder.safetensors").read_bytes()[:100])
        case "other weights":
            config["encoder"]["options"]["hidden"] = 8
        case "newer":
            config["format"] = 99
        case "something else":
            config = {"dim": 2}
        case "no json":
            (folder / "config.json").write_text("{")
    if kind in ("other weights", "newer", "something else"):
        (folder / "config.json").write_text(json.dumps(config))


@pytest.mark.parametrize(
    ("kind", "line"),
    [
        ("no config", "it has no config.json"),
        ("no dynamics", "it has no dynamics.safetensors"),
        ("cut short", "holds no world model of use"),
        ("other weights", "holds no world model of use"),
        ("newer", "its format is 99, this version reads 1: update worldmodel"),
        ("something else", "that of something else"),
        ("no json", "holds no world model of use"),
    ],
)
def test_a_folder_that_is_damaged_or_foreign_is_one_line(
    kind: str, line: str, encoder: wm.Encoder, episodes: Episodes, tmp_path: Path
) -> None:
    folder = fit_world_model(encoder, episodes, "linear").save_pretrained(tmp_path / "model")
    damaged(folder, kind)
    with pytest.raises(ValueError, match=line) as raised:
        wm.WorldModel.from_pretrained(folder)
    assert "\n" not in str(raised.value)


def test_it_loads_where_no_simulator_is_installed(encoder: wm.Encoder, episodes: Episodes, tmp_path: Path) -> None:
    folder = fit_world_model(encoder, episodes, "kalman").save_pretrained(tmp_path)
    block = "import sys; sys.modules.update(dict.fromkeys(['mujoco', 'dm_control', 'shimmy', 'gymnasium']));"
    code = block + f"import worldmodel as wm; print(wm.WorldModel.from_pretrained({str(folder)!r}).dim)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("2\n", "")
