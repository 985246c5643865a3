import logging
import os
import subprocess
import sys
import threading

import pytest

from worldmodel.envs import gl

HEADLESS = {"MUJOCO_GL": None, "DISPLAY": None, "WAYLAND_DISPLAY": None, "PYOPENGL_PLATFORM": None}
CHOICE = "import os, worldmodel.envs; print(os.environ.get('MUJOCO_GL'))"
ONE_FRAME = "import worldmodel.envs as envs; env = envs.make('reacher', render_mode='rgb_array'); env.reset(seed=0)"

linux = pytest.mark.skipif(sys.platform != "linux", reason="MUJOCO_GL is chosen on Linux only")


def python(*arguments: str, **variables: str | None) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in ({**os.environ, **variables}).items() if value is not None}
    return subprocess.run([sys.executable, *arguments], env=environment, capture_output=True, text=True, timeout=120)


def without(*libraries: str) -> str:
    """Code after which shared libraries of these names do not load."""
    return f"""
import ctypes
class Loader(ctypes.CDLL):
    def __init__(self, name, *rest, **options):
        if name and any(library in name for library in {libraries!r}):
            raise OSError(name)
        super().__init__(name, *rest, **options)
ctypes.CDLL = Loader
"""


@linux
def test_egl_or_osmesa_is_chosen_where_there_is_no_display() -> None:
    done = python("-c", CHOICE, **HEADLESS)
    assert done.stdout.strip() in ("egl", "osmesa"), done.stderr


@linux
def test_what_the_user_set_is_kept() -> None:
    assert python("-c", CHOICE, **HEADLESS | {"MUJOCO_GL": "off"}).stdout.strip() == "off"


@linux
def test_a_display_is_left_to_mujoco() -> None:
    code = "import os, worldmodel.envs.gl as gl; os.environ.update(DISPLAY=':0'); del os.environ['MUJOCO_GL']; "
    code += "gl.configure(); print(os.environ.get('MUJOCO_GL'))"
    assert python("-c", code, **HEADLESS).stdout.strip() == "None"


@linux
def test_without_any_library_the_simulator_runs_and_a_frame_says_what_to_install() -> None:
    code = (
        without("EGL", "OSMesa") + ONE_FRAME + "; env.step(env.action_space.sample()); print('stepped'); env.render()"
    )
    done = python("-c", code, **HEADLESS)
    assert done.stdout.strip() == "stepped", done.stderr
    assert done.stderr.splitlines()[-1].startswith("worldmodel.envs.gl.FrameError: OpenGL does not work")
    assert "libegl1" in done.stderr.splitlines()[-1]


@linux
def test_a_library_that_the_user_set_and_that_does_not_load_is_one_line() -> None:
    done = python("-c", without("OSMesa") + "import worldmodel.envs", **HEADLESS | {"MUJOCO_GL": "osmesa"})
    assert "MUJOCO_GL=osmesa is set, but does not work here" in done.stderr.splitlines()[-1]


@linux
def test_mujoco_may_be_imported_first() -> None:
    done = python("-c", "import mujoco; " + ONE_FRAME + "; print(env.render().shape)", **HEADLESS)
    assert done.stdout.strip() == "(64, 64, 3)", done.stderr


def test_the_check_draws_and_says_with_what_in_one_line() -> None:
    done = python("-m", "worldmodel.envs.check")
    assert done.returncode == 0
    assert done.stdout.startswith("OpenGL draws with ") and len(done.stdout.splitlines()) == 1
    assert done.stderr == ""


def test_a_frame_leaves_the_terminal_clean() -> None:
    done = python("-c", ONE_FRAME.replace("reacher", "cheetah") + "; env.render()")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_other_warnings_of_the_libraries_beneath_are_heard(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, logger="absl"):
        logging.getLogger("absl").warning("compiler attribute 'settotalmass' is deprecated")
        logging.getLogger("absl").warning("unstable")
    assert [record.message for record in caplog.records] in ([], ["unstable"])  # [] where absl does not propagate


def test_renderer_name_is_the_drivers() -> None:
    assert len(gl.renderer_name()) > 3


def test_calls_run_on_one_thread_whoever_calls() -> None:
    threads = {gl.call(threading.get_ident)}
    others = [threading.Thread(target=lambda: threads.add(gl.call(threading.get_ident))) for _ in range(3)]
    for other in others:
        other.start()
    for other in others:
        other.join()
    assert len(threads) == 1 and threading.get_ident() not in threads
    assert gl.call(gl.call, threading.get_ident) in threads  # a call from the GL thread itself does not wait for itself


def test_an_error_on_the_gl_thread_reaches_the_caller() -> None:
    with pytest.raises(ZeroDivisionError):
        gl.call(lambda: 1 / 0)


@linux
def test_a_process_forked_after_drawing_is_told_to_spawn() -> None:
    code = (
        ONE_FRAME
        + """
env.render()
import os
if os.fork() == 0:
    try:
        env.render()
    except envs.FrameError as error:
        print(error, flush=True)
    os._exit(0)
os.wait()
"""
    )
    assert "multiprocessing.get_context('spawn')" in python("-c", code).stdout


@linux
def test_a_process_forked_before_drawing_draws() -> None:
    code = (
        ONE_FRAME
        + "\nimport os\nif os.fork() == 0:\n    print(env.render().shape, flush=True)\n    os._exit(0)\nos.wait()"
    )
    assert python("-c", code).stdout.strip() == "(64, 64, 3)"
