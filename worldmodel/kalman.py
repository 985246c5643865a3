"""Kalman filter: position and velocity of the embedding, with their covariance, from noisy embeddings."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.linalg

from worldmodel.pairs import window_indices
from worldmodel.states import Array, Trajectories, align_actions, check_matrices, check_trajectories, like


@dataclass(frozen=True, eq=False)
class KalmanFilter:
    """The model x' = A x + B a + c + w, h = C x + v, with w ~ N(0, W), v ~ N(0, V) and C = [I 0].

    Its state x is the embedding freed of noise, and its velocity per control step. A planner takes the filter as a
    linear model; :meth:`start` and :meth:`step` give the state, as those of a :class:`~worldmodel.states.StateLayout`.

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
    def latents(self) -> int:
        """Dimensions m of the embedding."""
        return len(self.V)

    @cached_property
    def C(self) -> np.ndarray:
        """The readout h = C x (m, 2 m)."""
        return np.eye(self.latents, len(self.A))

    @cached_property
    def steady(self) -> tuple[np.ndarray, np.ndarray]:
        """Gain K (2 m, m) and covariance (2 m, 2 m) of the estimate after many updates.

        Raises:
            ValueError: the error of the estimate would not settle.
        """
        try:
            predicted = scipy.linalg.solve_discrete_are(self.A.T, self.C.T, self.W, self.V)
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
        K = scipy.linalg.solve(self.C @ predicted @ self.C.T + self.V, self.C @ predicted, assume_a="pos").T
        rest = np.eye(len(self.A)) - K @ self.C
        return K, rest @ predicted @ rest.T + K @ self.V @ K.T  # Joseph's form stays positive

    def transition(self, s: Array, a: Array) -> Array:
        """Return the expected next states (..., 2 m) of states (..., 2 m) and actions (..., a), NumPy or torch."""
        A, B, bias = (like(s, matrix) for matrix in (self.A, self.B, self.bias))
        return s @ A.T + a @ B.T + bias

    def rest(self, h: np.ndarray) -> np.ndarray:
        """Return the states (..., 2 m) of a rest at embeddings h (..., m)."""
        return np.concatenate([h, np.zeros((*h.shape[:-1], len(self.A) - h.shape[-1]))], axis=-1)

    start = rest

    def step(self, s: np.ndarray, a: np.ndarray, h: np.ndarray) -> np.ndarray:
        """Return the estimates (B, 2 m) once actions a (B, a) were executed and embeddings h (B, m) were seen."""
        predicted = self.transition(s, a)
        return predicted + (h - predicted[..., : self.latents]) @ self.steady[0].T

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
        means: list[np.ndarray] = []
        covariances: list[np.ndarray] = []
        for t in range(h.shape[1]):
            if t:
                predicted, P = (
                    self.transition(means[-1], actions[:, t - 1]),
                    self.A @ covariances[-1] @ self.A.T + self.W,
                )
            K, updated = self._gain(P)
            means.append(predicted + (h[:, t] - predicted[:, : self.latents]) @ K.T)
            covariances.append(updated)
        return np.stack(means, axis=1), np.stack(covariances)


def fit_kalman(
    h: np.ndarray, actions: np.ndarray, offsets: np.ndarray, *, lags: int = 6, iterations: int = 60
) -> KalmanFilter:
    """Fit the filter in two stages.

    First A, B and c, by two least squares (Jansson 2003, SSARX): a long autoregression predicts one and two steps
    ahead; these predictions are position and velocity, and their own evolution under actions and surprises is the
    model. Then W and V, by expectation-maximisation (Shumway & Stoffer 1982) with A, B and c held.

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
    scale = surprise.T @ surprise / len(surprise) + 1e-12 * np.eye(m)
    kalman = KalmanFilter(A, B, bias, np.kron(np.eye(2), scale / 2), scale / 2)
    mean, covariance = estimates.mean(axis=0), np.cov(estimates.T) + 1e-12 * np.eye(2 * m)
    episodes = list(_by_length(data))
    for _ in range(iterations):
        kalman = _maximised(kalman, episodes, mean, covariance)
    return kalman


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


def _by_length(data: Trajectories) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield embeddings (B, T + 1, m) and actions (B, T, a) of the episodes of each length."""
    lengths, first_action = np.diff(data.offsets), data.offsets[:-1] - np.arange(len(data.offsets) - 1)
    for length in np.unique(lengths):
        chosen = lengths == length
        frames = data.offsets[:-1][chosen, None] + np.arange(length)
        yield data.h[frames], data.actions[first_action[chosen, None] + np.arange(length - 1)]


def _maximised(
    kalman: KalmanFilter, episodes: list[tuple[np.ndarray, np.ndarray]], mean: np.ndarray, covariance: np.ndarray
) -> KalmanFilter:
    """Return the filter with the W and V that its own smoothed estimates ask for."""
    A, C = kalman.A, kalman.C
    W, V, steps, frames = np.zeros_like(kalman.W), np.zeros_like(kalman.V), 0, 0
    for h, actions in episodes:
        m, P = kalman.filter(h, actions, mean, covariance)
        x, S = m[:, -1], P[-1]  # smoothed, from the last frame backwards (Rauch, Tung & Striebel 1965)
        for t in range(h.shape[1] - 1, -1, -1):
            noise = h[:, t] - x @ C.T
            V += noise.T @ noise + len(h) * C @ S @ C.T
            if t:
                predicted, ahead = kalman.transition(m[:, t - 1], actions[:, t - 1]), A @ P[t - 1] @ A.T + kalman.W
                J = scipy.linalg.solve(ahead, A @ P[t - 1], assume_a="pos").T
                before, S_before = m[:, t - 1] + (x - predicted) @ J.T, P[t - 1] + J @ (S - ahead) @ J.T
                unexplained, cross = x - kalman.transition(before, actions[:, t - 1]), S @ J.T
                W += unexplained.T @ unexplained
                W += len(h) * (S - cross @ A.T - A @ cross.T + A @ S_before @ A.T)
                x, S = before, S_before
        steps, frames = steps + len(h) * (h.shape[1] - 1), frames + len(h) * h.shape[1]
    floor = 1e-14 * float(np.trace(V)) / frames  # noise-free data would leave nothing to divide by
    W, V = W / steps + floor * np.eye(len(W)), V / frames + floor * np.eye(len(V))
    return KalmanFilter(A, kalman.B, kalman.bias, (W + W.T) / 2, (V + V.T) / 2)
