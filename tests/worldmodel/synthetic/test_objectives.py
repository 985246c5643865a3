"""Objectives are chosen by a word on the command line."""

import pytest
import tyro

from worldmodel.encoders.objectives import InfoNCE, LeJEPA, VICReg, Whitening
from worldmodel.scripts.identify import Command
from worldmodel.scripts.laboratory.two_d import TwoD
from worldmodel.scripts.train import TrainOptions
from worldmodel.synthetic.objectives import synthetic_objective


@pytest.mark.parametrize(
    "words, expected",
    [
        ([], LeJEPA()),
        (["lejepa", "--objective.weight", "0.1"], LeJEPA(weight=0.1)),
        (["vicreg", "--objective.variance", "10"], VICReg(variance=10.0)),
        (["infonce"], InfoNCE()),
    ],
)
def test_training_from_pixels_takes_any_objective(words: list[str], expected: object) -> None:
    options = tyro.cli(TrainOptions, args=["--data", "data/reacher", "--training.steps", "3", *words])
    assert options.objective == expected and options.training.steps == 3


def test_slow_features_are_not_trained() -> None:
    assert synthetic_objective("slow-features", 0.9) is None and synthetic_objective("infonce", 0.9) == InfoNCE(1.0)


def test_little_whitening_is_for_encoders_that_cannot_shrink() -> None:
    assert synthetic_objective("whitening", 0.9, keeps_volumes=True) == Whitening(0.02)
    assert synthetic_objective("whitening", 0.9) == Whitening(0.5)


def test_experiments_take_their_options_from_the_command_line() -> None:
    words = ["two-d", "--mixings", "spiral", "banana", "--seeds", "2", "--training.steps", "7"]
    options = tyro.cli(Command, args=words)  # type: ignore[call-overload]
    assert isinstance(options, TwoD) and options.mixings == ("spiral", "banana")
    assert options.seeds == 2 and options.training.steps == 7
