"""Agents trained by the command line."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from worldmodel.agents import Agent
from worldmodel.agents.curve import LearningCurve
from worldmodel.scripts.agent_training.options import TrainAgentOptions
from worldmodel.scripts.agent_training.report import Agents, Ends
from worldmodel.scripts.train_agent import main

SMALL = TrainAgentOptions(steps=120, frame_skip=20, envs=2, episodes=2, test_episodes=2, device="cpu")


def test_every_seed_is_trained_once_and_stands_in_the_result(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main(replace(SMALL, out=tmp_path))
    assert json.loads((tmp_path / "result.json").read_text())["unit"] == "episode"
    capsys.readouterr()
    main(replace(SMALL, out=tmp_path, seeds=2))
    assert capsys.readouterr().out.count("kept from an earlier run") == 1
    result = json.loads((tmp_path / "result.json").read_text())
    assert [row["seed"] for row in result["agents"]["state"]["seeds"]] == [0, 1] and result["unit"] == "seed"
    assert {"mean", "ci95"} == set(result["agents"]["state"]["best"]) == set(result["agents"]["state"]["random"])
    assert (tmp_path / "best-sac-state.zip").is_file() and (tmp_path / "learning.png").is_file()


@pytest.mark.parametrize(
    "bad, line",
    [
        (replace(SMALL, env="reachr"), "nearest: reacher"),
        (replace(SMALL, steps=10**12), "a replay buffer of 1000000000000 transitions takes"),
        (replace(SMALL, steps=10**8, obs=("features",)), "a replay buffer of 100000000 transitions takes 49"),
        (replace(SMALL, seeds=0), "seeds is 0"),
        (replace(SMALL, encoder=Path("runs")), "--encoder is for --obs embedding and features"),
    ],
    ids=["env", "memory", "memory of frames", "seeds", "encoder"],
)
def test_bad_input_is_one_line(bad: TrainAgentOptions, line: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=line):
        main(replace(bad, out=tmp_path))


def test_agents_are_compared_where_all_have_been() -> None:
    quick = LearningCurve(np.array([10, 20, 30]), np.array([1, 2, 3]), np.array([[1.0], [5.0], [3.0]]))
    slow = LearningCurve(np.array([10, 20]), np.array([4, 8]), np.array([[2.0], [6.0]]))
    agents: Agents = {
        obs: [Agent(c, *[np.zeros(1)] * 3, c.seconds[-1])] for obs, c in (("state", quick), ("pixels", slow))
    }
    assert Ends.of(agents) == Ends(steps=20, first=3, last=8)
