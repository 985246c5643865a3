"""Frames: many poses drawn in one pass into one off-screen buffer, read back once.

On a CPU nearly all of the cost of a small frame is the shadow map and the read-back of each single frame. Here shadows
are off (they carry nothing that a task needs), up to 64 frames share one buffer and one read-back, and only what a
picture needs of the forward pass is computed (`scripts/bench.py render` measures what this gives).
"""

import copy
import threading
from typing import Any

import mujoco
import numpy as np

_ATLAS = 512  # pixels: largest side of the shared buffer, unless one frame is larger
_SAMPLES = 4  # multisampling; without it a thin limb is a staircase of single pixels
_MAX_GEOMS = 2_000
_VISIBLE = 0.1  # rad or m: poses this far apart look different


class FrameError(RuntimeError):
    """The graphics driver returned pictures that cannot be true."""


class FrameRenderer:
    """Draws a model's poses.

    A context belongs to one thread, so each thread that draws gets its own, made on first use; so does each process
    that receives a pickled renderer.

    >>> import mujoco
    >>> model = mujoco.MjModel.from_xml_string(
    ...     "<mujoco><worldbody><light pos='0 0 3'/><body><joint axis='0 1 0'/><geom size='.1 .3' type='capsule'/></body>"
    ...     "</worldbody></mujoco>")
    >>> FrameRenderer(model).render_poses(np.array([[0.0], [1.0]])).shape
    (2, 64, 64, 3)

    Args:
        model: The compiled model. Changes to it show in the next frame.
        height: Height of a frame in pixels.
        width: Width of a frame in pixels.
        camera: Index or name of the camera; a model without cameras is seen by the free one.
        shadows: Whether to draw shadows.
        antialias: Whether to smooth edges.
    """

    def __init__(
        self,
        model: mujoco.MjModel,
        *,
        height: int = 64,
        width: int = 64,
        camera: int | str = 0,
        shadows: bool = False,
        antialias: bool = True,
    ) -> None:
        self.model = model
        self.height, self.width = height, width
        self._shadows, self._antialias = shadows, antialias
        self._camera = _camera(model, camera)
        self._option = mujoco.MjvOption()
        self._local = threading.local()

    def render(self, data: mujoco.MjData) -> np.ndarray:
        """Draw the state of ``data``, whose forward pass is done: (height, width, 3) uint8, RGB.

        Raises:
            FrameError: The picture is blank.
        """
        canvas = self._canvas()
        canvas.draw(self.model, data, self._camera, self._option, place=0)
        frames = canvas.read(1)
        _refuse_blank(frames)
        return frames[0]

    def render_poses(self, qpos: np.ndarray, base: mujoco.MjData | None = None) -> np.ndarray:
        """Draw many poses.

        Args:
            qpos: (B, nq) generalised positions, rad or m.
            base: What else a picture depends on (bodies moved by mocap); left as it is.

        Returns:
            (B, height, width, 3) uint8, RGB.

        Raises:
            ValueError: The positions have the wrong shape or are not finite.
            FrameError: A picture is blank, or poses that differ come back as one and the same picture.
        """
        qpos = np.asarray(qpos, np.float64)
        if qpos.ndim != 2 or qpos.shape[1] != self.model.nq:
            raise ValueError(f"poses have shape {qpos.shape}: this model takes (B, {self.model.nq})")
        if not np.isfinite(qpos).all():
            raise ValueError("poses are not all finite")
        canvas = self._canvas()
        data = canvas.data
        mujoco.mj_copyData(data, self.model, base) if base is not None else mujoco.mj_resetData(self.model, data)
        frames = np.empty((len(qpos), self.height, self.width, 3), np.uint8)
        for first in range(0, len(qpos), canvas.places):
            chunk = qpos[first : first + canvas.places]
            for place, pose in enumerate(chunk):
                data.qpos[:] = pose
                _place_bodies(self.model, data)
                canvas.draw(self.model, data, self._camera, self._option, place)
            frames[first : first + len(chunk)] = canvas.read(len(chunk))
        _refuse_blank(frames)
        _refuse_frozen(frames, qpos)
        return frames

    @property
    def gl_renderer(self) -> str:
        """The graphics driver in use."""
        from OpenGL import GL

        self._canvas().gl.make_current()
        return str(GL.glGetString(GL.GL_RENDERER).decode())

    def close(self) -> None:
        """Free this thread's context; more than once does no harm."""
        canvas = self._local.__dict__.pop("canvas", None)
        if canvas is not None:
            canvas.free()

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name not in ("_local", "_option")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, _local=threading.local(), _option=mujoco.MjvOption())

    def _canvas(self) -> "_Canvas":
        if not hasattr(self._local, "canvas"):
            self._local.canvas = _Canvas(self.model, self.height, self.width, self._shadows, self._antialias)
        return self._local.canvas


