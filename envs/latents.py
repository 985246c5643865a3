"""Latents: the degrees of freedom that a picture shows, standardised, z = (q - mean) / scale.

A specification names each coordinate, its joint, and how it is centred and scaled, and is exact in both directions.
Every hinge and slide of a task's model becomes a coordinate by one rule, which `curated.py` overrides where looking at
the pictures says better:

- a limited joint has its mean in the middle of its range and a scale of a sixth of the range;
- a hinge that turns freely has its mean at the model's own pose and a scale of at most 0.7 rad, beyond which poses a
  full turn apart, which look alike, would cost R² (see `worldmodel.measures.ceiling`);
- a slide without limits has a scale of a sixth of the half-height that the camera shows;
- a root slide that the camera follows cannot be seen, and is left out by name.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import mujoco
import numpy as np

from worldmodel.envs.curated import Pose, curated
from worldmodel.measures.ceiling import aliased_r2

_FREE_HINGE_SCALE = 0.7  # rad at a period of 2π: a ceiling of 0.9995
_FULL_TURN = 2 * math.pi
_RULE = Pose()
_HINGE, _SLIDE = int(mujoco.mjtJoint.mjJNT_HINGE), int(mujoco.mjtJoint.mjJNT_SLIDE)


@dataclass(frozen=True)
class Coordinate:
    """One latent: z = (qpos[qpos_index] - mean) / scale.

    Attributes:
        name: Name of the latent.
        joint: Name of the joint in the model.
        qpos_index: Where the joint's position stands in qpos.
        mean: Position at z = 0, in `unit`.
        scale: Change of position per unit of z, in `unit`.
        period: Positions this far apart are the same pose and look alike; None where there is no such thing.
        unit: "rad" or "m".
        limits: Range of the joint in `unit`, or None where it has none.
    """

    name: str
    joint: str
    qpos_index: int
    mean: float
    scale: float
    period: float | None
    unit: str
    limits: tuple[float, float] | None = None


@dataclass(frozen=True)
class LatentSpec:
    """The latents of one task: which joints, centred and scaled how, and what is left out.

    Attributes:
        domain: Domain of the task.
        task: Task within the domain.
        coordinates: The n latents in order.
        left_out: Joints that are no latents, each with the reason.

    Raises:
        ValueError: If there is no coordinate, a name comes twice, or a scale is not positive and finite.
    """

    domain: str
    task: str
    coordinates: tuple[Coordinate, ...]
    left_out: Mapping[str, str] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        task = f"{self.domain}-{self.task}"
        if not self.coordinates:
            raise ValueError(f"{task}: a latent specification needs at least one coordinate")
        if len(set(self.names)) < self.n:
            raise ValueError(f"{task}: latent names come twice in {', '.join(self.names)}")
        for coordinate in self.coordinates:
            if not (math.isfinite(coordinate.scale) and coordinate.scale > 0):
                raise ValueError(
                    f"{task}: latent {coordinate.name} has scale {coordinate.scale}, which has to be positive"
                )

    @property
    def n(self) -> int:
        """Number of latents."""
        return len(self.coordinates)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the latents, in order."""
        return tuple(coordinate.name for coordinate in self.coordinates)

    @property
    def qpos_indices(self) -> np.ndarray:
        """(n,) where each latent stands in qpos."""
        return np.array([coordinate.qpos_index for coordinate in self.coordinates])

    @property
    def means(self) -> np.ndarray:
        """(n,) position at z = 0, in rad or m."""
        return np.array([coordinate.mean for coordinate in self.coordinates])

    @property
    def scales(self) -> np.ndarray:
        """(n,) change of position per unit of z, in rad or m."""
        return np.array([coordinate.scale for coordinate in self.coordinates])

    @property
    def periods(self) -> np.ndarray:
        """(n,) distance between poses that are the same, in rad; infinite where there is none."""
        return np.array([coordinate.period or math.inf for coordinate in self.coordinates])

    @property
    def turning(self) -> np.ndarray:
        """(k,) which latents turn all the way round: those with a period."""
        return np.flatnonzero(np.isfinite(self.periods))

    @property
    def circle_latents(self) -> int:
        """Width of an embedding in which every latent that turns has two coordinates, its cosine and its sine."""
        return self.n + len(self.turning)

    def angles(self, latents: np.ndarray) -> np.ndarray:
        """Latents (..., n) that turn, as angles (..., k) in rad: a period is a full turn."""
        turning = self.turning
        return (latents[..., turning] * self.scales[turning]) * (_FULL_TURN / self.periods[turning])

    def turned(self, angles: np.ndarray) -> np.ndarray:
        """Angles (..., k) in rad as the latents that turn (..., k), the inverse of `angles`."""
        turning = self.turning
        return angles * (self.periods[turning] / _FULL_TURN) / self.scales[turning]

    def to_latents(self, qpos: np.ndarray) -> np.ndarray:
        """Latents of positions: (..., nq) in rad or m to (..., n) float64, turns counted (`wrap` forgets them)."""
        return (self._joints(qpos) - self.means) / self.scales

    def to_qpos(self, latents: np.ndarray, base_qpos: np.ndarray) -> np.ndarray:
        """Positions of latents, the inverse of `to_latents`.

        Args:
            latents: (..., n) standardised.
            base_qpos: (nq,) positions of every joint that is no latent.

        Returns:
            (..., nq) float64 in rad or m.

        Raises:
            ValueError: If the last axis of `latents` is not n long or a number is not finite.
        """
        latents = np.asarray(latents, dtype=np.float64)
        if latents.ndim == 0 or latents.shape[-1] != self.n:
            raise ValueError(f"latents have shape {latents.shape}: {self._task} has {self.n} ({', '.join(self.names)})")
        if not np.isfinite(latents).all():
            raise ValueError(f"latents of {self._task} are not all finite")
        base_qpos = np.asarray(base_qpos, dtype=np.float64)
        qpos = np.broadcast_to(base_qpos, (*latents.shape[:-1], base_qpos.shape[-1])).copy()
        qpos[..., self.qpos_indices] = self.means + self.scales * latents
        return qpos

    def wrap(self, latents: np.ndarray) -> np.ndarray:
        """The same poses (..., n) with every free hinge within half a period of its mean."""
        return _wrap(np.asarray(latents) * self.scales, self.periods) / self.scales

    def difference(self, q1: np.ndarray, q2: np.ndarray) -> np.ndarray:
        """How far q1 lies from q2, the short way round: (..., nq) and (..., nq) to (..., n) in rad or m."""
        return _wrap(self._joints(q1) - self._joints(q2), self.periods)

    def ceiling(self) -> np.ndarray:
        """(n,) the best R² that any encoder could reach per latent when z ~ N(0, 1); 1 where no poses look alike."""
        return np.array([aliased_r2(c.scale, c.period) if c.period else 1.0 for c in self.coordinates])

    def rescaled(self, scale: float) -> "LatentSpec":
        """The same coordinates, every one with this scale in rad or m (1.0 takes z as radians, as the paper does).

        A hinge whose limits lie within three scales of its mean is posed beyond them, so that it can turn all the way
        round like a free one: it gets a period of 2π, and its ceiling falls below 1.
        """

        def rescale(c: Coordinate) -> Coordinate:
            limited = c.limits is not None and c.limits[0] <= c.mean - 3 * scale and c.mean + 3 * scale <= c.limits[1]
            period = c.period if c.period or limited or c.unit == "m" else _FULL_TURN
            return replace(c, scale=scale, period=period)

        return replace(self, coordinates=tuple(rescale(c) for c in self.coordinates))

    @property
    def _task(self) -> str:
        return f"{self.domain}-{self.task}"

    def _joints(self, qpos: np.ndarray) -> np.ndarray:
        qpos = np.asarray(qpos, dtype=np.float64)
        if qpos.ndim == 0 or qpos.shape[-1] <= self.qpos_indices.max():
            raise ValueError(f"positions have shape {qpos.shape}, too short for {self._task}: it takes (..., nq)")
        return qpos[..., self.qpos_indices]


