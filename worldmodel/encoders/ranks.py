"""Several processes that train as one: each takes its rows of every batch, and all do the step of the whole batch.

`torchrun` and `accelerate launch` start the processes and number them (their ranks); `torch.distributed` joins them.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn


@dataclass(frozen=True)
class Ranks:
    """Who trains together; alone, nothing is sent and nothing is copied.

    Attributes:
        rank: number of this process.
        count: processes in all.

    >>> Ranks(rank=1, count=3).share(rows=10)
    slice(3, 6, None)
    """

    rank: int = 0
    count: int = 1

    @classmethod
    def here(cls) -> "Ranks":
        """Return those of the initialised process group, or of a process alone."""
        if dist.is_available() and dist.is_initialized():
            return cls(dist.get_rank(), dist.get_world_size())
        return cls()

    @property
    def first(self) -> bool:
        """Whether this process speaks and writes for all."""
        return self.rank == 0

    @property
    def neighbours(self) -> int:
        """Processes on this machine, this one among them."""
        return int(os.environ.get("LOCAL_WORLD_SIZE", self.count)) if self.count > 1 else 1

    def device(self, wanted: torch.device) -> torch.device:
        """Give each process of a machine a GPU of its own.

        Raises:
            ValueError: there are fewer GPUs than processes.
        """
        if self.count == 1 or wanted.type != "cuda" or wanted.index is not None:
            return wanted
        local = int(os.environ.get("LOCAL_RANK", self.rank))
        if local >= torch.cuda.device_count():
            raise ValueError(f"{torch.cuda.device_count()} GPU(s) for more processes: start one process per GPU")
        torch.cuda.set_device(local)
        return torch.device("cuda", local)

    def share(self, rows: int) -> slice:
        """Return which of so many rows are this process's.

        Raises:
            ValueError: there are fewer rows than processes.
        """
        if rows < self.count:
            raise ValueError(f"a batch of {rows} cannot be shared by {self.count} processes: each needs a row")
        return slice(self.rank * rows // self.count, (self.rank + 1) * rows // self.count)

    def whole(self, part: Tensor, rows: int) -> Tensor:
        """Put the shares (V, rows here, m) of all together: (V, rows, m), alike in every process.

        Each process computes the same loss of the whole, so the gradient of its own share is that loss's gradient.
        """
        return part if self.count == 1 else _Whole.apply(part, rows, self)

    def gathered(self, row: Tensor) -> Tensor:
        """Stack a row (n,) of every process: (count, n)."""
        rows = row.new_zeros(self.count, len(row))
        rows[self.rank] = row
        return self.summed(rows)

    def summed(self, values: Tensor) -> Tensor:
        """Sum over processes, in place."""
        if self.count > 1:
            dist.all_reduce(values)
        return values

    def sum_gradients(self, network: nn.Module) -> None:
        """Make every gradient that of the whole batch."""
        if self.count == 1:
            return
        gradients = [parameter.grad for parameter in network.parameters() if parameter.grad is not None]
        total = self.summed(torch.cat([gradient.flatten() for gradient in gradients]))
        for gradient, part in zip(gradients, total.split([gradient.numel() for gradient in gradients]), strict=True):
            gradient.copy_(part.view_as(gradient))

    def least(self, value: float, device: torch.device | str = "cpu") -> float:
        """Return the least value that any process has."""
        if self.count == 1:
            return value
        values = self.gathered(torch.tensor([value], dtype=torch.float64, device=device))
        return float(values.min())

    def agree(self, value: float, device: torch.device | str = "cpu") -> bool:
        """Whether all processes have the same value."""
        return self.least(value, device) == -self.least(-value, device)


@contextmanager
def joined() -> Iterator[Ranks]:
    """Join the processes that a launcher started with this one; alone, or joined already, do nothing."""
    several = int(os.environ.get("WORLD_SIZE", "1")) > 1
    if not several or dist.is_initialized():
        yield Ranks.here()
        return
    dist.init_process_group()  # gloo for tensors of CPUs, NCCL for those of GPUs
    try:
        yield Ranks.here()
    finally:
        dist.destroy_process_group()


class _Whole(torch.autograd.Function):
    """The share of each process in its rows of the whole; the gradient of a share is its rows of the gradient."""

    @staticmethod
    def forward(ctx: Any, part: Tensor, rows: int, ranks: Ranks) -> Tensor:
        ctx.mine = ranks.share(rows)
        whole = part.new_zeros(len(part), rows, part.shape[-1])
        whole[:, ctx.mine] = part
        return ranks.summed(whole)

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor, None, None]:
        return grad_output[:, ctx.mine], None, None
