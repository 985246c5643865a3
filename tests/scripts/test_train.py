"""The command line that trains, alone and as several processes."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from dots import store_dots
from interrupted import interrupted

from worldmodel.data.store import load_episodes
from worldmodel.encoders import training
from worldmodel.encoders.checkpoints import load_checkpoint
from worldmodel.encoders.encoder import Encoder
from worldmodel.encoders.training import TrainingOptions
from worldmodel.scripts.train import TrainOptions, main

# float32, and few steps of a small learning rate: Adam turns the rounding of a gradient near zero into a whole step
STEPS = TrainingOptions(steps=6, batch_size=33, lr=1e-5, channels=(8, 8, 8, 8, 8), checkpoint_seconds=0.0)
ARGUMENTS = "--training.steps 6 --training.batch-size 33 --training.lr 1e-5 --training.channels 8 8 8 8 8 "
ARGUMENTS += "--training.checkpoint-seconds 0 --device cpu"
PRECISE = """
import worldmodel.encoders.training
from worldmodel.scripts import cli, train
worldmodel.encoders.training.has_fast_bfloat16 = lambda device: False
cli.run(train.main, "train")
"""


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return store_dots(tmp_path_factory.mktemp("data") / "dots", shards=3).path


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_two_processes_resume_what_one_began_and_end_with_its_weights(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(training, "has_fast_bfloat16", lambda device: False)
    options = TrainOptions(data, training=STEPS, device="cpu", out=tmp_path / "alone")
    main(options)
    with pytest.raises(KeyboardInterrupt):
        main(replace(options, objective=interrupted(step=4), out=tmp_path / "two"))
    assert load_checkpoint(tmp_path / "two" / "checkpoint.pt")["step"] == 3
    (tmp_path / "precise.py").write_text(PRECISE)
    launch = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    command = [*launch, str(tmp_path / "precise.py"), "--data", str(data), "--out", str(tmp_path / "two")]
    done = subprocess.run([*command, *ARGUMENTS.split()], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("result.json") == 1  # one process speaks
    alone, two = (Encoder.load(tmp_path / name / "encoder").state_dict() for name in ("alone", "two"))
    torch.testing.assert_close(two, alone, rtol=1e-4, atol=2e-6)
    history, other = (json.loads((tmp_path / name / "history.json").read_text()) for name in ("two", "alone"))
    np.testing.assert_allclose(history["loss"], other["loss"], rtol=1e-4)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_data_that_is_larger_than_the_memory_streams(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main(TrainOptions(data, training=STEPS, device="cpu", out=tmp_path, memory=0.0004))
    assert "at most 0.0004 GB of 0.000461 GB are in memory at a time (--memory 0.0004)" in capsys.readouterr().out
    assert Encoder.load(tmp_path / "encoder").dim == len(load_episodes(data).card.latent_names)
