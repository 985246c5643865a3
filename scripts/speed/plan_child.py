"""The baseline of `bench.py plan`, run by the Python of its own environment: stable-worldmodel's CEM solver.

Reads a line of JSON with the problem, then one for each run to be timed, and answers each with a line of JSON.
"""

import contextlib
import importlib.util
import io
import json
import sys
import time
from importlib.metadata import version
from types import ModuleType, SimpleNamespace
from typing import Any

import torch
from gymnasium.spaces import Box


class LinearCost:
    """What the solver takes for a world model: squared distances to the goal plus weighted squared actions."""

    def __init__(self, problem: dict[str, Any]) -> None:
        self.A, self.B = (torch.tensor(problem[name]).T.contiguous() for name in "AB")
        self.action_weight = problem["action_weight"]

    def get_cost(self, info: dict[str, torch.Tensor], actions: torch.Tensor) -> torch.Tensor:
        """Return costs (E, N) of actions (E, N, H, a)."""
        actions = actions.clamp(-1.0, 1.0)  # the solver knows no bounds
        away = self.states(info["s"], actions) - info["goal"]
        return away.square().sum((0, -1)) + self.action_weight * actions.square().sum((-2, -1))

    def states(self, s: torch.Tensor, actions: torch.Tensor) -> torch.Tensor:
        """Return the states (H, E, N, S) after each action, rolled out as one would write it."""
        states = []
        for a in actions.unbind(2):
            s = s @ self.A + a @ self.B
            states.append(s)
        return torch.stack(states)


class TunedLinearCost(LinearCost):
    """The same, rolled out in the fastest of the ways that were tried: each step over what the actions do in it."""

    def states(self, s: torch.Tensor, actions: torch.Tensor) -> torch.Tensor:
        """Return the states (H, E, N, S) after each action."""
        E, N, H, a = actions.shape
        states = actions.movedim(2, 0).reshape(H, E * N, a) @ self.B
        s = s.reshape(E * N, -1)
        for step in states:
            s = step.addmm_(s, self.A)
        return states.view(H, E, N, -1)


def cem_solver() -> Any:
    """Import the solver alone: the package's own ``__init__`` asks for torchvision, pyarrow and more."""
    spec = importlib.util.find_spec("stable_worldmodel")
    if spec is None or spec.submodule_search_locations is None:
        raise ModuleNotFoundError("stable_worldmodel is not installed here")
    package = ModuleType("stable_worldmodel")
    package.__path__ = list(spec.submodule_search_locations)
    sys.modules["stable_worldmodel"] = package
    return importlib.import_module("stable_worldmodel.solver.cem").CEMSolver


def timed(solver: Any, problem: dict[str, Any], environments: int) -> dict[str, Any]:
    """Plan for the first so many environments; return the seconds it took, and the plans (E, H, a)."""
    info = {name: torch.tensor(problem[name][:environments]) for name in ("s", "goal")}
    space = Box(-1.0, 1.0, (environments, len(problem["B"][0])))
    config = SimpleNamespace(horizon=problem["horizon"], action_block=1)
    solver.configure(action_space=space, n_envs=environments, config=config)
    with contextlib.redirect_stdout(io.StringIO()):  # it prints its own time
        start = time.perf_counter()
        plans = solver.solve(info)["actions"]
        seconds = time.perf_counter() - start
    return {"seconds": seconds, "plans": plans.clamp(-1.0, 1.0).tolist()}


def main() -> None:
    """Answer every line of the standard input."""
    CEMSolver = cem_solver()
    problem = json.loads(sys.stdin.readline())
    solvers = {
        False: CEMSolver(LinearCost(problem), **problem["search"]),
        True: CEMSolver(TunedLinearCost(problem), **problem["search"]),
    }
    print(json.dumps({"version": version("stable-worldmodel"), "batch": solvers[False].batch_size}), flush=True)
    for line in sys.stdin:
        wanted = json.loads(line)
        torch.set_num_threads(wanted["threads"])
        solver = solvers[wanted["tuned"]]
        solver.batch_size = wanted["batch"]
        print(json.dumps(timed(solver, problem, wanted["environments"])), flush=True)


if __name__ == "__main__":
    main()
