"""Whether dynamics of the latents and of the embeddings are one model in two coordinates."""

from dataclasses import dataclass

import numpy as np

from worldmodel.dynamics.states import LinearModel


@dataclass(frozen=True)
class Similarity:
    """How far the dynamics of h are from those of z, seen through h = Q z (Frobenius norms).

    Attributes:
        A: ‖Q A Qᵀ - A_h‖.
        B: ‖Q B - B_h‖.
        relative: ‖[Q A Qᵀ - I, Q B] - [A_h - I, B_h]‖ over ‖[A_h - I, B_h]‖: what is not standing still.
    """

    A: float
    B: float
    relative: float


def similarity(true: LinearModel, learnt: LinearModel, Q: np.ndarray) -> Similarity:
    """Compare dynamics of the latents with dynamics of the embeddings.

    Args:
        true: dynamics of z.
        learnt: dynamics of h, with a state built in the same way.
        Q: the fitted map h = Q z (m, m); with an orthogonal Q its inverse is Qᵀ.

    Raises:
        ValueError: the states have different sizes.
    """
    if true.A.shape != learnt.A.shape or true.B.shape != learnt.B.shape:
        raise ValueError(f"states differ: A {true.A.shape} and {learnt.A.shape}, B {true.B.shape} and {learnt.B.shape}")
    moved = true.transformed(Q)
    away, push = moved.A - learnt.A, moved.B - learnt.B
    motion = np.hstack([learnt.A - np.eye(len(learnt.A)), learnt.B])
    relative = np.linalg.norm(np.hstack([away, push])) / np.linalg.norm(motion)
    return Similarity(float(np.linalg.norm(away)), float(np.linalg.norm(push)), float(relative))
