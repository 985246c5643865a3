"""Fit an encoder to episodes: pairs of frames in, one batch of statistics for both views, any objective."""

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from worldmodel.data.episodes import Episodes
from worldmodel.data.pairs import mixed_pairs, pair_indices
from worldmodel.data.streaming import StreamedEpisodes
from worldmodel.encoders.batches import HeldPairs, PairSource, checksum
from worldmodel.encoders.checkpoints import load_checkpoint, save_checkpoint
from worldmodel.encoders.encoder import Encoder
from worldmodel.encoders.history import TrainingHistory, spread_of, warn_of_collapse, warn_of_local_optimum
from worldmodel.encoders.objectives import LeJEPA, Objective
from worldmodel.encoders.ranks import Ranks
from worldmodel.encoders.streamed_pairs import StreamedPairs
from worldmodel.encoders.whole_batch import whole_batch_statistics
from worldmodel.utils.devices import has_fast_bfloat16, one_core_spared, resolve_device
from worldmodel.utils.progress import progress_bar

_REPORTS = 200  # points of the training curve


@dataclass(frozen=True)
class TrainingOptions:
    """How an encoder is trained.

    Attributes:
        steps: optimiser steps.
        batch_size: pairs per step.
        lr: peak of the one-cycle learning rate (AdamW).
        weight_decay: of the weights of convolutions and linear layers; norms and biases have none.
        gradient_norm: largest norm of the gradient.
        lag: control steps between the two frames of a pair.
        coarse_lag: the same in the first part of training: pairs far apart settle the whole, near ones then smooth it.
        coarse_share: share of the steps that this part has; 0 leaves it out.
        mixed_lags: lags whose pairs are mixed with those of ``lag``, each pair as likely as any other.
        rho: correlation of the latents across one control step, which the reports compare with; None takes the data
            card's mean, and data without true latents is trained on without.
        channels: channels of the encoder's stem and convolutions.
        checkpoint_seconds: time between checkpoints, when an output folder is given.
        compile: let torch compile the network first. It takes a minute or two and, on a CPU, a C++ compiler, and gains
            little there; it is meant for long runs on a GPU.
    """

    steps: int = 800
    batch_size: int = 128
    lr: float = 3e-3
    weight_decay: float = 1e-2
    gradient_norm: float = 1.0
    lag: int = 1
    coarse_lag: int = 3
    coarse_share: float = 0.0
    mixed_lags: tuple[int, ...] = ()
    rho: float | None = None
    channels: tuple[int, ...] = (32, 32, 64, 64, 128)
    checkpoint_seconds: float = 30.0
    compile: bool = False

    def __post_init__(self) -> None:
        for name in ("steps", "batch_size", "lag", "coarse_lag", "mixed_lags"):
            if np.min(getattr(self, name), initial=1) < 1:
                raise ValueError(f"{name} is {getattr(self, name)}; it must be at least 1")
        if not 0 <= self.coarse_share <= 1:
            raise ValueError(f"coarse_share is {self.coarse_share}; it is a share of the steps, from 0 to 1")

    @property
    def phases(self) -> tuple[tuple[tuple[int, ...], int], ...]:
        """Lags that are mixed, each time with the step that they end at."""
        coarse = round(self.steps * self.coarse_share)
        phases = (((self.coarse_lag,), coarse), ((self.lag, *self.mixed_lags), self.steps))
        return tuple((lags, end) for lags, end in phases if end)


class TrainingError(RuntimeError):
    """Training met a value that is not finite."""


def fit_encoder(
    episodes: Episodes | StreamedEpisodes,
    dim: int,
    objective: Objective = LeJEPA(),  # noqa: B008 (frozen)
    options: TrainingOptions = TrainingOptions(),
    *,
    device: str = "auto",
    weights: np.ndarray | None = None,
    start: Encoder | None = None,
    seed: int = 0,
    out: Path | None = None,
    progress: bool = True,
) -> Encoder:
    """Train an encoder on the pairs of ``episodes.train``.

    Args:
        episodes: data, in memory or streamed; the training episodes are fitted, ``selection`` judges whether training
            ended in a local optimum.
        dim: dimensions m of the embedding.
        objective: scores the embeddings (2, B, m) of a batch of pairs.
        options: how to train.
        device: auto, cpu or cuda.
        weights: how often the pairs that begin at each frame of ``episodes.train`` (F,) are drawn, relative to each
            other; None draws every pair once per epoch.
        start: an encoder that training goes on from, by an optimiser and a schedule of its own; it stays as it is.
        seed: decides initial weights, order of pairs and random slices.
        out: folder for checkpoints and the history; training resumes from what lies there.
        progress: draw a progress bar.

    Returns:
        The encoder on the CPU in evaluation mode, its ``history`` attached.

    Raises:
        TrainingError: a loss that is not finite; the last checkpoint is kept.

    Warns:
        CollapseWarning: the embedding loses its spread or a dimension.
        LocalOptimumWarning: pairs of held-apart episodes stay far above the optimum of alignment.
    """
    ranks = Ranks.here()
    where = ranks.device(resolve_device(device))
    source = _pairs_of(episodes, seed, where, weights, ranks)
    for lag in (lag for lags, _ in options.phases for lag in lags):
        if not len(pair_indices(source.offsets, lag)):
            raise ValueError(f"no pairs {lag} control steps apart: every training episode is shorter than that")
    rho = episodes.card.mean_rho if options.rho is None else options.rho
    what = _describe(objective, options, dim, seed, source, start)
    encoder = _new_encoder(source.some_frames, dim, options, seed) if start is None else _goes_on_from(start, dim)
    run = TrainingRun(encoder, objective, options, rho, seed, where, what, ranks)
    if out is not None:
        run.resume(out)
    out = out if ranks.first else None  # one process writes
    with one_core_spared(), whole_batch_statistics(run.encoder, ranks):
        with compiled(run.encoder, options.compile):
            run.train(source, out, progress and ranks.first)
        run.refresh_statistics(source)
    encoder = run.encoder.cpu().eval()
    encoder.history = run.history
    if ranks.first:
        apart = spread_of(_views_of_pairs(encoder, episodes.selection, options.lag, seed))
        if not warn_of_collapse(apart, dim):
            warn_of_local_optimum(apart, rho**options.lag)
    if out is not None:
        run.history.save(out / "history.json")
    return encoder


