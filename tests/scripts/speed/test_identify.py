"""The benchmark of training on synthetic worlds at its smallest, and that its two loops minimise the same."""

import json
from pathlib import Path

import pytest

from worldmodel.scripts.speed.identify import Identify, identify, our_loop, published_loop
from worldmodel.synthetic.worlds import World

TINY = Identify(latents=(2, 4), batch_size=16, steps=1, repeats=2)


def test_its_result_has_the_keys_that_readers_expect(tmp_path: Path) -> None:
    rates = identify(Identify(latents=(2, 4), batch_size=16, steps=1, repeats=2, out=tmp_path))
    result = json.loads((tmp_path / "result.json").read_text())
    assert [row["latents"] for row in result["steps_per_second"]] == [2, 4] == [rate.latents for rate in rates]
    assert all(len(rate.faster) == 2 and min(rate.ours) > 0 for rate in rates)


def test_both_loops_learn() -> None:
    world = World(2, "spiral")
    for loop in (our_loop(world, TINY), published_loop(world, TINY)):
        losses = [float(loop().detach()) for _ in range(30)]
        assert sum(losses[-5:]) < sum(losses[:5])


def test_options_that_measure_nothing_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="at least"):
        identify(Identify(repeats=1, out=tmp_path / "run"))
    assert not (tmp_path / "run").exists()
