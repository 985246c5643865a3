"""Which OpenGL draws: chosen before anything imports mujoco, which reads `MUJOCO_GL` only once.

python -m worldmodel.envs.gl      checks that frames can be drawn, and says with what
"""

import ctypes
import os
import sys
import warnings

_LIBRARIES = {"egl": "libEGL.so.1", "osmesa": "libOSMesa.so.8"}
_INSTALL = "on Debian or Ubuntu: apt-get install libegl1 libgl1 libgl1-mesa-dri (or libosmesa6 and MUJOCO_GL=osmesa)"


def configure() -> str:
    """Choose `MUJOCO_GL` where nobody has: on Linux without a display EGL, else OSMesa; return the choice.

    What the user set is kept. Nothing is loaded for good and nothing fails here: without a driver the first frame does.
    """
    if "MUJOCO_GL" not in os.environ and sys.platform == "linux" and not os.environ.get("DISPLAY"):
        there = [name for name, library in _LIBRARIES.items() if _loads(library)]
        os.environ["MUJOCO_GL"] = there[0] if there else "egl"
    warnings.filterwarnings("ignore", message=".*DISPLAY environment variable is missing.*")  # glfw, where it is unused
    return os.environ.get("MUJOCO_GL", "the default")


def check() -> str:
    """Draw one frame and return what drew it.

    Raises:
        RuntimeError: Nothing can be drawn, or OpenCV does not load; the line says what to install.
    """
    backend = configure()
    try:
        import cv2  # noqa: F401
    except ImportError as error:
        raise RuntimeError(
            f"OpenCV does not load ({error}): apt-get install libgl1 libglib2.0-0, or pip install opencv-python-headless"
        ) from error
    try:
        import mujoco

        from worldmodel.envs.frames import FrameRenderer

        model = mujoco.MjModel.from_xml_string(
            "<mujoco><worldbody><light pos='0 0 3'/><geom type='sphere' size='.2'/></worldbody></mujoco>"
        )
        data = mujoco.MjData(model)
        mujoco.mj_forward(model, data)
        renderer = FrameRenderer(model)
        renderer.render(data)
        return f"OpenGL by MUJOCO_GL={backend}: {renderer.gl_renderer}"
    except Exception as error:
        raise RuntimeError(f"no OpenGL driver works with MUJOCO_GL={backend} ({error}); {_INSTALL}") from error


def _loads(library: str) -> bool:
    try:
        ctypes.CDLL(library)
    except OSError:
        return False
    return True


if __name__ == "__main__":
    try:
        print(check())
    except RuntimeError as error:
        sys.exit(f"worldmodel: {error}")
