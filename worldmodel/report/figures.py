"""Figures that a person wants to look at; each function returns a matplotlib figure and touches no global state."""

import colorsys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter, ScalarFormatter

from worldmodel.encoders.history import TrainingHistory
from worldmodel.encoders.sigreg import GAUSSIAN_FLOOR
from worldmodel.stats.linear import fit_affine, r2_score
from worldmodel.utils.files import write_whole

EMBEDDING, ORACLE, FAINT = "#c44e52", "#4c72b0", "#999999"


def save_figure(figure: Figure, path: Path) -> Path:
    """Write a PNG, whole or not at all."""
    FigureCanvasAgg(figure)
    return write_whole(path, lambda temporary: figure.savefig(temporary, dpi=120))


def frame_sheet(frames: np.ndarray, title: str, columns: int = 10) -> Figure:
    """Lay frames (N, H, W, 3) out in rows."""
    rows = -(-len(frames) // columns)
    figure = Figure(figsize=(columns, rows + 0.4), layout="constrained")
    axes = np.atleast_1d(figure.subplots(rows, columns)).ravel()
    for axis in axes:
        axis.axis("off")
    for axis, frame in zip(axes, frames, strict=False):
        axis.imshow(frame)
    figure.suptitle(title, fontsize=10)
    return figure


def training_curve(history: TrainingHistory) -> Figure:
    """Alignment beside its optimum, SIGReg beside its Gaussian floor, spread of the embedding, over steps.

    The floor is that of independent Gaussian samples. BatchNorm fixes the mean and the variance of a batch, so training
    may end below it.
    """
    figure = Figure(figsize=(10, 3.2), layout="constrained")
    align, reg, spread = figure.subplots(1, 3)
    align.plot(history.step, history.alignment, color=EMBEDDING, label="E‖h' - h‖²")
    align.plot(history.step, history.optimum, color=ORACLE, ls="--", label="optimum 2(1-ρ) tr Cov(h)")
    align.set(yscale="log", ylabel="squared distance of a pair", title="Alignment")
    reg.plot(history.step, history.regulariser, color=EMBEDDING, label="regulariser")
    reg.axhline(GAUSSIAN_FLOOR, color=ORACLE, ls="--", label="independent Gaussian samples")
    reg.set(yscale="log", ylabel="N · Epps-Pulley", title="SIGReg")
    spread.plot(history.step, history.std, color=EMBEDDING, label="smallest std of h")
    spread.plot(history.step, history.effective_rank, color=FAINT, label="effective rank")
    spread.axhline(1.0, color=ORACLE, ls="--", label="std of a white embedding")
    spread.set(ylim=(0, None), ylabel="std, dimensions", title="Spread of the embedding")
    for axis in (align, reg):
        axis.yaxis.set_major_locator(LogLocator(subs=(1, 2, 3, 5)))
        axis.yaxis.set_major_formatter(ScalarFormatter())
        axis.yaxis.set_minor_formatter(NullFormatter())
    for axis in (align, reg, spread):
        axis.set_xlabel("step")
        axis.legend(frameon=False, fontsize=8)
        axis.spines[["top", "right"]].set_visible(False)
    return figure


def identifiability_scatter(
    h_fit: np.ndarray, z_fit: np.ndarray, h: np.ndarray, z: np.ndarray, names: Sequence[str], most: int = 2_000
) -> Figure:
    """True latents (N, n) against what the linear map of the embedding (N, m) reads, on held-out episodes.

    The map is fitted on training episodes (h_fit, z_fit); at most ``most`` points are drawn.
    """
    predicted = fit_affine(h_fit, z_fit)(h)
    scores = r2_score(z, predicted)
    columns = min(len(names), 5)
    rows = -(-len(names) // columns)
    figure = Figure(figsize=(2.9 * columns, 3.0 * rows), layout="constrained")
    axes = np.atleast_1d(figure.subplots(rows, columns)).ravel()
    chosen = np.linspace(0, len(z) - 1, min(most, len(z))).astype(int)
    for axis in axes[len(names) :]:
        axis.axis("off")
    for index, name in enumerate(names):
        axis = axes[index]
        axis.scatter(z[chosen, index], predicted[chosen, index], s=3, alpha=0.4, color=EMBEDDING, lw=0)
        ends = np.array([z[:, index].min(), z[:, index].max()])
        axis.plot(ends, ends, color=ORACLE, lw=1, ls="--")
        axis.set(
            xlabel="true latent z",
            ylabel="z read from h" if index % columns == 0 else "",
            title=f"{name}: R² {scores[index]:.4f}",
            aspect="equal",
        )
        axis.spines[["top", "right"]].set_visible(False)
    return figure


def film_strip(oracle: np.ndarray, embedding: np.ndarray, title: str, columns: int = 9) -> Figure:
    """Frames (K + 1, H, W, 3) of one task: the oracle's plan above the embedding's."""
    chosen = np.linspace(0, len(oracle) - 1, min(columns, len(oracle))).astype(int)
    figure = Figure(figsize=(len(chosen) * 1.1 + 0.8, 2.9), layout="constrained")
    axes = figure.subplots(2, len(chosen), squeeze=False)
    for row, (frames, label, colour) in enumerate(((oracle, "oracle", ORACLE), (embedding, "embedding", EMBEDDING))):
        for axis, step in zip(axes[row], chosen, strict=True):
            axis.imshow(frames[step])
            axis.set(xticks=[], yticks=[])
            for spine in axis.spines.values():
                spine.set(color=colour, lw=2)
            if row == 0:
                axis.set_title(f"step {step}", fontsize=8)
        axes[row, 0].set_ylabel(label, color=colour)
    figure.suptitle(title, fontsize=10)
    return figure


def plan_paths(oracle: np.ndarray, embedding: np.ndarray, names: Sequence[str], most: int = 12) -> Figure:
    """Paths (N, K + 1, n) of the first tasks in the plane of the first two latents (against the step when n = 1)."""
    figure = Figure(figsize=(5, 4.6), layout="constrained")
    axis = figure.subplots()
    for paths, colour, style, label in ((oracle, ORACLE, "--", "oracle"), (embedding, EMBEDDING, "-", "embedding")):
        for index, path in enumerate(paths[:most]):
            x, y = (path[:, 0], path[:, 1]) if path.shape[1] > 1 else (np.arange(len(path)), path[:, 0])
            axis.plot(x, y, color=colour, ls=style, lw=1.2, label=label if index == 0 else None)
            axis.plot(x[-1], y[-1], "o", color=colour, ms=3)
    many = oracle.shape[2] > 1
    axis.set(xlabel=f"{names[0]} (z)" if many else "step", ylabel=f"{names[1] if many else names[0]} (z)")
    axis.set_title("Straight lines as the true latents see them", fontsize=10)
    axis.legend(frameon=False)
    axis.spines[["top", "right"]].set_visible(False)
    return figure


def ratio_histogram(ratio: np.ndarray, mean: float, low: float, high: float, label: str) -> Figure:
    """Ratios to the oracle, one per task, with their mean and 95% interval (drawn where it is finite)."""
    figure = Figure(figsize=(5, 3), layout="constrained")
    axis = figure.subplots()
    counts, _, _ = axis.hist(ratio, bins=30, color=EMBEDDING, alpha=0.6, label=f"{len(ratio)} tasks")
    axis.axvline(1.0, color=ORACLE, ls="--", label="oracle")
    top = 1.08 * float(np.max(counts))
    if np.isfinite([low, high]).all():
        axis.plot([low, high], [top, top], color="black", lw=2, solid_capstyle="butt")
    axis.plot(mean, top, "o", color="black", ms=5, label=f"mean {mean:.3f} [{low:.3f}, {high:.3f}]")
    axis.set(xlabel=label, ylabel="tasks", ylim=(0, 1.16 * float(np.max(counts))))
    axis.legend(frameon=False, fontsize=8)
    axis.spines[["top", "right"]].set_visible(False)
    return figure


def latent_colours(z: np.ndarray) -> np.ndarray:
    """Return RGB colours (N, 3) of points (N, 2): the hue is the angle, the lightness grows with the radius."""
    hue = (np.arctan2(z[:, 1], z[:, 0]) + np.pi) / (2 * np.pi)
    lightness = 0.3 + 0.4 * np.clip(np.hypot(z[:, 0], z[:, 1]) / 3, 0, 1)
    return np.array([colorsys.hls_to_rgb(h, light, 0.85) for h, light in zip(hue, lightness, strict=True)])
