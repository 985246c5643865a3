"""A GL context to draw frames in, and the buffer that they are collected in. Used on the GL thread only (`gl.call`)."""

import atexit
import copy
import functools
import os

import mujoco
import numpy as np

from worldmodel.envs import gl
from worldmodel.envs.gl import FrameError
from worldmodel.envs.sky import SKYBOX, SkyWatch

_BUFFER_SIDE = 512  # pixels of the buffer that a batch is read back from; larger ones were no faster
_SAMPLES = 4  # per pixel, as the models of the suite ask for
_PIXELS_PER_FACET = 5  # what is round gets one facet around it per 5 pixels of the frame's height, and at least 12

_open: set["Canvas"] = set()


class Canvas:
    """One GL context: a multisampled corner to draw a frame in, and a buffer to collect frames in.

    Every frame is drawn in the same corner and copied to its place in the buffer by the driver. Drawn in place, the
    coordinates of a vertex are rounded differently from place to place, and with them an edge pixel in most frames; so
    a pose gives the same bytes alone and in a batch. It costs nothing that could be measured.

    Args:
        model: Model whose textures and meshes go to the driver.
        height: Height of a frame in pixels.
        width: Width of a frame in pixels.
        antialias: Whether to take 4 samples per pixel.
        shadows: Whether there has to be a shadow map.

    Raises:
        FrameError: If OpenGL does not work or its buffers cannot hold such a frame.
    """

    def __init__(self, model: mujoco.MjModel, height: int, width: int, antialias: bool, shadows: bool) -> None:
        self.height, self.width = height, width
        self.capacity = capacity(height, width)
        self._columns = max(1, _BUFFER_SIDE // width)
        self._context: mujoco.MjrContext | None = None
        self._glcontext = gl.make_context(width, height)  # held as long as the MjrContext, which draws nothing without
        _free_at_exit()
        _open.add(self)
        self.renderer = gl.driver_name()
        try:
            self._context = mujoco.MjrContext(
                _for_drawing(model, height, width, antialias, shadows), mujoco.mjtFontScale.mjFONTSCALE_50
            )
            self._make_buffer()
            self._sky = SkyWatch(model, width / height, self.capacity)
        except (mujoco.FatalError, gl.driver_error()) as error:
            self.free()
            raise FrameError(
                f"the OpenGL driver has no buffer for frames of {height}x{width} pixels: {error}"
            ) from error

    def draw(self, scene: mujoco.MjvScene, index: int) -> None:
        """Draws a scene as frame `index` (below `capacity`) of the buffer."""
        from OpenGL import GL

        height, width = self.height, self.width
        top, left = index // self._columns * height, index % self._columns * width
        self._glcontext.make_current()  # an object that was garbage-collected here may have put its own context
        mujoco.mjr_setBuffer(mujoco.mjtFramebuffer.mjFB_OFFSCREEN, self._context)
        mujoco.mjr_render(mujoco.MjrRect(0, 0, width, height), scene, self._context)
        if not scene.flags[SKYBOX]:
            self._sky.look(scene.camera[0], index)
        GL.glBindFramebuffer(GL.GL_DRAW_FRAMEBUFFER, self._buffer)
        place = (left, top, left + width, top + height)
        GL.glBlitFramebuffer(0, 0, width, height, *place, GL.GL_COLOR_BUFFER_BIT, GL.GL_NEAREST)

    def lacks_sky(self, count: int) -> bool:
        """Whether the first `count` frames, all drawn without the sky, might not be the same with it."""
        return self._sky.saw_some(count)

    def read(self, count: int) -> np.ndarray:
        """The first `count` frames of the buffer: (count, height, width, 3) uint8 RGB, top row first."""
        from OpenGL import GL

        rows = -(-count // self._columns)
        pixels = np.zeros((rows, self.height, self._columns, self.width, 3), np.uint8)
        self._glcontext.make_current()
        GL.glBindFramebuffer(GL.GL_READ_FRAMEBUFFER, self._buffer)
        GL.glPixelStorei(GL.GL_PACK_ALIGNMENT, 1)
        size = (self._columns * self.width, rows * self.height)
        GL.glReadPixels(0, 0, *size, GL.GL_RGB, GL.GL_UNSIGNED_BYTE, pixels)
        upright = pixels[:, ::-1].transpose(0, 2, 1, 3, 4)  # OpenGL has the bottom row first
        return upright.reshape(-1, self.height, self.width, 3)[:count]

    def free(self) -> None:
        """Gives everything back to the driver; more than once does no harm."""
        if self in _open:
            _open.remove(self)
            self._glcontext.make_current()
            if self._context is not None:
                self._context.free()
            self._glcontext.free()

    def _make_buffer(self) -> None:
        from OpenGL import GL

        self._buffer = GL.glGenFramebuffers(1)
        GL.glBindFramebuffer(GL.GL_FRAMEBUFFER, self._buffer)
        pixels = GL.glGenRenderbuffers(1)
        GL.glBindRenderbuffer(GL.GL_RENDERBUFFER, pixels)
        rows = self.capacity // self._columns
        GL.glRenderbufferStorage(GL.GL_RENDERBUFFER, GL.GL_RGBA8, self._columns * self.width, rows * self.height)
        GL.glFramebufferRenderbuffer(GL.GL_FRAMEBUFFER, GL.GL_COLOR_ATTACHMENT0, GL.GL_RENDERBUFFER, pixels)


def capacity(height: int, width: int) -> int:
    """How many frames one buffer holds."""
    return max(1, _BUFFER_SIDE // height) * max(1, _BUFFER_SIDE // width)


def _for_drawing(model: mujoco.MjModel, height: int, width: int, antialias: bool, shadows: bool) -> mujoco.MjModel:
    """A copy of the model with the sizes that an MjrContext is made with."""
    model = copy.copy(model)
    quality = model.vis.quality
    model.vis.global_.offheight, model.vis.global_.offwidth = height, width
    quality.offsamples = _SAMPLES if antialias else 0
    quality.shadowsize = quality.shadowsize if shadows else 0
    facets = max(12, height // _PIXELS_PER_FACET)
    quality.numslices = min(quality.numslices, facets)
    quality.numstacks = min(quality.numstacks, facets // 2)
    return model


@functools.cache
def _free_at_exit() -> None:
    """Registered once there is a context, and so run before EGL is shut down, which mujoco registers with its first."""
    process = os.getpid()

    def free() -> None:
        if os.getpid() == process:  # not in a fork, which has no GL thread
            gl.call(_free_all)  # on the GL thread: after whatever is still being drawn or freed there

    atexit.register(free)


def _free_all() -> None:
    for canvas in list(_open):
        canvas.free()
