"""Dynamics for worlds that are not near-linear: an ensemble of small networks that corrects the linear model."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor, nn

from worldmodel.dynamics.linear import LinearGaussianDynamics, fit_linear_dynamics
from worldmodel.dynamics.states import Array, StateLayout, align_actions, check_trajectories
from worldmodel.utils.devices import resolve_device
from worldmodel.utils.progress import progress_bar


@dataclass(frozen=True)
class NeuralOptions:
    """How an ensemble is trained.

    Attributes:
        members: networks; each sees the windows in an order of its own.
        hidden: width of the two hidden layers.
        steps: optimiser steps.
        batch_size: windows per step and member.
        horizon: control steps that are predicted from a window's first state, without feedback.
        lr: peak of the one-cycle learning rate (AdamW).
        weight_decay: of all weights.
    """

    members: int = 3
    hidden: int = 128
    steps: int = 1500
    batch_size: int = 256
    horizon: int = 5
    lr: float = 3e-3
    weight_decay: float = 1e-3

    def __post_init__(self) -> None:
        for name in ("members", "hidden", "steps", "batch_size", "horizon"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} is {getattr(self, name)}; it must be at least 1")


class NeuralDynamics(nn.Module):
    """The model h' = linear(s, a) + σ · MLP(s, a), averaged over the ensemble; it starts as the linear model.

    Args:
        linear: the model that is corrected; its layout is that of the state.
        members: networks.
        hidden: width of the two hidden layers.
    """

    centre: Tensor
    scale: Tensor
    sigma: Tensor

    def __init__(self, linear: LinearGaussianDynamics, members: int = 3, hidden: int = 128) -> None:
        super().__init__()
        self.linear, self.members, self.hidden = linear, members, hidden
        inputs = linear.layout.size + linear.actions
        sizes = [inputs, hidden, hidden, linear.dim]
        for layer, (fan_in, fan_out) in enumerate(pairwise(sizes)):
            last = layer == len(sizes) - 2  # nothing is added to the linear model before training
            weight = torch.zeros(members, fan_in, fan_out) if last else torch.randn(members, fan_in, fan_out)
            self.register_parameter(f"weight{layer}", nn.Parameter(weight / fan_in**0.5))
            self.register_parameter(f"bias{layer}", nn.Parameter(torch.zeros(members, 1, fan_out)))
        self.register_buffer("centre", torch.zeros(inputs))
        self.register_buffer("scale", torch.ones(inputs))
        self.register_buffer("sigma", torch.ones(linear.dim))

    @property
    def dim(self) -> int:
        """Dimensions m of the embedding."""
        return self.linear.dim

    @property
    def layout(self) -> StateLayout:
        """How the state is built."""
        return self.linear.layout

    def forward(self, s: Tensor, a: Tensor) -> Tensor:
        """Return each member's next states (M, B, S) of its states (M, B, S) and actions (M, B, a), in float32."""
        x = (torch.cat([s, a], dim=-1) - self.centre) / self.scale
        for layer in range(3):
            x = torch.baddbmm(getattr(self, f"bias{layer}"), x, getattr(self, f"weight{layer}"))
            x = nn.functional.silu(x) if layer < 2 else x
        h = self.linear.transition(s, a)[..., : self.linear.dim] + self.sigma * x
        return self.layout.step(s, a, h)

    def members_of(self, s: Tensor, a: Tensor) -> Tensor:
        """Return the next states (M, ..., S) that each member expects after states (..., S) and actions (..., a)."""
        flat = [x.to(self.sigma).reshape(1, -1, x.shape[-1]).expand(self.members, -1, -1) for x in (s, a)]
        return self(*flat).reshape(self.members, *s.shape)

    def transition(self, s: Array, a: Array) -> Array:
        """Return the expected next states (..., S) of states (..., S) and actions (..., a), NumPy or torch."""
        if not isinstance(s, np.ndarray):
            return self.members_of(s, a).mean(dim=0).to(s)  # type: ignore[return-value]
        with torch.no_grad():
            ahead = self.members_of(torch.tensor(s), torch.tensor(a)).mean(dim=0)  # a candidate may be read-only
        return ahead.double().cpu().numpy()  # type: ignore[return-value]

    def start(self, h: np.ndarray) -> np.ndarray:
        """Return the states (B, S) of a rest at embeddings h (B, m)."""
        return self.layout.start(h)

    def step(self, s: np.ndarray, a: np.ndarray, h: np.ndarray) -> np.ndarray:
        """Return the states (B, S) once actions a (B, a) were executed and embeddings h (B, m) were seen."""
        return self.layout.step(s, a, h)

    def spread(self, s: np.ndarray, a: np.ndarray) -> np.ndarray | None:
        """Return the standard deviation of the next embedding (..., m) over the ensemble; None for one network alone.

        It is large where the data say little.
        """
        if self.members == 1:
            return None
        with torch.no_grad():
            ahead = self.members_of(torch.as_tensor(s), torch.as_tensor(a))[..., : self.dim]
        return ahead.std(dim=0, correction=0).double().cpu().numpy()

    def disagreement(self, s: np.ndarray, a: np.ndarray) -> np.ndarray:
        """Return how far the members differ (...,): large where the data say little."""
        spread = self.spread(s, a)
        return np.zeros(s.shape[:-1]) if spread is None else np.linalg.norm(spread, axis=-1)

    def options(self) -> dict[str, Any]:
        """Return the sizes of the networks, and of the linear model."""
        return {"members": self.members, "hidden": self.hidden, "linear": self.linear.options()}

    def arrays(self) -> dict[str, np.ndarray]:
        """Return weights, statistics, and the matrices of the linear model."""
        weights = {name: value.detach().cpu().numpy() for name, value in self.state_dict().items()}
        return weights | {f"linear.{name}": value for name, value in self.linear.arrays().items()}

    @classmethod
    def rebuilt(cls, options: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> Self:
        """Make the ensemble of these weights, on the CPU."""
        matrices = {name.removeprefix("linear."): value for name, value in arrays.items() if name.startswith("linear.")}
        linear = LinearGaussianDynamics.rebuilt(options["linear"], matrices)
        dynamics = cls(linear, options["members"], options["hidden"])
        weights = {name: torch.tensor(value) for name, value in arrays.items() if not name.startswith("linear.")}
        dynamics.load_state_dict(weights)
        return dynamics.eval()


def fit_neural_dynamics(
    h: np.ndarray,
    actions: np.ndarray,
    offsets: np.ndarray,
    *,
    linear: LinearGaussianDynamics | None = None,
    history: int = 2,
    options: NeuralOptions = NeuralOptions(),
    device: str = "cpu",
    seed: int = 0,
    progress: bool = False,
) -> NeuralDynamics:
    """Train an ensemble to predict several steps ahead.

    Args:
        h: embeddings (F, m).
        actions: (F - E, a).
        offsets: (E + 1,); no window crosses an episode.
        linear: the model to correct; None fits one with ``history`` embeddings.
        history: embeddings in the state, where no linear model is given.
        options: how to train.
        device: auto, cpu or cuda.
        seed: decides initial weights and the order of the windows.
        progress: draw a progress bar.

    Returns:
        The dynamics on the CPU.

    Raises:
        ValueError: the data do not fit together, or no episode is as long as a window.
        FloatingPointError: the loss is not finite.
    """
    data, where = check_trajectories(h, actions, offsets), resolve_device(device)
    linear = linear or fit_linear_dynamics(*data, history=history)
    by_frame, layout = align_actions(data.actions, data.offsets), linear.layout
    frames = layout.windows(data.offsets, options.horizon)
    ahead = frames[:, None] + np.arange(options.horizon)
    s, a, targets = layout.at(data.h, by_frame, frames), by_frame[ahead], data.h[ahead + 1]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        dynamics = NeuralDynamics(linear, options.members, options.hidden)
    inputs = np.hstack([s, a[:, 0]])
    missed = targets[:, 0] - linear.transition(s, a[:, 0])[:, : linear.dim]
    for name, value in (("centre", inputs.mean(0)), ("scale", inputs.std(0)), ("sigma", missed.std(0))):
        getattr(dynamics, name).copy_(torch.as_tensor(value) + (0.0 if name == "centre" else 1e-8))
    windows = [torch.as_tensor(x, dtype=torch.float32, device=where) for x in (s, a, targets)]
    with one_thread():
        _train(dynamics.to(where), windows, options, seed, progress)
    return dynamics.cpu().eval()


@contextmanager
def one_thread() -> Iterator[None]:
    """Compute on one CPU thread: for networks this small, threads that wait for each other cost more than they give."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _train(dynamics: NeuralDynamics, windows: list[Tensor], options: NeuralOptions, seed: int, progress: bool) -> None:
    """Fit to windows: first states (W, S), actions (W, horizon, a) and the embeddings after them (W, horizon, m)."""
    s, a, targets = windows
    adam = torch.optim.AdamW(dynamics.parameters(), lr=options.lr, weight_decay=options.weight_decay)
    schedule = torch.optim.lr_scheduler.OneCycleLR(adam, options.lr, total_steps=options.steps, pct_start=0.1)
    generator, variance = torch.Generator().manual_seed(seed), targets.var(dim=(0, 1)).clamp_min(1e-12)
    loss: Any = None
    with progress_bar("dynamics", options.steps, progress) as advance:
        for _ in range(options.steps):
            chosen = torch.randint(len(s), (options.members, options.batch_size), generator=generator).to(s.device)
            state, loss = s[chosen], 0.0
            for step in range(options.horizon):
                state = dynamics(state, a[chosen, step])
                missed = state[..., : targets.shape[-1]] - targets[chosen, step]
                loss = loss + (missed**2 / variance).mean() / options.horizon
            adam.zero_grad(set_to_none=True)
            (loss * options.members).backward()  # every member has the gradient of its own mean
            nn.utils.clip_grad_norm_(dynamics.parameters(), 1.0)
            adam.step()
            schedule.step()
            advance(1, f"loss {loss.item():.2e}" if progress else "")
    if not torch.isfinite(loss):
        raise FloatingPointError("the loss of the dynamics is not finite: check the scale of embeddings and actions")
