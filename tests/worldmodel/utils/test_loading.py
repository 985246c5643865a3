"""Libraries with an LLVM of their own live in one process, whoever came first."""

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from worldmodel.envs import gl

DRAW = """
import mujoco
model = mujoco.MjModel.from_xml_string("<mujoco><worldbody><light pos='0 0 3'/><geom size='1'/></worldbody></mujoco>")
data = mujoco.MjData(model)
mujoco.mj_forward(model, data)
renderer = mujoco.Renderer(model, 64, 64)
renderer.update_scene(data)
assert renderer.render().std() > 0
renderer.close()
"""
TRITON = "import triton.language"
TORCH = "import torch; torch.optim.AdamW([torch.nn.Parameter(torch.ones(3))]); import torch._dynamo"
OURS = "import worldmodel"
FRAME = """
import worldmodel.envs
env = worldmodel.envs.make("reacher", render_mode="rgb_array")
env.reset(seed=0)
assert env.render().std() > 0
"""
GL = os.environ.get("MUJOCO_GL", "egl")
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="triton comes with torch on Linux only")
needs_triton = pytest.mark.skipif(find_spec("triton") is None, reason="this torch came without triton")


def run(*parts: str, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"MUJOCO_GL": GL if GL in ("egl", "osmesa") else "egl"} | variables
    command = [sys.executable, "-X", "faulthandler", "-W", "always", "-c", "\n".join(parts)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)


ORDERS = {
    "ours first": (FRAME, TRITON, TORCH),
    "drawn before": (DRAW, OURS, TRITON, TORCH, FRAME),
}
MORE_ORDERS = {
    "torch second": (FRAME, TORCH, TRITON),
    "torch first": (TORCH, DRAW, FRAME),
    "all before": ("import dm_control.suite, gymnasium, torch", DRAW, OURS, TORCH, FRAME),
    "without envs": (OURS, DRAW, TORCH, FRAME),
}


@needs_triton
@pytest.mark.parametrize(
    "parts",
    [
        *(pytest.param(parts, id=name) for name, parts in ORDERS.items()),
        *(pytest.param(parts, id=name, marks=pytest.mark.slow) for name, parts in MORE_ORDERS.items()),
    ],
)
def test_drawing_and_torch_live_together_in_any_order(parts: tuple[str, ...]) -> None:
    done = run(*parts)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr


@needs_triton
def test_with_an_allocator_of_the_users_own_compiling_stays_off_and_one_line_says_why() -> None:
    if "llvmpipe" not in gl.renderer_name():
        pytest.skip("no LLVM draws here")
    done = run(DRAW, OURS, TORCH, FRAME, "import sys; assert sys.modules['triton'] is None", LD_PRELOAD="libm.so.6")
    assert done.returncode == 0, done.stderr
    assert [line for line in done.stderr.splitlines() if "torch compiles nothing in this process: lib" in line], done


def fake_triton(folder: Path, content: bytes) -> str:
    package = folder / "triton" / "_C"
    package.mkdir(parents=True)
    (package.parent / "__init__.py").write_text("")
    (package / "libtriton.so").write_bytes(content)
    return str(folder)


def test_a_damaged_triton_is_left_to_torch(tmp_path: Path) -> None:
    done = run(OURS, "print('alive')", PYTHONPATH=fake_triton(tmp_path, b"not a library"))
    assert (done.stdout, done.stderr) == ("alive\n", "")


def test_triton_itself_is_not_imported() -> None:
    done = run(OURS, "import sys; print('triton' in sys.modules)")
    assert done.stdout == "False\n", done.stderr


@pytest.mark.skipif(find_spec("tensorboard") is None, reason="TensorBoard comes with the extra train")
def test_tensorflow_that_is_only_installed_stays_out(tmp_path: Path) -> None:
    package = tmp_path / "tensorflow"
    package.mkdir()
    (package / "__init__.py").write_text("raise SystemExit('TensorFlow was imported')")
    use = (
        "import stable_baselines3; from torch.utils.tensorboard import SummaryWriter; from tensorboard.compat import tf"
    )
    done = run(OURS, use, "tf.io.gfile.exists('.'); print('alive')", PYTHONPATH=str(tmp_path))
    assert done.stdout == "alive\n", done.stderr
