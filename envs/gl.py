"""Which OpenGL draws, and the one thread that it is called from.

mujoco and dm_control read ``MUJOCO_GL`` when they are first imported, so that `configure` has to come before either.
"""

import ctypes
import logging
import os
import queue
import sys
import threading
import warnings
from collections.abc import Callable
from concurrent.futures import Future
from importlib import import_module
from typing import Any, ParamSpec, TypeVar

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")

ADVICE = "install EGL or OSMesa, on Debian: apt-get install libegl1 libgl1 libgl1-mesa-dri, or libosmesa6 libgl1"
_OSMESA = ("libOSMesa.so.8", "libOSMesa.so.6", "libOSMesa.so")
_EGL_PLATFORM_DEVICE = 0x313F


class FrameError(RuntimeError):
    """No frame, or none that shows the scene."""


def configure() -> None:
    """Choose ``MUJOCO_GL`` before mujoco is imported: EGL on a Linux machine without display, else OSMesa.

    What the user set is kept. Where neither library works rendering is switched off: the simulator runs all the same,
    and the first frame raises a `FrameError` that says what to install. Messages of the libraries beneath that no user
    can act on are kept off the terminal.

    Raises:
        ImportError: If the user set a library that does not work; dm_control could not be imported either.
    """
    warnings.filterwarnings("ignore", message=".*The DISPLAY environment variable is missing")
    absl = logging.getLogger("absl")
    if _is_news not in absl.filters:
        absl.addFilter(_is_news)
    if sys.platform != "linux":
        return
    chosen = os.environ.get("MUJOCO_GL")
    if chosen in _WORKS and not _WORKS[chosen]():
        problem = f"MUJOCO_GL={chosen} is set, but does not work here: {ADVICE}"
        if sys.orig_argv[1:3] == ["-m", "worldmodel.envs.check"]:
            sys.exit(problem)  # the check says it in one line; anywhere else the place of the import matters too
        raise ImportError(problem)
    if not (chosen or os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
        os.environ["MUJOCO_GL"] = next((library for library, works in _WORKS.items() if works()), "off")


def call(function: Callable[Arguments, Result], *args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
    """Call a function on the process's GL thread, wait for it, and return or raise what it does.

    A GL context belongs to one thread, and a thread has one current context. With a thread of our own, renderers work
    from whichever thread they are used, and never change the context that dm_control believes to be current on its own.

    Raises:
        FrameError: If this process was forked from one that had drawn: the driver's own threads are not forked.
    """
    global _thread
    with _lock:
        if _thread is None:
            _thread = _Thread()
    return _thread.call(function, *args, **kwargs)


def post(function: Callable[[], object]) -> None:
    """Have a function called on the GL thread when it is free, without waiting; nothing is done after a fork."""
    if _thread is not None:
        _thread.post(function)


def renderer_name() -> str:
    """Name of the GL renderer in use, as the driver gives it.

    Raises:
        FrameError: If no GL context can be made.
    """
    return call(_renderer_name)


def make_context(width: int, height: int) -> Any:
    """A new GL context, current on the calling thread (which should be the GL thread).

    Raises:
        FrameError: If no GL context can be made; the line says what to install.
    """
    backend = os.environ.get("MUJOCO_GL", "unset")
    try:
        # mujoco.GLContext was chosen when mujoco was first imported, which may have been before `configure`.
        module = import_module(f"mujoco.{backend}" if backend in _WORKS else "mujoco")
        context = module.GLContext(width, height)
        context.make_current()
        driver_name()
    except Exception as error:  # each library has its own: ImportError, AttributeError, EGLError, GLFWError, ...
        reason = " ".join(str(error).split()) or type(error).__name__
        raise FrameError(f"OpenGL does not work (MUJOCO_GL is {backend}; {reason}): {ADVICE}") from error
    return context


class _Thread:
    def __init__(self) -> None:
        self._calls: queue.SimpleQueue[tuple[Future, Callable[[], object]]] = queue.SimpleQueue()
        self._process = os.getpid()
        self._thread = threading.Thread(target=self._serve, name="worldmodel-gl", daemon=True)
        self._thread.start()

    def call(self, function: Callable[Arguments, Result], *args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        if os.getpid() != self._process:
            raise FrameError(
                "this process was forked from one that had already drawn frames, and OpenGL does not survive a fork: "
                "start processes with multiprocessing.get_context('spawn')"
            )
        if threading.current_thread() is self._thread:
            return function(*args, **kwargs)
        future: Future[Result] = Future()
        self._calls.put((future, lambda: function(*args, **kwargs)))
        return future.result()

    def post(self, function: Callable[[], object]) -> None:
        if os.getpid() == self._process:
            self._calls.put((Future(), function))

    def _serve(self) -> None:
        while True:
            future, function = self._calls.get()
            try:
                future.set_result(function())
            except BaseException as error:  # the caller waits for it
                future.set_exception(error)
            del future, function  # a frame and its renderer should not live on until the next call


_thread: _Thread | None = None
_lock = threading.Lock()
os.register_at_fork(after_in_child=lambda: globals().update(_lock=threading.Lock()))


def _renderer_name() -> str:
    context = make_context(1, 1)
    try:
        return driver_name()
    finally:
        context.free()


def driver_name() -> str:
    """GL_RENDERER of the context that is current on the calling thread."""
    from OpenGL import GL

    name = GL.glGetString(GL.GL_RENDERER)
    if name is None:
        raise FrameError("no OpenGL context is current")
    return name.decode()


def driver_error() -> type[Exception]:
    """What PyOpenGL raises when the driver refuses a call."""
    from OpenGL import error

    return error.GLError


def _is_news(record: logging.LogRecord) -> bool:
    return "'settotalmass' is deprecated" not in str(record.msg)  # said of the suite's own models


def _loads(names: tuple[str, ...]) -> ctypes.CDLL | None:
    for name in names:
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    return None


def _egl_works() -> bool:
    """Whether EGL has a device without display to draw on: what both mujoco and dm_control ask of it."""
    egl = _loads(("libEGL.so.1", "libEGL.so"))
    if egl is None or _loads(("libOpenGL.so.0", "libGL.so.1", "libOpenGL.so", "libGL.so")) is None:
        return False
    pointer, integer = ctypes.c_void_p, ctypes.c_int
    address = ctypes.CFUNCTYPE(pointer, ctypes.c_char_p)(("eglGetProcAddress", egl))
    query, display_of = address(b"eglQueryDevicesEXT"), address(b"eglGetPlatformDisplayEXT")
    if not query or not display_of:
        return False
    devices, count = (pointer * 16)(), integer()
    query_devices = ctypes.CFUNCTYPE(integer, integer, pointer, pointer)(query)
    platform_display = ctypes.CFUNCTYPE(pointer, integer, pointer, pointer)(display_of)
    initialize = ctypes.CFUNCTYPE(integer, pointer, pointer, pointer)(("eglInitialize", egl))
    if not query_devices(16, devices, ctypes.byref(count)):
        return False
    displays = (platform_display(_EGL_PLATFORM_DEVICE, device, None) for device in devices[: count.value])
    return any(display and initialize(display, None, None) for display in displays)


_WORKS: dict[str, Callable[[], bool]] = {"egl": _egl_works, "osmesa": lambda: _loads(_OSMESA) is not None}
