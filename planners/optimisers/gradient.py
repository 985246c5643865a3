"""Gradient descent through the model: Adam, projected onto the unit box."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from worldmodel.planners.problem import Problem, Solution, best_of


@dataclass(frozen=True)
class Gradient:
    """Projected Adam on the action sequence, with a learning rate that falls to zero (half a cosine).

    Attributes:
        iterations: gradient steps.
        lr: learning rate at the start, in half ranges of the action per step.
    """

    iterations: int = 100
    lr: float = 0.1

    def __post_init__(self) -> None:
        if self.iterations < 1 or not self.lr > 0:
            raise ValueError(f"iterations {self.iterations}, lr {self.lr}: need >= 1 and > 0")

    def solve(self, problem: Problem, start: Solution, rngs: Sequence[np.random.Generator]) -> Solution:
        """Return plans inside the unit box; where the gradient leads nowhere better, the start."""
        u = torch.tensor(start.u, requires_grad=True)
        adam = torch.optim.Adam([u], lr=self.lr)
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(adam, self.iterations)
        for _ in range(self.iterations):
            (u.grad,) = torch.autograd.grad(problem.torch_cost(u).sum(), u)
            u.grad.nan_to_num_(0.0, 0.0, 0.0)  # an environment that diverges stays where it is
            adam.step()
            schedule.step()
            with torch.no_grad():
                u.clamp_(-1.0, 1.0)
        return Solution.of(best_of(problem, np.stack([start.u, u.detach().numpy()], axis=1)))
