"""The parts of the project, each tried alone in a process: ``python -m worldmodel.scripts.diagnosis.checks frame``.

Imports stand inside functions: a part whose libraries are broken fails alone.
"""

import importlib
import json
import os
import sys
import tempfile
from collections.abc import Callable

from worldmodel.scripts.diagnosis.advice import what_to_do

_LENGTH = 300  # characters of an error; numpy's own run to a page


def torch_here() -> str:
    """Say as JSON what torch is and sees."""
    torch = importlib.import_module("torch")
    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    properties = [torch.cuda.get_device_properties(number) for number in range(count)]
    gpus = [f"{one.name}, {one.total_memory / 2**30:.0f} GiB" for one in properties]
    return json.dumps({"cuda": torch.version.cuda, "threads": torch.get_num_threads(), "gpus": gpus})


def opencv() -> str:
    """Load OpenCV, which needs libGL, and say its version."""
    return importlib.import_module("cv2").__version__


def frame() -> str:
    """Draw a frame of Reacher, and say with what."""
    how = "set" if os.environ.get("MUJOCO_GL") else "chosen"
    from worldmodel import envs

    env = envs.make("reacher", render_mode="rgb_array")
    env.reset(seed=0)
    env.render()  # a blank one raises
    return f"{envs.suite_of(env).renderer.gl_renderer} (MUJOCO_GL={os.environ.get('MUJOCO_GL', 'unset')}, {how})"


def step() -> str:
    """Take a training step on freshly drawn frames."""
    import worldmodel as wm
    from worldmodel import agents

    with tempfile.TemporaryDirectory() as folder:
        episodes = agents.collect("reacher", agents.LatentOU(rho=0.9), frames=500, out=folder, progress=False)
        options = wm.TrainingOptions(steps=1, batch_size=32)
        encoder = wm.fit_encoder(episodes, 2, options=options, progress=False)
    return f"{sum(weight.numel() for weight in encoder.parameters())} weights, {len(episodes.frames)} frames"


def plan() -> str:
    """Plan to a goal in known linear dynamics by quadratic programming; the plan is that of Riccati."""
    import numpy as np

    from worldmodel.dynamics.linear import LinearGaussianDynamics
    from worldmodel.dynamics.states import StateLayout
    from worldmodel.planners import LQR, MPC, MPCOptions, QuadraticCost
    from worldmodel.planners.optimisers import QP, Bounds

    A, B = StateLayout(2, 1, 1).shift()
    A[:1, :2], B[:1] = [[1.9, -0.9]], 0.1
    model = LinearGaussianDynamics(A, B, np.zeros(len(A)), np.zeros((len(A), len(A))), 2, 1, 1)
    s, goal, cost = model.rest(np.zeros((1, 1))), np.ones((1, 1)), QuadraticCost()
    options = MPCOptions(horizon=8, hold="cost")
    by_qp = MPC(model, cost, Bounds.of([-9.0], [9.0]), QP(), options).plan(s, goal, executed=0)
    away = float(np.abs(by_qp - LQR(model, horizon=8, hold="cost").plan(s, goal)).max())
    if not away < 1e-6:
        raise RuntimeError(f"the plan is {away:.1e} away from the optimum")
    return f"8 steps, {away:.0e} away from the optimum"


def line_of(error: BaseException) -> str:
    """Put an error, and what to do about it where that is known, on one line."""
    line = " ".join(f"{type(error).__name__}: {error}".split())
    line = line if len(line) <= _LENGTH else f"{line[:_LENGTH]}..."
    advice = what_to_do(error)
    return f"{line}; {advice}" if advice else line


CHECKS: dict[str, Callable[[], str]] = {
    "torch": torch_here,
    "opencv": opencv,
    "frame": frame,
    "step": step,
    "plan": plan,
}

if __name__ == "__main__":
    try:
        print(CHECKS[sys.argv[1]]())
    except Exception as error:  # whatever it is, it is the line that doctor shows
        print(line_of(error), file=sys.stderr)
        sys.exit(1)
