"""Code that a result hangs on: what is reached counts, what is not does not."""

import sys
from pathlib import Path

import pytest

from worldmodel.agents import collect
from worldmodel.encoders.training import fit_encoder
from worldmodel.planners import evaluate, planner_policy
from worldmodel.report.figures import identifiability_scatter
from worldmodel.utils import fingerprint as fingerprints
from worldmodel.utils.fingerprint import code_of, fingerprint


def test_a_training_hangs_on_its_objective_and_on_no_figure() -> None:
    reached = fingerprint([fit_encoder])
    assert {"worldmodel.encoders.sigreg", "worldmodel.encoders.objectives", "worldmodel.data.pairs"} <= set(reached)
    assert not {name for name in reached if name.startswith(("worldmodel.report", "worldmodel.envs"))}
    assert "worldmodel.report.figures" in fingerprint([identifiability_scatter])


def test_collection_hangs_on_the_renderer_and_on_no_training() -> None:
    reached = fingerprint([collect])
    assert {"worldmodel.envs.frames", "worldmodel.agents.ou"} <= set(reached)
    assert not {name for name in reached if name.startswith(("worldmodel.encoders", "worldmodel.planners"))}


def test_a_package_that_loads_late_is_seen_through() -> None:
    assert {"worldmodel.planners.optimisers.qp", "worldmodel.planners.lqr"} <= set(fingerprint([evaluate]))
    assert fingerprint([planner_policy]).items() <= fingerprint([evaluate]).items()


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file that is taken for a module of the project."""
    file = tmp_path / "made_up.py"
    monkeypatch.setattr(fingerprints, "_file", lambda name: file)
    return file


def digest(file: Path, code: str) -> str:
    fingerprints._read.cache_clear()
    file.write_text(code)
    return fingerprints._read("worldmodel.made_up")[0]


def test_comments_docstrings_and_imports_for_types_do_not_count(module: Path) -> None:
    code = "def f(x):\n    return x + 1\n"
    types = "if TYPE_CHECKING:\n    import torch\n"
    same = f'"""What it is."""\n{types}\ndef f(x):\n    """Add."""\n    return x + 1  # one\n'
    assert digest(module, code) == digest(module, same)
    assert digest(module, code) != digest(module, code.replace("1", "2"))


def scaled(by: float):  # type: ignore[no-untyped-def]
    return lambda x: by * x


class Own:
    def __call__(self, x: float) -> float:
        return x + 1


class Other:
    def __call__(self, x: float) -> float:
        return x + 2


def test_a_closure_with_another_constant_is_another_function() -> None:
    assert code_of(scaled(2)) == code_of(scaled(2)) != code_of(scaled(3))


def test_objects_of_other_code_or_other_values_differ() -> None:
    one, same, changed = Own(), Own(), Own()
    vars(changed)["weight"] = 3
    assert code_of(one) == code_of(same) not in (code_of(changed), code_of(Other()))
    assert sys.modules[__name__].Own is Own
