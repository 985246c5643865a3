"""The straight line: the plan of least effort between two embeddings."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class StraightLine:
    """Goes from start to goal in ``steps`` equal steps.

    Of all paths with K steps and these ends, the uniform straight line is the one of least effort Σ‖Δh‖², which is
    ‖goal - start‖² / K (Jensen). Effort is invariant under rotations, so where h = Q z with Q orthogonal, the line in h
    is the image of the line in z (Klindt, LeCun, Balestriero, arXiv 2605.26379).

    Attributes:
        steps: K, at least 1.

    >>> StraightLine(steps=2).plan(np.array([[0.0, 0.0]]), np.array([[1.0, 2.0]])).tolist()
    [[[0.0, 0.0], [0.5, 1.0], [1.0, 2.0]]]
    """

    steps: int = 20

    def __post_init__(self) -> None:
        if self.steps < 1:
            raise ValueError(f"a plan has at least 1 step, not {self.steps}")

    def plan(self, start: np.ndarray, goal: np.ndarray) -> np.ndarray:
        """Plan from start (B, m) to goal (B, m): (B, K + 1, m), both ends included.

        Raises:
            ValueError: starts and goals of other shapes.
        """
        if start.ndim != 2 or start.shape != goal.shape:
            raise ValueError(f"starts {start.shape} and goals {goal.shape} must both have the shape (B, m)")
        share = np.linspace(0.0, 1.0, self.steps + 1)[:, None]
        return (1 - share) * start[:, None] + share * goal[:, None]
