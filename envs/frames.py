"""Frames: pictures of the simulator, many poses drawn into one off-screen buffer and read back at once.

Where the time of one 64×64 frame of Reacher goes on a CPU (Mesa llvmpipe, 2 cores, ms): dm_control's ``physics.render``
25, of which the shadow map takes 20; without shadows 4.8; without the mirror image in the floor, which draws every
geom twice, 2.4; with round things made of 16×8 facets instead of 28×16, which look the same at this size, 1.2; without
multisampling 0.5. Moving the bodies and the scene takes 0.06. Reading back once per batch and not per frame saves 0.5.
"""

import atexit
import math
import weakref
from collections.abc import Sequence
from typing import Any

import mujoco
import numpy as np

from worldmodel.envs import gl
from worldmodel.envs.gl import FrameError

__all__ = ["FrameError", "FrameRenderer"]

_BUFFER_SIDE = 1024  # pixels: larger buffers were no faster and take 40 MB
_PIXELS_PER_FACET = 4  # facets around a cylinder: height / 4, at least 16, at most what the model asks for
_GEOM = int(mujoco.mjtObj.mjOBJ_GEOM)
_STILL = 2.0  # pixels that something has to move before frames that are all alike are taken for frozen ones


class FrameRenderer:
    """Draws frames of one model, singly or many poses at a time.

    The picture is dm_control's ``physics.render`` without shadows and without mirror images in the floor. What changes
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
        batch = math.prod(self._grid)
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
            canvas, self._canvas = self._canvas, None
            canvas.close()

    def __enter__(self) -> "FrameRenderer":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __getstate__(self) -> dict[str, Any]:
        made_anew = ("_canvas", "_scene", "_option", "_camera", "_scratch")
        return {name: value for name, value in vars(self).items() if name not in made_anew}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._make_scene()

    def _make_scene(self) -> None:
        self._canvas: _Canvas | None = None
        self._scratch: mujoco.MjData | None = None
        self._scene = mujoco.MjvScene(self.model, maxgeom=10_000)
        self._option = mujoco.MjvOption()
        self._camera = mujoco.MjvCamera()
        if self._camera_id == -1:
            mujoco.mjv_defaultFreeCamera(self.model, self._camera)
        else:
            self._camera.type = mujoco.mjtCamera.mjCAMERA_FIXED
            self._camera.fixedcamid = self._camera_id
        self._scene.flags[mujoco.mjtRndFlag.mjRND_SHADOW] = self._shadows
        self._scene.flags[mujoco.mjtRndFlag.mjRND_REFLECTION] = self._reflections

    @property
    def _grid(self) -> tuple[int, int]:
        """Rows and columns of frames that the buffer may hold."""
        return max(1, _BUFFER_SIDE // self.height), max(1, _BUFFER_SIDE // self.width)
