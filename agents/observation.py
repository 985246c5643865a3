"""Embeddings as observations: a frame becomes a few numbers, for one environment or one pass for many."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.utils import RecordConstructorArgs
from gymnasium.vector import AutoresetMode, VectorEnv, VectorWrapper
from gymnasium.vector.utils import batch_space
from stable_baselines3.common.vec_env import VecEnv, VecEnvWrapper
from stable_baselines3.common.vec_env.base_vec_env import VecEnvObs, VecEnvStepReturn

from worldmodel.encoders.encoder import Encoder, check_frames


class EmbeddingObservation(gym.Wrapper[np.ndarray, np.ndarray, Any, np.ndarray], RecordConstructorArgs):
    """Observes the embedding of the frame, float32.

    A dictionary that holds one frame and other boxes becomes one vector: the embedding, its last changes, the rest.

    >>> from worldmodel.envs import make
    >>> env = EmbeddingObservation(make("reacher-easy", pixels=True), Encoder(dim=2), history=2)
    >>> env.reset(seed=0)[0].shape, env.observation_space
    ((4,), Box(-inf, inf, (4,), float32))
    >>> env.close()

    Args:
        env: observes frames of the encoder's size, or a dictionary with them.
        encoder: an encoder on any device, or its folder.
        history: embeddings looked back on. One frame holds no velocity; with 2, the change h_t - h_{t-1} stands behind
            h_t (zero at the start of an episode), with 3 the change before it, too.

    Raises:
        ValueError: no frame, several, one of another size or not uint8, or entries that are no boxes.
    """

    def __init__(self, env: gym.Env[Any, np.ndarray], encoder: Encoder | Path | str, history: int = 1) -> None:
        RecordConstructorArgs.__init__(self, encoder=encoder, history=history)
        super().__init__(env)
        self._view = LatentView(env.observation_space, encoder, history, envs=1)
        self.observation_space = self._view.space

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Start an episode."""
        observation, info = self.env.reset(seed=seed, options=options)
        return self._view.see(_batched(observation), np.array([True]))[0], info

    def step(self, action: np.ndarray) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        """Act."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        latent = self._view.see(_batched(observation), np.array([False]))[0]
        return latent, float(reward), terminated, truncated, info


class EmbeddingVectorObservation(VectorWrapper[np.ndarray, np.ndarray, Any, np.ndarray, np.ndarray]):
    """The same over a vector environment of Gymnasium, all frames in one pass.

    Args:
        env: resets its environments by itself, in the next step or in the same one.
        encoder: see :class:`EmbeddingObservation`.
        history: likewise.

    Raises:
        ValueError: as there, or environments that are not reset by themselves.
    """

    def __init__(self, env: VectorEnv[Any, np.ndarray, np.ndarray], encoder: Encoder | Path | str, history: int = 1):
        super().__init__(env)
        self._mode = env.metadata.get("autoreset_mode", AutoresetMode.NEXT_STEP)
        if self._mode == AutoresetMode.DISABLED:
            raise ValueError(
                "EmbeddingVectorObservation takes environments that reset themselves: autoreset is disabled"
            )
        self._view = LatentView(env.single_observation_space, encoder, history, env.num_envs)
        self.single_observation_space = self._view.space
        self.observation_space = batch_space(self._view.space, env.num_envs)
        self._over = np.zeros(env.num_envs, bool)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Start episodes in all environments."""
        observations, infos = self.env.reset(seed=seed, options=options)
        self._over[:] = False
        return self._view.see(observations, np.ones(self.num_envs, bool)), infos

    def step(self, actions: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """Act in all environments."""
        observations, rewards, terminated, truncated, infos = self.env.step(actions)
        over = terminated | truncated
        if self._mode == AutoresetMode.SAME_STEP:
            finals = {int(index): infos["final_obs"][index] for index in np.flatnonzero(over)}
            latents, embedded = self._view.see_with_finals(observations, over, finals)
            for index, final in embedded.items():
                infos["final_obs"][index] = final
        else:
            latents, self._over = self._view.see(observations, self._over), over
        return latents, rewards, terminated, truncated, infos


class EmbeddingVecEnv(VecEnvWrapper):
    """The same over a vector environment of stable-baselines3, terminal observations included.

    Args:
        venv: see :class:`EmbeddingObservation`.
        encoder: likewise.
        history: likewise.
    """

    def __init__(self, venv: VecEnv, encoder: Encoder | Path | str, history: int = 1) -> None:
        self._view = LatentView(venv.observation_space, encoder, history, venv.num_envs)
        super().__init__(venv, observation_space=self._view.space)

    def reset(self) -> VecEnvObs:
        """Start episodes in all environments."""
        return self._view.see(self.venv.reset(), np.ones(self.num_envs, bool))

    def step_wait(self) -> VecEnvStepReturn:
        """Wait for all environments."""
        observations, rewards, dones, infos = self.venv.step_wait()
        finals = {int(index): infos[index]["terminal_observation"] for index in np.flatnonzero(dones)}
        latents, embedded = self._view.see_with_finals(observations, dones, finals)
        for index, final in embedded.items():
            infos[index]["terminal_observation"] = final
        return latents, rewards, dones, infos


class LatentView:
    """Turns observations of B environments into vectors, and remembers their last embeddings.

    Args:
        space: of one environment's observations.
        encoder: an encoder, or its folder.
        history: embeddings looked back on.
        envs: number B of environments.

    Attributes:
        space: of one vector: h_t, the last ``history - 1`` changes of h, and all that is no frame.
    """

    def __init__(self, space: gym.Space[Any], encoder: Encoder | Path | str, history: int, envs: int) -> None:
        if history < 1:
            raise ValueError(f"history is {history}: an observation has at least one embedding")
        self._encoder = encoder if isinstance(encoder, Encoder) else Encoder.load(encoder).freeze()
        self._frame, frame, self._beside = frame_and_rest(space)
        check_frames(frame.shape, str(frame.dtype), self._encoder.frame_size)
        self._past = np.zeros((envs, history, self._encoder.dim), np.float32)
        rest = sum(int(np.prod(box.shape)) for box in self._beside.values())
        self.space = gym.spaces.Box(-np.inf, np.inf, (history * self._encoder.dim + rest,), np.float32)

    def see(self, observations: Any, begins: np.ndarray) -> np.ndarray:
        """Return vectors (B, size) of the environments' observations; an episode ``begins`` where (B,) says so."""
        return self.see_with_finals(observations, begins, {})[0]

    def see_with_finals(
        self, observations: Any, begins: np.ndarray, finals: Mapping[int, Any]
    ) -> tuple[np.ndarray, dict[int, np.ndarray]]:
        """Do the same where episodes have ended meanwhile: return the vectors of their last observations, too.

        Args:
            observations: of the B environments, stacked.
            begins: (B,) where the observation is the first of an episode.
            finals: last observations of the episodes before, by the number of the environment.
        """
        ended = [_batched(final) for final in finals.values()]
        frames = np.concatenate([self._frames(part) for part in (observations, *ended)])
        h, last = np.split(self._encoder.encode(frames), [len(self._past)])
        embedded = {
            index: self._vectors(_shifted(self._past[[index]], last[[number]]), ended[number])[0]
            for number, index in enumerate(finals)
        }
        self._past = _shifted(self._past, h)
        self._past[begins] = h[begins, None]
        return self._vectors(self._past, observations), embedded

    def _frames(self, observations: Any) -> np.ndarray:
        return np.asarray(observations if self._frame is None else observations[self._frame])

    def _vectors(self, past: np.ndarray, observations: Any) -> np.ndarray:
        changes = past[:, :-1] - past[:, 1:]
        rest = [np.asarray(observations[name], np.float32) for name in self._beside]
        return np.concatenate([part.reshape(len(past), -1) for part in (past[:, 0], changes, *rest)], axis=1)


def frame_and_rest(
    space: gym.Space[Any],
) -> tuple[str | None, gym.spaces.Box, dict[str, gym.spaces.Box]]:
    """Find the frame in a space of observations.

    Returns:
        The frame's name in a dictionary (None where the space is the frame itself), its box, and the boxes beside it.

    Raises:
        ValueError: no frame, several, or entries that are no boxes.
    """
    if isinstance(space, gym.spaces.Box):
        return None, space, {}
    if not isinstance(space, gym.spaces.Dict):
        raise ValueError(f"observations are {space}: an encoder takes frames, or a dictionary that holds one")
    boxes = {name: part for name, part in space.spaces.items() if isinstance(part, gym.spaces.Box)}
    frames = [name for name, box in boxes.items() if box.dtype == np.uint8 and len(box.shape) >= 3]
    others = sorted(set(space.spaces) - set(boxes))
    if len(frames) != 1 or others:
        kinds = f"frames: {', '.join(frames) or 'none'}; no boxes: {', '.join(others) or 'none'}"
        raise ValueError(f"observations hold {', '.join(space.spaces)} ({kinds}): it takes one frame, and boxes beside")
    return frames[0], boxes[frames[0]], {name: box for name, box in boxes.items() if name != frames[0]}


def _shifted(past: np.ndarray, h: np.ndarray) -> np.ndarray:
    """Put the embeddings h (B, m) in front of those before (B, k, m)."""
    return np.concatenate([h[:, None], past[:, :-1]], axis=1)


def _batched(observation: Any) -> Any:
    if isinstance(observation, Mapping):
        return {name: np.asarray(value)[None] for name, value in observation.items()}
    return np.asarray(observation)[None]
