"""How well dynamics predict without feedback, against holding still."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from worldmodel.dynamics.states import Dynamics, Estimator, Padded, check_trajectories


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
    settle: int = 4,
) -> OpenLoop:
    """Predict embeddings of held-out episodes several steps ahead, from the actions alone.

    Args:
        dynamics: of any kind.
        h: embeddings (F, m).
        actions: (F - E, a).
        offsets: (E + 1,); episodes start at rest.
        steps: how far ahead.
        settle: embeddings of an episode that the estimate of the state sees before its first prediction.

    Raises:
        ValueError: the data do not fit together, or no episode is long enough.
    """
    episodes = Padded.of(check_trajectories(h, actions, offsets))
    windows = episodes.seen[:, settle - 1 + max(steps) :]
    if not windows.any():
        raise ValueError(f"no episode has the {settle + max(steps)} frames that {max(steps)} steps need")
    count = windows.shape[1]
    s = _running(dynamics, episodes)[:, settle - 1 : settle - 1 + count]
    last = episodes.h[:, settle - 1 : settle - 1 + count]
    error, still, r2 = [], [], []
    for ahead in range(1, max(steps) + 1):
        first = settle - 2 + ahead
        s = dynamics.transition(s, episodes.actions[:, first : first + count])
        if ahead in steps:
            target = episodes.h[:, first + 1 : first + 1 + count][windows]
            squared = ((s[..., : h.shape[1]][windows] - target) ** 2).sum(axis=1).mean()
            error.append(np.sqrt(squared))
            still.append(np.sqrt(((last[windows] - target) ** 2).sum(axis=1).mean()))
            r2.append(1 - squared / target.var(axis=0).sum())
    return OpenLoop(tuple(sorted(steps)), np.array(error), np.array(still), np.array(r2), int(windows.sum()))


def _running(estimator: Estimator, episodes: Padded) -> np.ndarray:
    """Return the running estimates (E, T + 1, S)."""
    estimates = [estimator.start(episodes.h[:, 0])]
    for t in range(episodes.actions.shape[1]):
        estimates.append(estimator.step(estimates[-1], episodes.actions[:, t], episodes.h[:, t + 1]))
    return np.stack(estimates, axis=1)