def latent_spec(domain: str, task: str, model: mujoco.MjModel, camera: int = 0) -> LatentSpec:
    """The latents of a task: the curated choice where there is one, the rule of this module for every other joint.

    Args:
        domain: Domain of the task.
        task: Task within the domain.
        model: The task's compiled model.
        camera: Index of the camera that takes the pictures; what it follows is left out. Curated choices were made by
            looking at camera 0.

    Raises:
        ValueError: If the model has free or ball joints, whose orientation no single coordinate describes.
    """
    joints = [model.joint(index) for index in range(model.njnt)]
    awkward = [j.name for j in joints if j.type[0] not in (_HINGE, _SLIDE)]
    if awkward:
        raise ValueError(
            f"{domain}-{task} has free or ball joints ({', '.join(awkward)}), which no single coordinate describes: "
            "give latent_spec=LatentSpec(...) of the hinges and slides that matter (envs.latents.coordinate makes one)"
        )
    choices = curated(domain, task)
    coordinates, left_out = [], {}
    for joint in joints:
        choice = choices.get(joint.name, _RULE)
        if not isinstance(choice, Pose):
            left_out[joint.name] = choice
        elif _followed(model, joint.id, camera):
            left_out[joint.name] = f"camera {model.camera(camera).name!r} follows it"
        else:
            coordinates.append(coordinate(model, joint.name, choice, camera))
    return LatentSpec(domain, task, tuple(coordinates), left_out)


