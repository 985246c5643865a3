"""The encoder that an agent sees through."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from worldmodel.encoders.encoder import Encoder
from worldmodel.scripts.agent_training.options import TrainAgentOptions
from worldmodel.scripts.train_agent import main


def test_agents_on_the_state_and_through_a_given_encoder_are_compared(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Encoder(dim=2, frame_size=(32, 32), channels=(8, 8, 8, 8, 8), hidden=16).save_pretrained(tmp_path / "encoder")
    options = TrainAgentOptions(
        obs=("state", "embedding"),
        goal="beside",
        encoder=tmp_path / "encoder",
        jobs=2,
        steps=60,
        frame_skip=50,
        envs=2,
        episodes=1,
        test_episodes=2,
        device="cpu",
        out=tmp_path / "run",
    )
    main(options)
    agents = json.loads((tmp_path / "run" / "result.json").read_text())["agents"]
    assert list(agents) == ["state", "embedding"] and (tmp_path / "run" / "best-sac-embedding.zip").is_file()
    assert agents["state"]["at_equal_steps"]["steps"] == agents["embedding"]["at_equal_steps"]["steps"] == 60
    assert agents["state"]["random"] == agents["embedding"]["random"]  # the same episodes for both
    assert "after 60 steps: state" in capsys.readouterr().out
    with pytest.raises(ValueError, match="is not an encoder"):
        main(replace(options, encoder=tmp_path))
