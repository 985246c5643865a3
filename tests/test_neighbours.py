"""Libraries that carry an LLVM or an OpenMP of their own live in one process with ours, imported before and after.

``make neighbours`` installs those that the project does not need, in an environment of its own, and runs this.
"""

import os
import subprocess
import sys
from importlib.util import find_spec

import pytest

pytestmark = pytest.mark.slow

NEIGHBOURS = {
    "numba": "import numba; assert numba.njit(lambda x: x + 1)(1) == 2",
    "jax": "import jax; assert jax.jit(lambda x: x + 1)(1) == 2",
    "sklearn": "import numpy as np; from sklearn.cluster import KMeans; KMeans(2).fit(np.random.rand(3000, 4))",
    "cv2": "import cv2, numpy as np; assert cv2.resize(np.zeros((99, 99, 3), np.uint8), (9, 9)).shape == (9, 9, 3)",
    "av": "import av; av.codec.CodecContext.create('libx264', 'w')",
    "pygame": "import pygame; pygame.display.init(); pygame.display.set_mode((8, 8))",
}
TENSORFLOW = "import tensorflow as tf; assert tf.function(lambda x: x + 1, jit_compile=True)(tf.constant(1)) == 2"
DRAW = """
import worldmodel.envs
env = worldmodel.envs.make("reacher", render_mode="rgb_array")
env.reset(seed=0)
assert env.render().std() > 0
"""
LEARN = """
import worldmodel.encoders.training, torch, torch._dynamo
weight = torch.nn.Parameter(torch.ones(512, 512))
optimiser = torch.optim.AdamW([weight])
(weight @ weight).sum().backward()
optimiser.step()
assert torch.isfinite(weight).all()
"""
OURS = DRAW + LEARN + "assert env.render().std() > 0\n"


def ending(*parts: str) -> tuple[int, str]:
    environment = os.environ | {"SDL_VIDEODRIVER": "dummy", "TF_CPP_MIN_LOG_LEVEL": "3"}
    command = [sys.executable, "-X", "faulthandler", "-c", "\n".join(parts)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)
    return done.returncode, done.stderr


def need(name: str) -> None:
    if find_spec(name) is None:
        pytest.skip(f"{name} is not installed: make neighbours")


@pytest.mark.parametrize("order", ["before ours", "after ours"])
@pytest.mark.parametrize("name", NEIGHBOURS)
def test_it_lives_beside_ours(name: str, order: str) -> None:
    need(name)
    parts = [NEIGHBOURS[name], OURS] if order == "before ours" else [OURS, NEIGHBOURS[name]]
    assert ending(*parts)[0] == 0, ending(*parts)[1]


def test_all_of_them_live_together() -> None:
    there = [code for name, code in NEIGHBOURS.items() if find_spec(name) is not None]
    code, said = ending(*there, OURS, *there)
    assert code == 0, said


@pytest.mark.parametrize("parts", [(TENSORFLOW, LEARN), (LEARN, TENSORFLOW)], ids=["before ours", "after ours"])
def test_tensorflow_lives_beside_what_learns(parts: tuple[str, str]) -> None:
    need("tensorflow")
    code, said = ending(*parts)
    assert code == 0, said


@pytest.mark.parametrize("parts", [(TENSORFLOW, DRAW), (DRAW, TENSORFLOW)], ids=["before ours", "after ours"])
@pytest.mark.xfail(reason="TensorFlow and Mesa's software OpenGL end each other, with or without us", strict=False)
def test_tensorflow_lives_beside_what_draws(parts: tuple[str, str]) -> None:
    need("tensorflow")
    code, said = ending(*parts)
    assert code == 0, said


def test_tensorflow_that_is_only_installed_ends_nothing() -> None:
    need("tensorflow")
    code, said = ending(
        OURS, "import stable_baselines3, torch.utils.tensorboard, sys; assert 'tensorflow' not in sys.modules"
    )
    assert code == 0, said
