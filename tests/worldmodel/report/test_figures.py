import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure

from worldmodel.encoders.history import TrainingHistory
from worldmodel.report import figures

RNG = np.random.default_rng(0)
FRAMES = RNG.integers(0, 255, (13, 16, 16, 3), np.uint8)
Z = RNG.standard_normal((300, 3))
HISTORY = TrainingHistory(*([[1, 2, 3]] + [[0.9, 0.5, 0.3]] * 7))

DRAWN: dict[str, Callable[[], Figure]] = {
    "frames": lambda: figures.frame_sheet(FRAMES, "13 frames"),
    "training": lambda: figures.training_curve(HISTORY),
    "scatter": lambda: figures.identifiability_scatter(Z, Z, Z, Z, ["a", "b", "c"]),
    "strip": lambda: figures.film_strip(FRAMES, FRAMES, "a plan"),
    "paths": lambda: figures.plan_paths(Z.reshape(10, 30, 3), Z.reshape(10, 30, 3), ["a", "b", "c"]),
    "path of one latent": lambda: figures.plan_paths(Z.reshape(10, 90, 1), Z.reshape(10, 90, 1), ["a"]),
    "ratios": lambda: figures.ratio_histogram(1 + 0.1 * Z[:, 0], 1.0, 0.99, 1.01, "effort"),
    "ratio of one task": lambda: figures.ratio_histogram(np.ones(1), 1.0, -np.inf, np.inf, "effort"),
}


@pytest.mark.parametrize("name", DRAWN)
@pytest.mark.filterwarnings("error")
def test_a_figure_is_a_png_written_whole(name: str, tmp_path: Path) -> None:
    path = figures.save_figure(DRAWN[name](), tmp_path / "figure.png")
    assert path.read_bytes().startswith(b"\x89PNG") and list(tmp_path.iterdir()) == [path]


def test_what_figures_say_is_what_was_measured() -> None:
    h = Z + RNG.standard_normal(Z.shape)
    (axis, *_) = figures.identifiability_scatter(h, Z, h, Z, ["shoulder", "b", "c"]).axes
    assert axis.get_title().startswith("shoulder: R² 0.")
    (axis,) = DRAWN["ratios"]().axes
    assert any("mean 1.000 [0.990, 1.010]" in text.get_text() for text in axis.get_legend().get_texts())


def test_drawing_needs_no_display_and_leaves_pyplot_alone() -> None:
    code = (
        "import sys, numpy as np; from worldmodel.report import figures\n"
        "figures.frame_sheet(np.zeros((3, 8, 8, 3), np.uint8), 'frames'); assert 'matplotlib.pyplot' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_latents_are_coloured_by_angle_and_radius() -> None:
    colours = figures.latent_colours(np.array([[1.0, 0.0], [2.0, 0.0], [-1.0, 0.1]]))
    assert colours.shape == (3, 3) and (colours >= 0).all() and (colours <= 1).all()
    assert colours[1].sum() > colours[0].sum() and not np.allclose(colours[0], colours[2], atol=0.2)