def _pairs_of(
    episodes: Episodes | StreamedEpisodes, seed: int, device: torch.device, weights: np.ndarray | None, ranks: Ranks
) -> PairSource:
    if isinstance(episodes, Episodes):
        return HeldPairs(episodes.train, seed, device, weights, ranks)
    if weights is not None:
        raise ValueError("pairs are drawn by weights from frames in memory only: load the episodes")
    return StreamedPairs(episodes, seed, device, ranks)


def _new_encoder(some_frames: np.ndarray, dim: int, options: TrainingOptions, seed: int) -> Encoder:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        encoder = Encoder(dim=dim, frame_size=some_frames.shape[1:3], channels=options.channels)
    encoder.fit_normalisation(some_frames)
    return encoder


def _goes_on_from(start: Encoder, dim: int) -> Encoder:
    if start.dim != dim:
        raise ValueError(f"the encoder to start from has {start.dim} dimensions, not {dim}")
    return start.thawed()


@contextmanager
def compiled(module: nn.Module, wanted: bool = True) -> Iterator[None]:
    """Let torch compile a module, in place, when it is first called within; names of weights stay as they are."""
    if wanted:
        module.compile()
    try:
        yield
    finally:
        module._compiled_call_impl = None


class TrainingRun:
    """One training run: everything that a checkpoint holds, and the step that changes it."""

    def __init__(
        self,
        encoder: Encoder,
        objective: Objective,
        options: TrainingOptions,
        rho: float,
        seed: int,
        device: torch.device,
        what: str,
        ranks: Ranks = Ranks(),  # noqa: B008 (frozen)
    ) -> None:
        self.encoder = encoder.to(device)
        self.encoder.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        self.objective, self.options, self.seed, self.device = objective, options, seed, device
        self.what, self.ranks = what, ranks
        self.rho, self.history = rho, TrainingHistory()
        self.step = 0
        self.optimiser = torch.optim.AdamW(_parameter_groups(encoder, options.weight_decay), lr=options.lr, fused=True)
        self.schedule = torch.optim.lr_scheduler.OneCycleLR(
            self.optimiser, options.lr, total_steps=options.steps, pct_start=0.2
        )
        self.generator = torch.Generator(device)
        self.autocast = torch.autocast(device.type, torch.bfloat16, enabled=has_fast_bfloat16(device))

    def train(self, source: PairSource, out: Path | None, progress: bool) -> None:
        """Do the steps that are left."""
        options, every = self.options, max(1, self.options.steps // _REPORTS)
        saved, warned = time.monotonic(), False
        self.encoder.train()
        with progress_bar("training", options.steps, progress, done=self.step) as advance:
            for lags, end in options.phases:
                first, second = mixed_pairs(source.offsets, lags)
                rho = float(np.mean(self.rho ** (second - first)))
                size = min(options.batch_size, len(first))
                for frames in source.batches(lags, size, self.step, end):
                    views, loss, regulariser, norm = self.update(frames, size)
                    self.step += 1
                    if self.step % every == 0 or self.step == options.steps:
                        if not torch.isfinite(loss + norm):  # else the weights of this step are finite, too
                            raise TrainingError(_not_finite(self.step, out))
                        self.history.record(self.step, loss, regulariser, views, rho)
                        late = self.step > options.steps // 2  # before, one coordinate often runs ahead of the others
                        if late and not warned and self.ranks.first:
                            warned = warn_of_collapse(spread_of(views), views.shape[-1])
                        if out is not None and time.monotonic() - saved > options.checkpoint_seconds:
                            self.save(out)
                            saved = time.monotonic()
                    advance(1, _note(self.history))
        if out is not None:
            self.save(out)

    def update(self, frames: Tensor, size: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Take one step on a batch of ``size`` pairs.

        Args:
            frames: this process's share of them (2 B, H, W, 3): B first frames, then the second ones.
            size: pairs of all processes.

        Returns:
            The views of all (2, size, m), the loss, the regulariser and the gradient's norm.
        """
        self.generator.manual_seed(self.seed * 1_000_003 + self.step)  # the slices depend on the step alone: resumable
        with self.autocast:
            h = self.encoder(frames)  # both views in one batch: one set of batch statistics
        views = self.ranks.whole(h.reshape(2, len(h) // 2, -1), size)
        value = self.objective(views, self.generator)
        self.optimiser.zero_grad(set_to_none=True)
        value.loss.backward()
        self.ranks.sum_gradients(self.encoder)
        norm = nn.utils.clip_grad_norm_(self.encoder.parameters(), self.options.gradient_norm)
        self.optimiser.step()
        self.schedule.step()
        return views.detach(), value.loss.detach(), value.regulariser.detach(), norm

    @torch.no_grad()
    def refresh_statistics(self, source: PairSource) -> None:
        """Average BatchNorm's statistics over many batches of the final weights, in float32."""
        norms = [module for module in self.encoder.modules() if isinstance(module, nn.BatchNorm1d | nn.BatchNorm2d)]
        for norm in norms:
            norm.reset_running_stats()
            norm.momentum = None  # cumulative average
        self.encoder.train()
        for frames in source.first_frames(self.options.lag):
            self.encoder(frames)
        for norm in norms:
            norm.momentum = 0.1

    def _state(self) -> dict[str, Any]:
        return {
            "encoder": self.encoder.state_dict(),
            "optimiser": self.optimiser.state_dict(),
            "schedule": self.schedule.state_dict(),
            "history": asdict(self.history),
            "step": self.step,
            "what": self.what,
        }

    def save(self, out: Path) -> None:
        """Write a checkpoint, whole or not at all."""
        save_checkpoint(out / "checkpoint.pt", self._state())

    def resume(self, out: Path) -> None:
        """Go on from the checkpoint in ``out``, if there is one of the same run."""
        if (out / "checkpoint.pt").exists():
            state = load_checkpoint(out / "checkpoint.pt", self.device)
            if state.get("what") != self.what:
                raise ValueError(f"{out} holds another run ({state.get('what')}): choose another folder")
            self.encoder.load_state_dict(state["encoder"])
            self.optimiser.load_state_dict(state["optimiser"])
            self.schedule.load_state_dict(state["schedule"])
            self.history = TrainingHistory(**state["history"])
            self.step = state["step"]
        if not self.ranks.agree(self.step, self.device):
            raise ValueError(
                f"the processes found different checkpoints: {out} has to lie on a disk that all of them see"
            )


def _describe(
    objective: Objective, options: TrainingOptions, dim: int, seed: int, source: PairSource, start: Encoder | None
) -> str:
    """Say in one line what decides a run, data included; a run resumes only what has the same description."""
    name = re.sub(r" at 0x[0-9a-f]+", "", repr(objective))
    begun = "" if start is None else f" start={_digest(start)}"
    return f"{name} {options!r} dim={dim} seed={seed} {source.identity}{begun}"


def _digest(encoder: Encoder) -> str:
    """Hash all weights and statistics."""
    return checksum(np.concatenate([part.cpu().double().numpy().ravel() for part in encoder.state_dict().values()]))


def _parameter_groups(encoder: nn.Module, weight_decay: float) -> list[dict[str, Any]]:
    parameters = list(encoder.parameters())
    return [
        {"params": [p for p in parameters if p.ndim > 1], "weight_decay": weight_decay},
        {"params": [p for p in parameters if p.ndim <= 1], "weight_decay": 0.0},
    ]


def _views_of_pairs(encoder: Encoder, episodes: Episodes, lag: int, seed: int, most: int = 2_000) -> Tensor:
    starts = pair_indices(episodes.offsets, lag)
    starts = np.random.default_rng([seed, 2]).permutation(starts)[:most]
    views = [encoder.encode(episodes.frames[index]) for index in (starts, starts + lag)]
    return torch.from_numpy(np.stack(views))


def _note(history: TrainingHistory) -> str:
    if not history.step:
        return ""
    alignment, optimum = history.alignment[-1], history.optimum[-1]
    aim = "" if np.isnan(optimum) else f" of {optimum:.3f}"
    return f"loss {history.loss[-1]:.3f} alignment {alignment:.3f}{aim} std {history.std[-1]:.2f}"


def _not_finite(step: int, out: Path | None) -> str:
    kept = f"; the last good checkpoint is {out / 'checkpoint.pt'}" if out is not None else ""
    return f"the loss is not finite at step {step}: lower the learning rate, or look for damaged frames{kept}"