class _Canvas:
    """One thread's context, scene and off-screen buffer, held together: a context that is collected draws nothing."""

    def __init__(self, model: mujoco.MjModel, height: int, width: int, shadows: bool, antialias: bool) -> None:
        self.height, self.width = height, width
        self.columns, self.rows = max(1, _ATLAS // width), max(1, _ATLAS // height)
        self.places = self.columns * self.rows
        sized = copy.copy(model)  # the context takes the buffer's size from the model: leave the caller's alone
        sized.vis.global_.offwidth, sized.vis.global_.offheight = self.columns * width, self.rows * height
        sized.vis.quality.offsamples = _SAMPLES if antialias else 0
        self.gl = mujoco.GLContext(self.columns * width, self.rows * height)
        self.gl.make_current()
        self.mjr = mujoco.MjrContext(sized, mujoco.mjtFontScale.mjFONTSCALE_100)
        mujoco.mjr_setBuffer(mujoco.mjtFramebuffer.mjFB_OFFSCREEN, self.mjr)
        self.scene = mujoco.MjvScene(model, maxgeom=_MAX_GEOMS)
        self.scene.flags[mujoco.mjtRndFlag.mjRND_SHADOW] = shadows
        self.data = mujoco.MjData(model)

    def draw(
        self,
        model: mujoco.MjModel,
        data: mujoco.MjData,
        camera: mujoco.MjvCamera,
        option: mujoco.MjvOption,
        place: int,
    ) -> None:
        """Draw one state into its place of the buffer."""
        if place == 0:
            self.gl.make_current()
        mujoco.mjv_updateScene(model, data, option, None, camera, mujoco.mjtCatBit.mjCAT_ALL, self.scene)
        row, column = divmod(place, self.columns)
        viewport = mujoco.MjrRect(column * self.width, row * self.height, self.width, self.height)
        mujoco.mjr_render(viewport, self.scene, self.mjr)

    def read(self, count: int) -> np.ndarray:
        """Read the first ``count`` places back: (count, height, width, 3) uint8, top row first."""
        rows = -(-count // self.columns)
        columns = min(count, self.columns)
        buffer = np.empty((rows * self.height, columns * self.width, 3), np.uint8)
        mujoco.mjr_readPixels(buffer, None, mujoco.MjrRect(0, 0, columns * self.width, rows * self.height), self.mjr)
        grid = buffer.reshape(rows, self.height, columns, self.width, 3)[:, ::-1]
        return grid.swapaxes(1, 2).reshape(-1, self.height, self.width, 3)[:count]

    def free(self) -> None:
        """Free what the driver holds."""
        self.gl.make_current()
        self.mjr.free()
        self.gl.free()


def _place_bodies(model: mujoco.MjModel, data: mujoco.MjData) -> None:
    """Do the part of the forward pass that a picture needs, a hundredth of the cost of drawing it."""
    mujoco.mj_kinematics(model, data)
    mujoco.mj_comPos(model, data)  # cameras may follow a centre of mass
    mujoco.mj_camlight(model, data)
    if model.ntendon:
        mujoco.mj_tendon(model, data)
    if model.nflex:
        mujoco.mj_flex(model, data)


def _refuse_blank(frames: np.ndarray) -> None:
    flat = frames.reshape(len(frames), -1, 3)
    blank = (flat == flat[:, :1]).all((1, 2))
    if blank.any():
        raise FrameError(
            f"{int(blank.sum())} of {len(frames)} frames are blank: the OpenGL driver draws nothing, or the camera looks "
            "away; `python -m worldmodel.envs.gl` checks the driver"
        )


def _refuse_frozen(frames: np.ndarray, qpos: np.ndarray) -> None:
    if len(frames) > 1 and np.ptp(qpos, axis=0).max() > _VISIBLE and (frames == frames[:1]).all():
        raise FrameError(
            f"{len(frames)} poses that differ came back as one and the same frame: the OpenGL context is lost, or the "
            "camera cannot see what moves"
        )


def _camera(model: mujoco.MjModel, camera: int | str) -> mujoco.MjvCamera:
    view = mujoco.MjvCamera()
    if model.ncam == 0:
        mujoco.mjv_defaultFreeCamera(model, view)
        return view
    names = [model.camera(index).name for index in range(model.ncam)]
    if camera not in names and camera not in range(model.ncam):
        raise ValueError(f"no camera {camera!r}: take one of 0 to {model.ncam - 1} ({', '.join(names)})")
    view.type = mujoco.mjtCamera.mjCAMERA_FIXED
    view.fixedcamid = names.index(camera) if isinstance(camera, str) else camera
    return view
