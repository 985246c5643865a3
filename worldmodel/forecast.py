"""How well dynamics predict without feedback, against holding still."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from worldmodel.states import Dynamics, align_actions, check_trajectories


@dataclass(frozen=True)
class OpenLoop:
    """Errors of predictions without feedback, over every window of held-out episodes.

    Attributes:
        steps: how many steps ahead (K,).
        error: root mean square of ‖ĥ - h‖ (K,).
        holding_still: the same for ĥ = the last embedding seen (K,).
        r2: share of the variance of h that is predicted (K,).
        windows: predictions behind each number.
    """

    steps: tuple[int, ...]
    error: np.ndarray
    holding_still: np.ndarray
    r2: np.ndarray
    windows: int


def open_loop(
    dynamics: Dynamics,
    h: np.ndarray,
    actions: np.ndarray,
    offsets: np.ndarray,
    *,
    steps: Sequence[int] = (1, 5, 10, 20),
) -> OpenLoop:
    """Predict embeddings of held-out episodes several steps ahead, from the actions alone.

    Raises:
        ValueError: the data do not fit together, or no episode is long enough.
    """
    data = check_trajectories(h, actions, offsets)
    by_frame = align_actions(data.actions, data.offsets)
    frames = dynamics.layout.windows(data.offsets, max(steps))
    s, m = dynamics.layout.at(data.h, by_frame, frames), dynamics.layout.latents
    error, still, r2 = [], [], []
    for ahead in range(1, max(steps) + 1):
        s = dynamics.transition(s, by_frame[frames + ahead - 1])
        if ahead in steps:
            target = data.h[frames + ahead]
            squared = ((s[:, :m] - target) ** 2).sum(axis=1).mean()
            error.append(np.sqrt(squared))
            still.append(np.sqrt(((data.h[frames] - target) ** 2).sum(axis=1).mean()))
            r2.append(1 - squared / target.var(axis=0).sum())
    return OpenLoop(tuple(sorted(steps)), np.array(error), np.array(still), np.array(r2), len(frames))
