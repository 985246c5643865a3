"""Draw a frame, and say in one line what draws here, or what to install: ``python -m worldmodel.envs.check``."""

import os
import sys

from worldmodel.envs.gl import FrameError

_CV2_ADVICE = "on Debian: apt-get install libgl1 libglib2.0-0, or: pip install opencv-python-headless"


def main() -> int:
    """Print the line; return the exit status."""
    try:
        import cv2  # noqa: F401
    except ImportError as error:
        print(f"OpenCV does not load ({error}): {_CV2_ADVICE}", file=sys.stderr)
        return 1
    try:
        import mujoco

        from worldmodel.envs.frames import FrameRenderer

        ball = "<mujoco><worldbody><light pos='0 0 3'/><geom size='1'/></worldbody></mujoco>"
        model = mujoco.MjModel.from_xml_string(ball)
        data = mujoco.MjData(model)
        mujoco.mj_forward(model, data)
        renderer = FrameRenderer(model)
        renderer.render(data)
    except (ImportError, FrameError) as error:
        print(error, file=sys.stderr)
        return 1
    print(f"OpenGL draws with {renderer.gl_renderer} (MUJOCO_GL={os.environ.get('MUJOCO_GL', 'unset')}); OpenCV loads")
    return 0


if __name__ == "__main__":
    sys.exit(main())
