"""Every task of the DeepMind Control suite as a Gymnasium environment, over shimmy's compatibility wrapper."""

import copy
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import gymnasium as gym
import mujoco
import numpy as np
from dm_control import suite
from gymnasium.error import ResetNeeded
from shimmy.dm_control_compatibility import DmControlCompatibilityV0

from worldmodel.envs.drawn_targets import give_target_joints, hide_targets, move_target_to_joints
from worldmodel.envs.frames import FrameRenderer
from worldmodel.envs.latents import LatentSpec, latent_spec

_INFINITE = 1e6  # the lqr tasks give ±1e10 for "no bound"
_INTEGRATION_STATE = int(mujoco.mjtState.mjSTATE_INTEGRATION)  # all that the next step depends on, warm start included

# What the suite's tasks write into their model when an episode starts.
_MODEL_FIELDS = (
    "body_pos",
    "body_quat",
    "dof_damping",
    "geom_pos",
    "geom_rgba",
    "geom_size",
    "hfield_data",
    "light_active",
    "light_pos",
    "site_pos",
    "site_rgba",
    "site_size",
    "wrap_prm",
)

UNBOUNDED: Mapping[str, str] = {
    task: "its forces have no bound, so that actions of ±1 mean nothing until `action_bound` says what"
    for task in ("lqr-lqr_2_1", "lqr-lqr_6_2")
}
"""Tasks that are not made without `action_bound`, each with the reason; with it they are like any other."""


class _Shimmy(DmControlCompatibilityV0):
    metadata = dict(DmControlCompatibilityV0.metadata)  # noqa: RUF012, shimmy writes a frame rate into it


@dataclass(frozen=True)
class Snapshot:
    """All that sets an environment in mid-episode apart from a new one."""

    physics: np.ndarray
    sensors: np.ndarray
    model: dict[str, np.ndarray]
    task: dict[str, Any]
    steps: int
    over: bool
    np_random: np.random.Generator | None
    np_random_seed: int | None
    spec: Any


