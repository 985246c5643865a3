"""The order in which native libraries are loaded, settled before anything of this package draws or computes.

The standard torch wheel for Linux brings triton, whose library carries an LLVM of its own; Mesa's software OpenGL loads
another one, for everybody to see, and so does TensorFlow. If triton comes second, its symbols bind to theirs, and the
process dies in the dynamic loader. torch imports triton late and unasked: when an optimiser is made, or when it looks
for a compiler. (TensorFlow and Mesa's software OpenGL end each other in the same way, whether this package is there or
not: keep them in processes of their own; tests/test_neighbours.py has the table. Where TensorFlow is only installed it
stays out: TensorBoard, which stable-baselines3 brings, would import it unasked.)
"""

import ctypes
import os
import re
import sys
import warnings
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

_LLVM_OF_OTHERS = re.compile(
    r"/(libLLVM[^/]*|[^/]*_dri\.so|libgallium[^/]*|libOSMesa[^/]*|libtensorflow[^/]*)$", re.MULTILINE
)


def settle() -> None:
    """Load triton's library before such a one, or, where that came first, so that it sees its own symbols first.

    Does nothing where triton is not installed or loaded already. The package itself is not imported: loading takes
    20 to 80 ms, and 2 MB of memory that no other process shares. Where another came first and the memory allocator is
    one of the user's own (``LD_PRELOAD``), triton could not share it: torch is then told that there is no triton, so
    that nothing is compiled, and one warning says why.
    """
    _spare_tensorflow()
    library, loaded = _triton_library(), _loaded_libraries()
    if library is None or f"{library}\n" in loaded:
        return
    too_late = _LLVM_OF_OTHERS.search(loaded)
    if too_late and os.environ.get("LD_PRELOAD"):
        sys.modules["triton"] = None  # type: ignore[assignment]  # what Python takes for "not to be had"
        warnings.warn(
            f"torch compiles nothing in this process: {too_late[1]} was loaded before triton, and with LD_PRELOAD set "
            "the two cannot be kept apart: import worldmodel before anything draws",
            stacklevel=3,
        )
        return
    with suppress(OSError):  # a damaged triton: torch finds out by itself, and does without
        ctypes.CDLL(str(library), mode=os.RTLD_NOW | (os.RTLD_DEEPBIND if too_late else 0))


def _spare_tensorflow() -> None:
    """Have TensorBoard do without TensorFlow, which it imports wherever that is installed, and SB3 imports TensorBoard.

    Its writer does not need it, and software OpenGL does not survive it. This name is how TensorBoard is told.
    """
    if "tensorflow" not in sys.modules:
        sys.modules.setdefault("tensorboard.compat.notf", ModuleType("tensorboard.compat.notf"))


def _triton_library() -> Path | None:
    if sys.platform != "linux" or "triton" in sys.modules:
        return None
    spec = find_spec("triton")
    folders = (spec and spec.submodule_search_locations) or []
    return next((found.resolve() for folder in folders for found in Path(folder).glob("_C/libtriton*.so")), None)


def _loaded_libraries() -> str:
    try:
        return Path("/proc/self/maps").read_text(errors="surrogateescape")
    except OSError:  # no /proc: then what was loaded before is not known, and taken for nothing
        return ""
