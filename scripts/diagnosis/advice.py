"""What to do about a library that does not load, or that crashes."""

import importlib.metadata
import os
import re
import sys
from importlib.util import find_spec
from traceback import walk_tb

from worldmodel.utils.endings import what_to_try

_GRAPHICS = ("libGL", "libEGL", "libOSMesa", "libOpenGL", "libgthread", "libglib")
_GRAPHICS_ADVICE = (
    "on Debian: apt-get install libegl1 libgl1 libgl1-mesa-dri libglib2.0-0; OpenCV alone: opencv-python-headless"
)
_DAMAGE = ("shared object", "undefined symbol", "binary incompatibility")  # as the loader and numpy put it


def what_to_do(error: BaseException) -> str:
    """Advise on an import that failed; empty where the error is another one, or says by itself what to install.

    >>> what_to_do(ModuleNotFoundError("No module named 'absent'", name="absent"))
    'pip install absent'
    """
    said = str(error)
    loading = isinstance(error, ImportError) or any(word in said for word in _DAMAGE)
    if not loading or "pip install" in said or "apt-get install" in said:
        return ""
    if any(library in said for library in _GRAPHICS):
        return _GRAPHICS_ADVICE
    if isinstance(error, ModuleNotFoundError) and error.name and "." not in error.name:
        return f"pip install {_to_install(error.name)}"
    package = _raised_in(error)
    # Without dependencies: what else is here stays as it is, and dm_control's labmaze is not had for every Python.
    return f"pip install --force-reinstall --no-deps {_to_install(package)}" if package else ""


def after_death(part: str, ending: str) -> str:
    """Advise on a part whose process died; ``worldmodel doctor``, which others are sent to, has said all it can.

    Args:
        part: of the checks.
        ending: as `how_it_ended` puts it.

    >>> after_death("plan", "SIGKILL")
    'memory has probably run out'
    """
    if "worldmodel doctor" not in what_to_try(ending):
        return what_to_try(ending).partition(":")[0]
    # stable-baselines3 imports it unasked, by way of torch's TensorBoard.
    if find_spec("tensorflow") is not None:
        return "TensorFlow is here, which ends a process that draws in software: try an environment without it"
    where = f"to see where: {os.path.basename(sys.executable)} -X faulthandler -m worldmodel.scripts.diagnosis.checks"
    other = "egl" if os.environ.get("MUJOCO_GL") == "osmesa" else "osmesa"
    draws = f"try MUJOCO_GL={other}, another driver; " if part in ("frame", "step") else ""
    return f"{draws}{where} {part}"


def _raised_in(error: BaseException) -> str:
    """Name the package, other than ours and Python's own, whose code ran last; empty where there is none."""
    names = (frame.f_globals.get("__name__", "").partition(".")[0] for frame, _ in walk_tb(error.__traceback__))
    others = [name for name in names if name and name not in {*sys.stdlib_module_names, "worldmodel", "__main__"}]
    return others[-1] if others else ""


def _to_install(package: str) -> str:
    """Return what to ask pip for to get a package, in the range that the project takes."""
    usual = {"cv2": "opencv-python", "sklearn": "scikit-learn", "OpenGL": "PyOpenGL"}
    name = importlib.metadata.packages_distributions().get(package, [usual.get(package, package)])[0]
    for requirement in importlib.metadata.requires("worldmodel") or []:
        wanted = requirement.partition(";")[0].strip()
        if re.split(r"[^\w.-]", wanted)[0].lower().replace("_", "-") == name.lower().replace("_", "-"):
            return f"'{wanted}'"
    return name
