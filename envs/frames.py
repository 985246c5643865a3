"""Frames: pictures of the simulator, many poses drawn into one off-screen buffer and read back at once.

Where the time of a 64×64 frame of Reacher goes on a CPU (Mesa llvmpipe, 2 cores, ms): dm_control's ``physics.render``
25, of which the shadow map takes 20; without shadows 4.8; without the mirror image in the floor, which draws every
geom twice, 2.4; with round things made of 12 facets instead of 28, which look the same at this size, 1.0; without the
sky, which the floor hides, 0.7. Moving the bodies and the scene takes 0.01. docs/speed.md has what else was tried.
"""

import weakref
from collections.abc import Callable, Sequence
from typing import Any

import mujoco
import numpy as np

from worldmodel.envs import gl
from worldmodel.envs.canvas import Canvas, capacity
from worldmodel.envs.gl import FrameError
from worldmodel.envs.sky import SKYBOX, has_sky

__all__ = ["FrameError", "FrameRenderer"]

_GEOM = int(mujoco.mjtObj.mjOBJ_GEOM)
_STILL = 2.0  # pixels that something has to move before frames that are all alike are called frozen


class FrameRenderer:
    """Draws frames of one model, singly or many poses at a time.

    The picture is dm_control's ``physics.render`` without shadows and without mirror images in the floor (and floors
    look flatter, since OpenGL cuts light off at full brightness where no shadow map adds to it). What changes
    in the model between frames (colours, sizes, positions of geoms) is drawn as it is then; textures, meshes and height
    fields are those of the first frame. Usable from any thread; a pickled renderer, as in a spawned process, makes its
    own context when it first draws.

    >>> model = mujoco.MjModel.from_xml_string(
    ...     "<mujoco><worldbody><body><joint type='slide'/><geom size='.1'/></body></worldbody></mujoco>")
    >>> FrameRenderer(model).render_poses(np.array([[0.0], [0.1]])).shape
    (2, 64, 64, 3)

    Args:
        model: Compiled model; never changed.
        height: Height of a frame in pixels.
        width: Width of a frame in pixels.
        camera: Index or name of a camera of the model; -1, or 0 where the model has none, is MuJoCo's free camera.
        shadows: Whether lights cast shadows, which takes several times as long on a CPU.
        antialias: Whether edges are smoothed by 4 samples per pixel.
        hidden_geoms: Names of geoms that are not drawn.
        reflections: Whether polished floors mirror what stands on them, which takes twice as long.

    Raises:
        ValueError: If the size is not positive or there is no such camera or geom.
    """

    _canvas: Canvas | None
    _finalizer: weakref.finalize
    _scratch: mujoco.MjData | None

    def __init__(
        self,
        model: mujoco.MjModel,
        *,
        height: int = 64,
        width: int = 64,
        camera: int | str = 0,
        shadows: bool = False,
        antialias: bool = True,
        hidden_geoms: Sequence[str] = (),
        reflections: bool = False,
    ) -> None:
        if height < 1 or width < 1:
            raise ValueError(f"frames of {height}x{width} pixels: height and width have to be at least 1")
        self.model, self.height, self.width = model, height, width
        self._camera_id = _camera_id(model, camera)
        self._hidden = _geom_ids(model, hidden_geoms)
        self._shadows, self._antialias, self._reflections = shadows, antialias, reflections
        self._make_scene()

    def render(self, data: mujoco.MjData) -> np.ndarray:
        """The frame (height, width, 3) uint8 RGB, top row first, of a simulator state whose forward pass is done.

        Raises:
            FrameError: If OpenGL does not work or the frame is blank.
            ValueError: If the data are another model's.
        """
        self._check_data(data)
        frames = gl.call(self._draw, 1, lambda _: data)
        self._refuse_blank(frames)
        return frames[0]

    def render_poses(self, qpos: np.ndarray, base: mujoco.MjData | None = None) -> np.ndarray:
        """Frames of many poses.

        Args:
            qpos: (B, nq) positions in rad and m.
            base: Whatever is no position (mocap bodies, ...); not changed. The model's initial state where None.

        Returns:
            (B, height, width, 3) uint8 RGB, top row first.

        Raises:
            FrameError: If OpenGL does not work, a frame is blank, or poses that differ visibly all look the same.
            ValueError: If the shape is wrong, a number is not finite, or the data are another model's.
        """
        qpos = np.asarray(qpos, dtype=np.float64)
        if qpos.ndim != 2 or qpos.shape[1] != self.model.nq:
            raise ValueError(f"poses have shape {qpos.shape}: this model takes (B, {self.model.nq})")
        if not np.isfinite(qpos).all():
            raise ValueError(f"pose {int(np.argmin(np.isfinite(qpos).all(axis=1)))} is not all finite")
        if base is not None:
            self._check_data(base)
        frames = np.empty((len(qpos), self.height, self.width, 3), np.uint8)
        batch = capacity(self.height, self.width)
        for start in range(0, len(qpos), batch):
            part = slice(start, start + batch)
            frames[part] = gl.call(self._draw_poses, qpos[part], base)
            self._refuse_blank(frames[part])
        if len(frames) > 1 and all(np.array_equal(frame, frames[0]) for frame in frames[1:]):
            gl.call(self._refuse_frozen, qpos, base)
        return frames

    @property
    def gl_renderer(self) -> str:
        """Name of the GL renderer in use, as the driver gives it."""
        return gl.call(lambda: self._context().renderer)

    def close(self) -> None:
        """Frees the GL context; more than once does no harm, and the next frame makes a new one."""
        if self._canvas is not None:
            self._finalizer.detach()
            gl.call(self._canvas.free)
            self._canvas = None

    def __enter__(self) -> "FrameRenderer":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __getstate__(self) -> dict[str, Any]:
        made_anew = ("_canvas", "_finalizer", "_scene", "_option", "_camera", "_scratch")
        return {name: value for name, value in vars(self).items() if name not in made_anew}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._make_scene()

    def _make_scene(self) -> None:
        self._canvas = None
        self._scratch = None
        self._scene = mujoco.MjvScene(self.model, maxgeom=10_000)
        self._option = mujoco.MjvOption()
        self._option.flags[mujoco.mjtVisFlag.mjVIS_RANGEFINDER] = False  # as dm_control does
        self._camera = mujoco.MjvCamera()
        if self._camera_id == -1:
            mujoco.mjv_defaultFreeCamera(self.model, self._camera)
        else:
            self._camera.type = mujoco.mjtCamera.mjCAMERA_FIXED
            self._camera.fixedcamid = self._camera_id
        self._scene.flags[mujoco.mjtRndFlag.mjRND_SHADOW] = self._shadows
        self._scene.flags[mujoco.mjtRndFlag.mjRND_REFLECTION] = self._reflections
        self._scene.flags[SKYBOX] = not has_sky(self.model)  # it is left out until it shows

    def _context(self) -> Canvas:
        canvas = self._canvas
        if canvas is None:
            self._canvas = canvas = Canvas(self.model, self.height, self.width, self._antialias, self._shadows)
            # Whichever thread the garbage collector runs on, the GL thread frees; at exit the canvas sees to it itself.
            self._finalizer = weakref.finalize(self, gl.post, canvas.free)
            self._finalizer.atexit = False
        return canvas

    def _draw(self, count: int, pose: Callable[[int], mujoco.MjData]) -> np.ndarray:
        canvas = self._context()
        for index in range(count):
            self._update_scene(pose(index))
            canvas.draw(self._scene, index)
        if not self._scene.flags[SKYBOX] and canvas.lacks_sky(count):
            self._scene.flags[SKYBOX] = True  # and from now on: what has shown once may show again
            return self._draw(count, pose)
        return canvas.read(count)

    def _update_scene(self, data: mujoco.MjData) -> None:
        everything = mujoco.mjtCatBit.mjCAT_ALL
        mujoco.mjv_updateScene(self.model, data, self._option, None, self._camera, everything, self._scene)
        if self._hidden:
            for geom in self._scene.geoms[: self._scene.ngeom]:
                if geom.objtype == _GEOM and geom.objid in self._hidden:
                    geom.rgba[3] = 0

    def _draw_poses(self, qpos: np.ndarray, base: mujoco.MjData | None) -> np.ndarray:
        data = self._start_from(base)
        return self._draw(len(qpos), lambda index: self._pose(data, qpos[index]))

    def _start_from(self, base: mujoco.MjData | None) -> mujoco.MjData:
        if self._scratch is None:
            self._scratch = mujoco.MjData(self.model)
        if base is None:
            mujoco.mj_resetData(self.model, self._scratch)
        else:
            mujoco.mj_copyData(self._scratch, self.model, base)
        return self._scratch

    def _pose(self, data: mujoco.MjData, qpos: np.ndarray) -> mujoco.MjData:
        """The part of the forward pass that a picture depends on."""
        data.qpos[:] = qpos
        mujoco.mj_normalizeQuat(self.model, data.qpos)
        mujoco.mj_kinematics(self.model, data)
        mujoco.mj_comPos(self.model, data)  # cameras and lights that follow a centre of mass
        mujoco.mj_camlight(self.model, data)
        mujoco.mj_flex(self.model, data)
        mujoco.mj_tendon(self.model, data)
        return data

    def _check_data(self, data: mujoco.MjData) -> None:
        model = self.model
        if (data.qpos.size, len(data.xpos), len(data.geom_xpos)) != (model.nq, model.nbody, model.ngeom):
            raise ValueError("the simulator data belong to another model than this renderer's")

    def _refuse_blank(self, frames: np.ndarray) -> None:
        channels = frames.reshape(len(frames), -1)
        blank = (channels[:, 3:] == channels[:, :-3]).all(axis=1)  # every pixel is as the one before
        if self.height * self.width > 1 and blank.any():
            raise FrameError(
                f"frame {int(blank.argmax())} is blank, all pixels are {channels[blank.argmax(), :3].tolist()}: "
                f"camera {self._camera_id} sees nothing, or the OpenGL context was lost"
            )

    def _refuse_frozen(self, qpos: np.ndarray, base: mujoco.MjData | None) -> None:
        """Raises FrameError if a geom in the picture moved by some pixels from one pose to another."""
        places = []
        for pose in qpos:
            self._update_scene(self._pose(self._start_from(base), pose))
            places.append(self._places())
        spread = np.ptp(places, axis=0)
        if np.nanmax(spread, initial=0.0) > _STILL:
            raise FrameError(
                f"{len(qpos)} different poses gave one and the same frame: drawing is frozen, or whatever moves is "
                f"hidden from camera {self._camera_id}"
            )

    def _places(self) -> np.ndarray:
        """Pixel that each geom's centre falls on (ngeom, 2), NaN for what is transparent or outside of the frame."""
        camera = self._scene.camera[0]
        geoms = [geom for geom in self._scene.geoms[: self._scene.ngeom] if geom.objtype == _GEOM]
        offset = np.array([geom.pos for geom in geoms]).reshape(-1, 3) - camera.pos
        depth = offset @ camera.forward
        with np.errstate(divide="ignore", invalid="ignore"):
            scale = 1.0 if camera.orthographic else camera.frustum_near / depth
        axes = np.stack([np.cross(camera.forward, camera.up), camera.up], axis=1)
        half_height = (camera.frustum_top - camera.frustum_bottom) / 2
        places = offset @ axes * np.reshape(scale, (-1, 1)) / half_height * (self.height / 2)
        seen = (depth > 0) & (np.abs(places) < [self.width / 2, self.height / 2]).all(axis=1)
        seen &= [geom.rgba[3] > 0 for geom in geoms]
        return np.where(seen[:, None], places, np.nan)


def _camera_id(model: mujoco.MjModel, camera: int | str) -> int:
    names = [model.camera(index).name for index in range(model.ncam)]
    if isinstance(camera, str):
        if camera not in names:
            raise ValueError(f"the model has no camera {camera!r}: {', '.join(names) or 'it has none at all'}")
        return names.index(camera)
    if camera == 0 and model.ncam == 0:
        return -1
    if not -1 <= camera < model.ncam:
        raise ValueError(
            f"the model has no camera {camera}: they go from 0 to {model.ncam - 1}, and -1 is the free one"
        )
    return int(camera)


def _geom_ids(model: mujoco.MjModel, names: Sequence[str]) -> frozenset[int]:
    if isinstance(names, str):
        raise ValueError(f"hidden_geoms is the text {names!r}: it takes several names, ({names!r},)")
    every = {model.geom(index).name: index for index in range(model.ngeom)}
    unknown = [name for name in names if name not in every]
    if unknown:
        raise ValueError(f"the model has no geom {unknown[0]!r}: {', '.join(name for name in every if name)}")
    return frozenset(every[name] for name in names)