class SuiteEnv(gym.Env[np.ndarray, np.ndarray]):
    """A task of the DeepMind Control suite.

    Observations are one flat float32 vector (the task's own entries in their order), actions lie in ±1 and are rescaled
    to the task's bounds, the reward of a repeated action is the sum over the repeats. The task's time limit truncates
    an episode, a discount of 0 terminates it; what comes after needs a reset. `reset(seed)` fixes that episode and all
    unseeded ones that follow. Copies and pickles go on from where the original stood, independently of it.

    >>> env = SuiteEnv("reacher", "hard")
    >>> observation, _ = env.reset(seed=0, options={"latents": [0.5, -1.0]})
    >>> observation.dtype, env.latents().tolist(), env.render().shape
    (dtype('float32'), [0.5, -1.0], (64, 64, 3))
    >>> env.close()

    Args:
        domain: Domain of the suite, such as "reacher".
        task: Task of the domain, such as "hard".
        render_mode: "rgb_array" or None; `render()` gives a frame either way.
        frame_skip: Control steps that an action lasts.
        height: Height of a frame in pixels.
        width: Width of a frame in pixels.
        camera: Index or name of the camera.
        show_target: Whether frames show the goal that the task itself draws; "latent" also puts it on joints of its
            own, so that its place is among positions and latents.
        action_bound: What an action of ±1 means where the task has no bounds of its own, in the actuators' unit.
        latent_spec: Latents to use instead of the task's own (see `worldmodel.envs.latents`).

    Attributes:
        domain: Domain of the suite.
        task: Task of the domain.
        frame_skip: Control steps that an action lasts.
        frame_size: Height and width of a frame in pixels.

    Raises:
        ValueError: If there is no such task or camera, an option is out of range, or actions are unbounded.
    """

    metadata: dict[str, Any] = {"render_modes": ["rgb_array"]}  # noqa: RUF012, Gymnasium declares it so

    def __init__(
        self,
        domain: str,
        task: str,
        *,
        render_mode: str | None = None,
        frame_skip: int = 1,
        height: int = 64,
        width: int = 64,
        camera: int | str = 0,
        show_target: bool | Literal["latent"] = False,
        action_bound: float | None = None,
        latent_spec: LatentSpec | None = None,
    ) -> None:
        self._arguments = {name: value for name, value in locals().items() if name != "self"}  # to make a copy from
        if (domain, task) not in suite.ALL_TASKS:
            raise ValueError(f"the DeepMind Control suite has no task {domain}-{task} (envs.task_names() lists them)")
        if render_mode not in (None, "rgb_array"):
            raise ValueError(f"render_mode is {render_mode!r}: only 'rgb_array' is offered")
        for name, value in (("frame_skip", frame_skip), ("height", height), ("width", width)):
            if value < 1:
                raise ValueError(f"{name} is {value}: it has to be at least 1")
        self.domain, self.task, self.frame_skip, self.render_mode = domain, task, frame_skip, render_mode
        # A fixed generator until the first reset: the model of lqr is drawn when it is loaded, and were it another one
        # each time, reset(seed) would not be enough to repeat an episode.
        self._env = suite.load(domain, task, task_kwargs={"random": np.random.RandomState(0)})
        if show_target == "latent":
            give_target_joints(self._env, domain)
        self._low, self._high = self._action_bounds(action_bound)
        self._shimmy = _Shimmy(self._env)
        self._camera = _camera_index(self.model, camera)
        self._latent_spec = latent_spec
        self.frame_size = (height, width)
        self._show_target = show_target
        self._renderer: FrameRenderer | None = None
        self._over = True
        self._closed = False
        size = sum(math.prod(entry.shape) for entry in self._env.observation_spec().values())
        self.observation_space = gym.spaces.Box(-np.inf, np.inf, (size,), np.float32)
        self.action_space = gym.spaces.Box(-1.0, 1.0, self._low.shape, np.float32)
        rate = 1 / self.dt
        self.metadata = {**self.metadata, "render_fps": round(rate) if math.isclose(rate, round(rate)) else rate}
        self._hide_target()

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Starts an episode.

        Args:
            seed: Makes this episode and the unseeded ones after it reproducible.
            options: {"latents": z} starts at rest at the latents z (n,).

        Raises:
            ValueError: If there is another option, or z does not fit.
        """
        unknown = set(options or {}) - {"latents"}
        if unknown:
            raise ValueError(f"unknown reset options {', '.join(sorted(unknown))}: there is only 'latents'")
        super().reset(seed=seed)
        self._seed_task()
        self._shimmy.reset()
        self._hide_target()
        if self._show_target == "latent":
            move_target_to_joints(self.physics)
        if self.model.nhfield:
            self._drop_renderer()  # it holds the last episode's terrain
        if options and options.get("latents") is not None:
            self.set_latents(options["latents"])
        self._over = False
        return self._observe(), {}

    def step(self, action: np.ndarray) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        """Holds an action in ±1 for `frame_skip` control steps, or until the episode ends.

        Raises:
            ResetNeeded: If no episode is running.
            ValueError: If the action has the wrong shape or is not finite.
        """
        if self._over:
            raise ResetNeeded(
                f"{self.domain}-{self.task}: the episode is over or was never started; call reset() first"
            )
        force = self._rescale(action)
        total = 0.0
        for _ in range(self.frame_skip):
            _, reward, terminated, truncated, _ = self._shimmy.step(force)
            total += float(reward)
            if terminated or truncated:
                self._over = True
                break
        return self._observe(), total, terminated, truncated, {}

    def render(self) -> np.ndarray:
        """The frame (height, width, 3) uint8 of the state as it is now."""
        return self.renderer.render(self.physics.data.ptr)

    def close(self) -> None:
        """Frees the simulator and the renderer; more than once does no harm."""
        if not self._closed:
            self._drop_renderer()
            self._shimmy.close()
        self._closed = True

    @property
    def physics(self) -> Any:
        """The task's dm_control physics."""
        return self._env.physics

    @property
    def model(self) -> mujoco.MjModel:
        """The task's compiled model."""
        return self._env.physics.model.ptr

    @property
    def num_actions(self) -> int:
        """Width of an action."""
        return len(self._low)

    @property
    def dt(self) -> float:
        """Seconds from one step to the next."""
        return self._env.control_timestep() * self.frame_skip

    @property
    def time_limit(self) -> float:
        """Seconds after which the task truncates an episode."""
        return self._env._step_limit * self._env.control_timestep()

    @property
    def renderer(self) -> FrameRenderer:
        """What draws the frames, made when first asked for."""
        if self._renderer is None:
            height, width = self.frame_size
            self._renderer = FrameRenderer(self.model, height=height, width=width, camera=self._camera)
        return self._renderer

    @property
    def latent_spec(self) -> LatentSpec:
        """The task's latents.

        Raises:
            ValueError: If the task has free or ball joints and no specification was given.
        """
        if self._latent_spec is None:
            self._latent_spec = latent_spec(self.domain, self.task, self.model, self._camera)
        return self._latent_spec

    def state(self) -> np.ndarray:
        """Positions, then velocities: (nq + nv,) float64."""
        return np.concatenate([self.physics.data.qpos, self.physics.data.qvel])

    def set_state(self, state: np.ndarray) -> None:
        """Sets positions and velocities (nq + nv,), and brings all that depends on them up to date.

        Nothing of the former motion is left (controls, activations, applied forces, the solver's warm start), so that
        the same state is followed by the same future. Time and the episode go on.

        Raises:
            ValueError: If the shape is wrong or a number is not finite.
        """
        state = np.asarray(state, dtype=np.float64)
        nq, nv = self.model.nq, self.model.nv
        if state.shape != (nq + nv,):
            raise ValueError(f"state has shape {state.shape}: {self.domain}-{self.task} takes ({nq + nv},)")
        if not np.isfinite(state).all():
            raise ValueError(f"state of {self.domain}-{self.task} is not all finite")
        data = self.physics.data.ptr
        for rest in (data.act, data.ctrl, data.qfrc_applied, data.xfrc_applied, data.qacc_warmstart):
            rest[:] = 0
        data.qpos[:], data.qvel[:] = state[:nq], state[nq:]
        mujoco.mj_normalizeQuat(self.model, data.qpos)
        self.physics.forward()

    def latents(self) -> np.ndarray:
        """The latents as they are now: (n,) float32, free hinges within half a period of their mean."""
        spec = self.latent_spec
        return spec.wrap(spec.to_latents(self.physics.data.qpos)).astype(np.float32)

    def set_latents(self, latents: np.ndarray, velocity: np.ndarray | None = None) -> None:
        """Poses the simulator at latents (n,); joints that are no latents stay where they are, at rest.

        Args:
            latents: (n,) standardised.
            velocity: (n,) latents per second, or None for rest.

        Raises:
            ValueError: If a shape is wrong or a number is not finite.
        """
        spec = self.latent_spec
        latents = np.asarray(latents, dtype=np.float64)
        rates = np.zeros(spec.n) if velocity is None else np.asarray(velocity, dtype=np.float64)
        for name, value in (("latents", latents), ("velocity", rates)):
            if value.shape != (spec.n,):
                raise ValueError(f"{name} has shape {value.shape}: {self.domain}-{self.task} takes ({spec.n},)")
        qvel = np.zeros(self.model.nv)
        qvel[[self.model.joint(c.joint).dofadr[0] for c in spec.coordinates]] = rates * spec.scales
        self.set_state(np.concatenate([spec.to_qpos(latents, self.physics.data.qpos), qvel]))

    def snapshot(self) -> Snapshot:
        """All that sets this environment in mid-episode apart from a new one."""
        model, data = self.model, self.physics.data.ptr
        physics = np.empty(mujoco.mj_stateSize(model, _INTEGRATION_STATE))
        mujoco.mj_getState(model, data, physics, _INTEGRATION_STATE)
        return Snapshot(
            physics=physics,
            sensors=data.sensordata.copy(),
            model={name: getattr(model, name).copy() for name in _MODEL_FIELDS},
            task=copy.deepcopy({name: value for name, value in vars(self._env.task).items() if name != "_random"}),
            steps=self._env._step_count,
            over=self._over,
            np_random=copy.deepcopy(self._np_random),
            np_random_seed=self._np_random_seed,
            spec=self.spec,
        )

    def restore(self, snapshot: Snapshot) -> None:
        """Goes on from where this environment, or one made like it, stood when the snapshot was taken."""
        model, data = self.model, self.physics.data.ptr
        for name, value in snapshot.model.items():
            getattr(model, name)[:] = value
        mujoco.mj_setState(model, data, snapshot.physics, _INTEGRATION_STATE)
        self.physics.forward()
        mujoco.mj_setState(model, data, snapshot.physics, _INTEGRATION_STATE)  # the forward pass moved the warm start
        data.sensordata[:] = snapshot.sensors  # dm_control leaves those of accelerations one step behind
        vars(self._env.task).update(snapshot.task)
        self._env._step_count = snapshot.steps
        self._env._reset_next_step = self._over = snapshot.over
        self._np_random, self._np_random_seed, self.spec = snapshot.np_random, snapshot.np_random_seed, snapshot.spec
        self._seed_task()

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), self._arguments, self.snapshot())

    def _seed_task(self) -> None:
        """Makes dm_control draw from Gymnasium's generator, so that there is one stream and one seed."""
        self._shimmy.np_random = np.random.RandomState(self.np_random.bit_generator)

    def _observe(self) -> np.ndarray:
        entries = self._env.task.get_observation(self.physics).values()
        return np.concatenate([np.ravel(entry) for entry in entries]).astype(np.float32)

    def _action_bounds(self, bound: float | None) -> tuple[np.ndarray, np.ndarray]:
        spec = self._env.action_spec()
        low, high = (np.broadcast_to(limit, spec.shape).astype(np.float64) for limit in (spec.minimum, spec.maximum))
        finite = bool((np.abs([low, high]) < _INFINITE).all())
        name = f"{self.domain}-{self.task}"
        if finite and bound is not None:
            raise ValueError(f"{name} has action bounds of its own: action_bound has to be None")
        if finite:
            return low, high
        if bound is None or not (0 < bound < _INFINITE):
            raise ValueError(
                f"actions of {name} are unbounded: give action_bound=F, the force that an action of ±1 stands for"
            )
        return np.full(spec.shape, -bound), np.full(spec.shape, bound)

    def _rescale(self, action: np.ndarray) -> np.ndarray:
        action = np.asarray(action, dtype=np.float64)
        if action.shape != self._low.shape:
            raise ValueError(f"action has shape {action.shape}: {self.domain}-{self.task} takes {self._low.shape}")
        if not np.isfinite(action).all():
            raise ValueError(f"action of {self.domain}-{self.task} is not all finite")
        return self._low + (np.clip(action, -1, 1) + 1) / 2 * (self._high - self._low)

    def _hide_target(self) -> None:
        if not self._show_target:
            hide_targets(self.model)

    def _drop_renderer(self) -> None:
        if self._renderer is not None:
            self._renderer.close()
        self._renderer = None


def _rebuild(kind: type[SuiteEnv], arguments: dict[str, Any], snapshot: Snapshot) -> SuiteEnv:
    env = kind(**arguments)
    env.restore(snapshot)
    return env


def _camera_index(model: mujoco.MjModel, camera: int | str) -> int:
    names = [model.camera(index).name for index in range(model.ncam)]
    if isinstance(camera, str) and camera in names:
        return names.index(camera)
    if isinstance(camera, int) and 0 <= camera < len(names):
        return camera
    raise ValueError(f"there is no camera {camera!r}: take one of 0 to {len(names) - 1} ({', '.join(names)})")
