"""Whether the sky could be seen in a frame that was drawn without it. Used on the GL thread only (`gl.call`)."""

import math

import mujoco
import numpy as np

SKYBOX = mujoco.mjtRndFlag.mjRND_SKYBOX
"""Flag of a scene: whether the skybox is drawn, and the haze before it."""

_NEAREST = 0.35  # far planes to the skybox: MuJoCo draws it at 0.7, and a side of it may be half as far as its edges


def has_sky(model: mujoco.MjModel) -> bool:
    """Whether the model has a skybox."""
    return bool(np.any(model.tex_type == mujoco.mjtTexture.mjTEXTURE_SKYBOX))


class SkyWatch:
    """Finds out whether sky might show in frames that were drawn without it.

    MuJoCo draws the skybox behind all that is opaque, which is a third of the time of a small frame even where nothing
    of it shows. Here a rectangle goes over the finished frame, into no buffer, nearer than any of the skybox and its
    haze: if the depth test lets none of it pass, it would pass none of them, and the frame is the same without them.

    Args:
        model: Model that is drawn.
        aspect: Width of a frame by its height.
        count: Frames that are watched at a time.
    """

    def __init__(self, model: mujoco.MjModel, aspect: float, count: int) -> None:
        from OpenGL import GL

        self._haze, self._aspect = model.vis.map.haze, aspect
        self._queries = [int(query) for query in np.ravel(GL.glGenQueries(count))]
        self._rectangle = GL.glGenLists(1)
        GL.glNewList(self._rectangle, GL.GL_COMPILE)
        for matrix in (GL.GL_PROJECTION, GL.GL_MODELVIEW):
            GL.glMatrixMode(matrix)
            GL.glLoadIdentity()
        GL.glDisable(GL.GL_CULL_FACE)
        GL.glDepthMask(False)
        GL.glColorMask(False, False, False, False)
        GL.glRectf(-1, -1, 1, 1)
        GL.glColorMask(True, True, True, True)  # mjr_render sets all the rest anew
        GL.glEndList()

    def look(self, camera: mujoco.MjvGLCamera, index: int) -> None:
        """Looks at the frame that has just been drawn, as number `index`."""
        from OpenGL import GL

        depth = depth_before_sky(camera, self._aspect, self._haze)
        GL.glDepthRange(depth, depth)
        GL.glBeginQuery(GL.GL_SAMPLES_PASSED, self._queries[index])
        GL.glCallList(self._rectangle)
        GL.glEndQuery(GL.GL_SAMPLES_PASSED)

    def saw_some(self, count: int) -> bool:
        """Whether there might be sky in any of the first `count` frames."""
        from OpenGL import GL

        return any(GL.glGetQueryObjectuiv(query, GL.GL_QUERY_RESULT) for query in self._queries[:count])


def depth_before_sky(camera: mujoco.MjvGLCamera, aspect: float, haze: float) -> float:
    """Depth of a plane across the view before all sky, 1 at the near plane and 0 at the far one, as MuJoCo has it.

    Args:
        camera: Camera of the scene.
        aspect: Width of a frame by its height.
        haze: `model.vis.map.haze`, the part of the way to the skybox that haze comes nearer.
    """
    near, far = camera.frustum_near, camera.frustum_far
    top = max(abs(camera.frustum_top), abs(camera.frustum_bottom))
    half_width = camera.frustum_width or aspect * (camera.frustum_top - camera.frustum_bottom) / 2
    corner = near / math.hypot(near, top, abs(camera.frustum_center) + half_width)  # cosine of its angle to the middle
    distance = _NEAREST * far * (1 - haze) * corner
    if camera.orthographic or distance <= near:
        return 1.0
    return near * (far - distance) / (distance * (far - near))