def coordinate(model: mujoco.MjModel, joint: str, pose: Pose = _RULE, camera: int = 0) -> Coordinate:
    """The latent of one hinge or slide, by the rule of this module where `pose` does not say otherwise.

    Args:
        model: Compiled model.
        joint: Name of a hinge or slide in it.
        pose: Mean, scale and period to use instead of the rule's.
        camera: Index of the camera that takes the pictures.

    Raises:
        ValueError: If the joint is neither a hinge nor a slide.
        KeyError: If the model has no such joint (mujoco names the ones it has).
    """
    view = model.joint(joint)
    kind = view.type[0]
    if kind not in (_HINGE, _SLIDE):
        raise ValueError(f"joint {joint} is neither a hinge nor a slide: one coordinate cannot describe it")
    hinge, index = kind == _HINGE, int(view.qposadr[0])
    limits = (float(view.range[0]), float(view.range[1])) if view.limited[0] else None
    period = None
    if limits:
        mean, scale = sum(limits) / 2, (limits[1] - limits[0]) / 6
    elif hinge:
        period = pose.period
        mean, scale = float(model.qpos0[index]), _FREE_HINGE_SCALE * period / _FULL_TURN
    else:
        mean, scale = float(model.qpos0[index]), _half_height(model, view.id, camera) / 6
    return Coordinate(
        name=joint,
        joint=joint,
        qpos_index=index,
        mean=mean if pose.mean is None else pose.mean,
        scale=scale if pose.scale is None else pose.scale,
        period=period,
        unit="rad" if hinge else "m",
        limits=limits,
    )


def _wrap(difference: np.ndarray, periods: np.ndarray) -> np.ndarray:
    """Differences (..., n) brought within half a period of 0; an infinite period changes nothing."""
    turns = np.round(difference / periods)
    return difference - turns * np.where(np.isinf(periods), 0.0, periods)


def _followed(model: mujoco.MjModel, joint: int, camera: int) -> bool:
    """Whether the camera moves along with a horizontal slide, so that no picture shows it."""
    if model.jnt_type[joint] != _SLIDE:
        return False
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    before, axis = data.cam_xpos[camera].copy(), data.xaxis[joint].copy()
    data.qpos[model.jnt_qposadr[joint]] += 0.01
    mujoco.mj_forward(model, data)
    return bool(abs(axis[2]) < 0.5 and np.allclose(data.cam_xpos[camera] - before, 0.01 * axis, atol=1e-6))


def _half_height(model: mujoco.MjModel, joint: int, camera: int) -> float:
    """Half the height in m of what the camera shows at the joint's distance, in the model's own pose."""
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    distance = np.linalg.norm(data.xanchor[joint] - data.cam_xpos[camera])
    return float(distance * math.tan(math.radians(model.cam_fovy[camera]) / 2))
