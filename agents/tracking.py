"""Driving the latents along a Gaussian process through the actuators: what :class:`LatentOU` draws, within reach.

The reference of each latent is an Ornstein-Uhlenbeck process smoothed twice (a Matérn process of order 5/2): Gaussian,
stationary and independent of the others, with an acceleration, so that motors can follow it. With x = (z, ż, z̈) it is
stationary at covariance Σ, and x' = F x + √(Σ - F Σ Fᵀ) η is exact at any step, with

    F = exp(dt [[0, 1, 0], [0, 0, 1], [-ω³, -3ω², -3ω]]),    Σ = [[1, 0, -ω²/3], [0, ω²/3, 0], [-ω²/3, 0, ω⁴]].

The controller knows of the robot what a data sheet says: inertia, damping and actuator gains, in its mean pose.
"""

from dataclasses import dataclass

import mujoco
import numpy as np
import scipy.linalg

from worldmodel.agents.policies import Policy
from worldmodel.envs import SuiteEnv

_E_FOLD = 2.9046  # ω t at which the reference's correlation, (1 + ω t + (ω t)² / 3) exp(-ω t), is 1/e
_EFFORT = 1 / 3  # standard deviation of the actions that the reference asks for, where the explorer chooses its pace
_BANDWIDTH = 0.3  # of the feedback, in radians per control step
_NEAR = 0.1  # of the standard deviation: close enough to the start
_PATIENCE = 10.0  # seconds to reach the start


@dataclass(frozen=True)
class TrackingOU:
    """A smooth Ornstein-Uhlenbeck process in the standardised latents, followed through the actuators by feedback.

    States are close to an isotropic Gaussian though nothing is posed: the robot drives to where the reference starts,
    at most 10 s that are not recorded, and follows it from there. Every latent needs an actuator of its own.

    Attributes:
        correlation_time: seconds after which the reference's correlation is 1/e. None takes the shortest that the
            actuators follow: actions of standard deviation 1/3, so that three of those are full force.
        std: stationary standard deviation, in units of the latents.
    """

    correlation_time: float | None = None
    std: float = 1.0

    def __post_init__(self) -> None:
        if not (self.std > 0 and (self.correlation_time is None or self.correlation_time > 0)):
            raise ValueError(f"{self}: std and correlation_time have to be positive")

    def policy_in(self, env: SuiteEnv, observation: np.ndarray, rng: np.random.Generator) -> tuple[Policy, np.ndarray]:
        """Drive to the reference's start, and return the policy that follows it.

        Raises:
            ValueError: a latent has no actuator of its own, or is not brought to its start.
        """
        drive = Drive.of(env)
        omega = drive.pace(self.std) if self.correlation_time is None else _E_FOLD / self.correlation_time
        reference = Reference(drive.latents, omega, self.std, env.dt, rng)
        observation = _approach(env, observation, drive, reference.z, _NEAR * self.std)

        def follow(observation: np.ndarray) -> np.ndarray:
            z, rate = reference.z, reference.rate
            reference.step()
            return drive.action(*drive.motion(env), z, (reference.z - z) / env.dt, (reference.rate - rate) / env.dt)

        return follow, observation


class Reference:
    """A smooth stationary process for each latent.

    Args:
        latents: number of latents n.
        omega: rate of its decay, per second.
        std: stationary standard deviation, in units of the latents.
        dt: seconds of a step.
        rng: source of randomness.
    """

    def __init__(self, latents: int, omega: float, std: float, dt: float, rng: np.random.Generator) -> None:
        self._scale = std * np.array([1.0, omega, omega**2])  # everything else in units of these and of 1/ω seconds
        self._transition = scipy.linalg.expm(omega * dt * np.array([[0.0, 1, 0], [0, 0, 1], [-1, -3, -3]]))
        stationary = np.array([[1, 0, -1 / 3], [0, 1 / 3, 0], [-1 / 3, 0, 1]])
        self._kick = _root(stationary - self._transition @ stationary @ self._transition.T)
        self._rng = rng
        self._x = rng.standard_normal((latents, 3)) @ _root(stationary)

    @property
    def z(self) -> np.ndarray:
        """(n,) latents now."""
        return self._x[:, 0] * self._scale[0]

    @property
    def rate(self) -> np.ndarray:
        """(n,) latents per second now."""
        return self._x[:, 1] * self._scale[1]

    def step(self) -> None:
        """Go on by one step."""
        self._x = self._x @ self._transition.T + self._rng.standard_normal(self._x.shape) @ self._kick


