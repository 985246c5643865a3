"""Many episodes of one environment side by side: one simulator steps them by turns, one renderer draws them all."""

from collections.abc import Sequence

import numpy as np

from worldmodel.envs.suite import Snapshot, SuiteEnv


class Fleet:
    """Episodes that start together and are stepped together, each as if it had the environment to itself.

    Making a simulator takes a hundred times longer than stepping it, and frames of many poses are drawn fastest
    together. An episode that ends stays where it is.

    >>> fleet = Fleet(SuiteEnv("reacher", "hard"))
    >>> fleet.reset(np.array([[0.0, 0.0], [0.5, -1.0]]))
    >>> fleet.step(np.zeros((2, 2))).tolist(), fleet.latents().tolist(), fleet.frames().shape
    ([0.0, 0.0], [[0.0, 0.0], [0.5, -1.0]], (2, 64, 64, 3))

    Args:
        env: what steps and draws; between calls it stands in whichever episode came last.
    """

    def __init__(self, env: SuiteEnv) -> None:
        self.env = env
        self._lanes: list[Snapshot] = []
        self._qpos = np.zeros((0, env.model.nq))

    def __len__(self) -> int:
        """Number of episodes."""
        return len(self._lanes)

    def reset(self, latents: np.ndarray, seeds: Sequence[int] | None = None) -> None:
        """Starts one episode at each of the latents (B, n), at rest.

        Args:
            latents: (B, n) standardised.
            seeds: of what else the task draws (B,), such as its target; None numbers them.
        """
        self._lanes, qpos = [], []
        for number, z in enumerate(latents):
            self.env.reset(seed=number if seeds is None else int(seeds[number]), options={"latents": z})
            self._lanes.append(self.env.snapshot())
            qpos.append(self.env.physics.data.qpos.copy())
        self._qpos = np.array(qpos)

    def step(self, actions: np.ndarray) -> np.ndarray:
        """Holds actions (B, a) for one step in every episode that runs; returns the rewards (B,), 0 where none runs.

        Raises:
            ValueError: If there are not as many actions as episodes, or one does not fit.
        """
        if len(actions) != len(self._lanes):
            raise ValueError(f"{len(actions)} actions for {len(self._lanes)} episodes: one each")
        rewards = np.zeros(len(actions))
        for number in np.flatnonzero(~self.over):
            self.env.restore(self._lanes[number])
            rewards[number] = self.env.step(actions[number])[1]
            self._lanes[number] = self.env.snapshot()
            self._qpos[number] = self.env.physics.data.qpos
        return rewards

    @property
    def over(self) -> np.ndarray:
        """(B,) which episodes have ended."""
        return np.array([lane.over for lane in self._lanes], bool)

    @property
    def qpos(self) -> np.ndarray:
        """(B, nq) positions as they are now."""
        return self._qpos.copy()

    def latents(self) -> np.ndarray:
        """The latents as a picture shows them: (B, n), free hinges within half a period of their mean."""
        spec = self.env.latent_spec
        return spec.wrap(spec.to_latents(self._qpos))

    def frames(self) -> np.ndarray:
        """The frames (B, H, W, 3) uint8 of all episodes, drawn in one pass; what the task itself draws is not shown."""
        return self.env.renderer.render_poses(self._qpos, self.env.physics.data.ptr)
