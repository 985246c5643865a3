"""Kalman filter: position and velocity of the embedding, with their covariance, from noisy embeddings."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np
import scipy.linalg

from worldmodel.data.pairs import window_indices
from worldmodel.dynamics.states import (
    Array,
    Padded,
    Trajectories,
    align_actions,
    check_matrices,
    check_trajectories,
    like,
)


@dataclass(frozen=True, eq=False)
class KalmanFilter:
    """The model x' = A x + B a + c + w, h = C x + v, with w ~ N(0, W), v ~ N(0, V) and C = [I 0].

    Its state x is the embedding freed of noise, and its velocity per control step. A planner takes the filter as a
    linear model; :meth:`start` and :meth:`step` give the state, as those of a
    :class:`~worldmodel.dynamics.states.StateLayout`.

    Attributes:
        A: (2 m, 2 m).
        B: (2 m, a).
        bias: c (2 m,).
        W: covariance of what the model does not explain (2 m, 2 m).
        V: covariance of the noise of embeddings (m, m).
    """

    A: np.ndarray
    B: np.ndarray
    bias: np.ndarray
    W: np.ndarray
    V: np.ndarray

    def __post_init__(self) -> None:
        size, m = len(self.A), len(self.V)
        shapes = {"A": (size, size), "B": (size, self.B.shape[-1]), "bias": (size,), "W": (size, size), "V": (m, m)}
        check_matrices(self, shapes)

    @property
    def dim(self) -> int:
        """Dimensions m of the embedding."""
        return len(self.V)

    @cached_property
    def C(self) -> np.ndarray:
        """The readout h = C x (m, 2 m)."""
        return np.eye(self.dim, len(self.A))

    @cached_property
    def steady(self) -> tuple[np.ndarray, np.ndarray]:
        """Gain K (2 m, m) and covariance (2 m, 2 m) of the estimate after many updates.

        Raises:
            ValueError: the error of the estimate would not settle.
        """
        try:
            scale = float(np.trace(self.V)) or 1.0  # the gain does not depend on it, the solver's accuracy does
            predicted = scale * scipy.linalg.solve_discrete_are(self.A.T, self.C.T, self.W / scale, self.V / scale)
        except (np.linalg.LinAlgError, ValueError) as error:
            raise ValueError(
                f"the filter has no steady state ({error}): embeddings do not determine the state"
            ) from None
        K, covariance = self._gain(predicted)
        radius = np.abs(np.linalg.eigvals(self.A - self.A @ K @ self.C)).max()
        if not radius < 1:
            raise ValueError(f"the filter has no steady state: its error grows by {radius:.4f} per step")
        return K, covariance

    def _gain(self, predicted: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the gain and the covariance after an update, by the covariance before it."""
        K = np.linalg.solve(self.C @ predicted @ self.C.T + self.V, self.C @ predicted).T
        rest = np.eye(len(self.A)) - K @ self.C
        return K, rest @ predicted @ rest.T + K @ self.V @ K.T  # Joseph's form stays positive

    def transition(self, s: Array, a: Array) -> Array:
        """Return the expected next states (..., 2 m) of states (..., 2 m) and actions (..., a), NumPy or torch."""
        A, B, bias = (like(s, matrix) for matrix in (self.A, self.B, self.bias))
        return s @ A.T + a @ B.T + bias

    @property
    def linear(self) -> Self:
        """Itself."""
        return self

    def spread(self, s: np.ndarray, a: np.ndarray) -> np.ndarray:
        """Return one standard deviation of the next embedding (..., m), noise included, once the filter has settled."""
        ahead = self.A @ self.steady[1] @ self.A.T + self.W
        return np.broadcast_to(np.sqrt(np.diag(ahead)[: self.dim] + np.diag(self.V)), (*s.shape[:-1], self.dim))

    def options(self) -> dict[str, Any]:
        """Return nothing: the arrays say all."""
        return {}

    def arrays(self) -> dict[str, np.ndarray]:
        """Return the matrices by name."""
        return {name: getattr(self, name) for name in ("A", "B", "bias", "W", "V")}

    @classmethod
    def rebuilt(cls, options: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> Self:
        """Make the filter of these matrices."""
        return cls(**arrays)

    @cached_property
    def _settled(self) -> tuple[np.ndarray, np.ndarray]:
        """M (2 m, m) and n (2 m,): the estimate settles at M h + n when h is seen again and again without action."""
        K, eye = self.steady[0], np.eye(len(self.A))
        unseen = eye - K @ self.C
        still = eye - unseen @ self.A
        return np.linalg.solve(still, K), np.linalg.solve(still, unseen @ self.bias)

    def start(self, h: np.ndarray) -> np.ndarray:
        """Return the estimates (..., 2 m) that a long rest at embeddings h (..., m) settles at.

        They are near (h, 0), and not quite, since a fitted model drifts a little at every pose.
        """
        M, n = self._settled
        return h @ M.T + n

    def rest(self, position: np.ndarray) -> np.ndarray:
        """Return the settled estimates (..., 2 m) at positions (..., m)."""
        M, n = self._settled
        m = self.dim
        return self.start(np.linalg.solve(M[:m], (position - n[:m])[..., None])[..., 0])

    def step(self, s: np.ndarray, a: np.ndarray, h: np.ndarray) -> np.ndarray:
        """Return the estimates (B, 2 m) once actions a (B, a) were executed and embeddings h (B, m) were seen."""
        predicted = self.transition(s, a)
        return predicted + (h - predicted[..., : self.dim]) @ self.steady[0].T

    def transformed(self, Q: np.ndarray) -> Self:
        """Return the same filter in other coordinates, h = Q z with Q (m, m) invertible."""
        T = np.kron(np.eye(2), Q)
        return type(self)(T @ self.A @ np.linalg.inv(T), T @ self.B, T @ self.bias, T @ self.W @ T.T, Q @ self.V @ Q.T)

    def filter(
        self, h: np.ndarray, actions: np.ndarray, mean: np.ndarray, covariance: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Estimate the states of whole episodes of equal length.

        Args:
            h: embeddings (B, T + 1, m).
            actions: (B, T, a).
            mean: what is known before the first embedding (2 m,) or (B, 2 m).
            covariance: of that (2 m, 2 m).

        Returns:
            Estimates (B, T + 1, 2 m) and their covariances (T + 1, 2 m, 2 m), which are those of every episode.
        """
        predicted, P = np.broadcast_to(mean, (len(h), len(self.A))), covariance
        pushed = actions @ self.B.T + self.bias
        means: list[np.ndarray] = []
        covariances: list[np.ndarray] = []
        for t in range(h.shape[1]):
            if t:
                predicted = means[-1] @ self.A.T + pushed[:, t - 1]
                P = self.A @ covariances[-1] @ self.A.T + self.W
            K, updated = self._gain(P)
            means.append(predicted + (h[:, t] - predicted[:, : self.dim]) @ K.T)
            covariances.append(updated)
        return np.stack(means, axis=1), np.stack(covariances)


def fit_kalman(
    h: np.ndarray, actions: np.ndarray, offsets: np.ndarray, *, lags: int = 6, iterations: int = 200
) -> KalmanFilter:
    """Fit the filter by maximum likelihood, so that noise in the embeddings does not bias the model.

    A long autoregression predicts one and two steps ahead; these predictions are position and velocity, and their own
    evolution under actions and surprises is a first model (Jansson 2003, SSARX). From there, expectation-maximisation
    (Shumway & Stoffer 1982) of A, B, c, W and V. The velocity of the result is the displacement that the model expects
    of a step without action.

    Args:
        h: embeddings (F, m).
        actions: (F - E, a).
        offsets: (E + 1,).
        lags: embeddings and actions that the autoregression looks back on.
        iterations: of expectation-maximisation.

    Raises:
        ValueError: the data do not fit together, or are too short for the autoregression.
    """
    data = check_trajectories(h, actions, offsets)
    A, B, bias, estimates, surprise = _state_space(data, lags)
    m = data.h.shape[1]
    floor = 1e-9 * np.trace(np.cov(data.h.T).reshape(m, m))  # noise-free data would leave nothing to divide by
    scale = surprise.T @ surprise / len(surprise) + floor * np.eye(m)
    kalman = KalmanFilter(A, B, bias, np.kron(np.eye(2), scale / 2), scale / 2)
    mean, covariance = estimates.mean(axis=0), np.cov(estimates.T) + floor * np.eye(2 * m)
    episodes = Padded.of(data)
    for _ in range(iterations):
        kalman, mean, covariance = _maximised(kalman, episodes, mean, covariance, floor)
    return _canonical(kalman)


def _state_space(data: Trajectories, lags: int) -> tuple[np.ndarray, ...]:
    """Return A, B, c, and on the way the predicted states and the surprises (W, m)."""
    by_frame, m = align_actions(data.actions, data.offsets), data.h.shape[1]
    frames = window_indices(data.offsets, lags + 2) + lags  # t, with `lags` frames before it and one after it
    if len(frames) <= (m + by_frame.shape[1]) * lags + 1:
        raise ValueError(f"{len(frames)} windows of {lags + 2} frames are too few to fit {lags} lags: collect more")

    def past(t: np.ndarray) -> np.ndarray:
        return np.hstack(
            [f[t - lag] for lag in range(1, lags + 1) for f in (data.h, by_frame)] + [np.ones((len(t), 1))]
        )

    one = np.linalg.lstsq(past(frames), data.h[frames], rcond=1e-9)[0]
    two = np.linalg.lstsq(np.hstack([past(frames), by_frame[frames]]), data.h[frames + 1], rcond=1e-9)[0]

    def state(t: np.ndarray) -> np.ndarray:  # before h_t is seen, and as if nothing were done at t
        position = past(t) @ one
        return np.hstack([position, past(t) @ two[: -by_frame.shape[1]] - position])

    now, later = state(frames), state(frames + 1)
    surprise = data.h[frames] - now[:, :m]
    known = np.hstack([now, by_frame[frames], surprise, np.ones((len(frames), 1))])
    found = np.linalg.lstsq(known, later, rcond=1e-9)[0].T
    size, a = 2 * m, by_frame.shape[1]
    return found[:, :size], found[:, size : size + a], found[:, -1], now, surprise


def _maximised(
    kalman: KalmanFilter, episodes: Padded, mean: np.ndarray, covariance: np.ndarray, floor: float
) -> tuple[KalmanFilter, np.ndarray, np.ndarray]:
    """Return the filter that its own smoothed estimates ask for, and mean and covariance of the first states."""
    h, actions, seen, acted = episodes
    x, spread = _smoothed(kalman, episodes, mean, covariance)
    size, m = len(kalman.A), kalman.dim
    known = np.hstack([x[:, :-1][acted], actions[acted], np.ones((int(acted.sum()), 1))])
    now, both = known.T @ known, x[:, 1:][acted].T @ known
    now[:size, :size] += spread.before
    both[:, :size] += spread.cross
    M = scipy.linalg.solve(now, both.T, assume_a="pos").T
    later = x[:, 1:][acted].T @ x[:, 1:][acted] + spread.after
    noise = h[seen] - x[seen][:, :m]
    V = (noise.T @ noise + (spread.first + spread.after)[:m, :m]) / len(noise)
    W, least = (later - M @ both.T) / len(known), floor * np.eye(size)
    fitted = KalmanFilter(M[:, :size], M[:, size:-1], M[:, -1], (W + W.T) / 2 + least, V + least[:m, :m])
    away = x[:, 0] - x[:, 0].mean(axis=0)
    return fitted, x[:, 0].mean(axis=0), (away.T @ away + spread.first) / len(x) + least


class _Spread(NamedTuple):
    """Covariances of smoothed estimates, summed over episodes and steps, (S, S) each.

    Attributes:
        first: of the first states.
        before: of the states that a step starts from.
        after: of the states that it leads to.
        cross: of the latter with the former.
    """

    first: np.ndarray
    before: np.ndarray
    after: np.ndarray
    cross: np.ndarray


def _smoothed(
    kalman: KalmanFilter, episodes: Padded, mean: np.ndarray, covariance: np.ndarray
) -> tuple[np.ndarray, _Spread]:
    """Estimate states by all frames of their episode (Rauch, Tung & Striebel 1965).

    The covariance of an estimate depends on the step and on the end of its episode, linearly on that of the step after
    it, so that sums over episodes are all that is carried backwards.

    Returns:
        Estimates (E, T + 1, S) and their covariances.
    """
    h, actions, seen, acted = episodes
    x, P = kalman.filter(h, actions, mean, covariance)
    ahead = kalman.A @ P[:-1] @ kalman.A.T + kalman.W
    gains = np.linalg.solve(ahead, kalman.A @ P[:-1]).swapaxes(1, 2)
    pushed = actions @ kalman.B.T + kalman.bias
    running = seen.sum(axis=0)
    total = running[-1] * P[-1]  # of the covariances of the step, over the episodes that are not over
    before, after, cross = np.zeros((3, *P.shape[1:]))
    for t in range(len(P) - 2, -1, -1):
        J, goes_on = gains[t], acted[:, t, None]
        surprise = x[:, t + 1] - (x[:, t] @ kalman.A.T + pushed[:, t])
        x[:, t] += np.where(goes_on, surprise @ J.T, 0.0)
        going_on = running[t + 1] * P[t] + J @ (total - running[t + 1] * ahead[t]) @ J.T
        before, after, cross = before + going_on, after + total, cross + total @ J.T
        total = going_on + (running[t] - running[t + 1]) * P[t]
    return x, _Spread(total, before, after, cross)


def _canonical(kalman: KalmanFilter) -> KalmanFilter:
    """Return the same filter with a velocity that is the displacement expected of a step without action."""
    m, eye = kalman.dim, np.eye(kalman.dim)
    T = np.block([[eye, np.zeros((m, m))], [kalman.A[:m, :m] - eye, kalman.A[:m, m:]]])
    if np.linalg.cond(T) > 1e8:  # its velocity never shows in the position
        return kalman
    t = np.concatenate([np.zeros(m), kalman.bias[:m]])
    A = T @ kalman.A @ np.linalg.inv(T)
    return KalmanFilter(A, T @ kalman.B, T @ kalman.bias + t - A @ t, T @ kalman.W @ T.T, kalman.V)