@dataclass(frozen=True, eq=False)
class Drive:
    """What moves the latents: inertia z̈ + damping ż = force, and action = actuation · force.

    Attributes:
        inertia: (n, n) force per latent per second squared, in the mean pose.
        damping: (n, n) force per latent per second.
        actuation: (a, n) actions per force.
        bandwidth: of the feedback, per second.
        dofs: where each latent's velocity stands in qvel.
    """

    inertia: np.ndarray
    damping: np.ndarray
    actuation: np.ndarray
    bandwidth: float
    dofs: tuple[int, ...]

    @classmethod
    def of(cls, env: SuiteEnv) -> "Drive":
        """Read it from the model.

        Raises:
            ValueError: a latent has no actuator of its own, or an actuator has no bounds.
        """
        model, spec = env.model, env.latent_spec
        dofs = [int(model.joint(c.joint).dofadr[0]) for c in spec.coordinates]
        data = mujoco.MjData(model)
        data.qpos[:] = spec.to_qpos(np.zeros(spec.n), model.qpos0)
        inertia = np.zeros((model.nv, model.nv))
        mujoco.mj_forward(model, data)
        mujoco.mj_fullM(model, data, inertia)
        force = _force_per_action(env, data)[dofs]
        return cls(
            inertia=inertia[np.ix_(dofs, dofs)] * spec.scales,
            damping=np.diag(model.dof_damping[dofs] * spec.scales),
            actuation=_actuation(env, force),
            bandwidth=_BANDWIDTH / env.dt,
            dofs=tuple(dofs),
        )

    @property
    def latents(self) -> int:
        """Number of latents n."""
        return len(self.inertia)

    def action(
        self, z: np.ndarray, rate: np.ndarray, z_wanted: np.ndarray, rate_wanted: np.ndarray, acceleration: np.ndarray
    ) -> np.ndarray:
        """Return the action (a,) in ±1 that follows a reference: what the reference itself takes, and critical damping.

        Args:
            z: (n,) latents now.
            rate: (n,) latents per second now.
            z_wanted: (n,) where the reference is now.
            rate_wanted: (n,) its rate over the coming step.
            acceleration: (n,) its acceleration over the coming step, latents per second squared.
        """
        hurry = self.bandwidth * (z_wanted - z)
        force = self.inertia @ (acceleration + self.bandwidth * (hurry + 2 * (rate_wanted - rate)))
        force += self.damping @ (rate_wanted + hurry)
        return np.clip(self.actuation @ force, -1, 1).astype(np.float32)

    def motion(self, env: SuiteEnv) -> tuple[np.ndarray, np.ndarray]:
        """Read latents (n,), turns counted, and their rates (n,) per second."""
        spec, data = env.latent_spec, env.physics.data
        return spec.to_latents(data.qpos), data.qvel[list(self.dofs)] / spec.scales

    def pace(self, std: float) -> float:
        """Return the ω per second of a reference whose actions have a standard deviation of 1/3 where it is largest.

        Rates have variance (ω std)² / 3 and accelerations (ω² std)², uncorrelated at any one time.
        """
        fast = std**2 * ((self.actuation @ self.inertia) ** 2).sum(1)
        slow = std**2 / 3 * ((self.actuation @ self.damping) ** 2).sum(1)
        steep = slow + np.sqrt(slow**2 + 4 * fast * _EFFORT**2)
        squared = 2 * _EFFORT**2 / steep[steep > 0]  # an actuator that moves no latent asks for nothing
        return float(np.sqrt(squared.min()))


def _root(covariance: np.ndarray) -> np.ndarray:
    """Return the symmetric square root of a covariance, which may be singular."""
    values, vectors = np.linalg.eigh(covariance)
    return (vectors * np.sqrt(values.clip(0))) @ vectors.T


def _force_per_action(env: SuiteEnv, data: mujoco.MjData) -> np.ndarray:
    """Return (nv, a) forces on the degrees of freedom per unit of each action, in the pose of ``data``."""
    model = env.model
    if not model.actuator_ctrllimited.all():
        raise ValueError(f"actuators of {env.domain}-{env.task} have no bounds of their own: nothing to track with")
    forces = []
    for index, bounds in enumerate(model.actuator_ctrlrange):
        ends = []
        for end in bounds:
            data.ctrl[index] = end
            mujoco.mj_forward(model, data)
            ends.append(data.qfrc_actuator.copy())
        data.ctrl[index] = 0
        forces.append((ends[1] - ends[0]) / 2)
    return np.stack(forces, axis=1)


def _actuation(env: SuiteEnv, force: np.ndarray) -> np.ndarray:
    """Invert forces per action (n, a); name the latents that no combination of actions moves by themselves."""
    inverse = np.linalg.pinv(force)
    reached = np.diag(force @ inverse) > 1 - 1e-6
    if not reached.all():
        names = [name for name, ok in zip(env.latent_spec.names, reached, strict=True) if not ok]
        raise ValueError(
            f"{env.domain}-{env.task} has latents without an actuator of their own, {', '.join(names)}: nothing can be "
            "tracked there"
        )
    return inverse


def _approach(env: SuiteEnv, observation: np.ndarray, drive: Drive, start: np.ndarray, near: float) -> np.ndarray:
    """Drive to rest at the latents ``start`` (n,); return the observation there."""
    still = np.zeros_like(start)
    for _ in range(round(_PATIENCE / env.dt)):
        z, rate = drive.motion(env)
        away = np.maximum(np.abs(z - start), np.abs(rate) / drive.bandwidth)
        if away.max() < near:
            return observation
        observation, _, terminated, truncated, _ = env.step(drive.action(z, rate, start, still, still))
        if terminated or truncated:
            break
    late = ", ".join(np.array(env.latent_spec.names)[away >= near])
    raise ValueError(f"{env.domain}-{env.task}: the actuators do not bring {late} to a given pose within 10 s")
