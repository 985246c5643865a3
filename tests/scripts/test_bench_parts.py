"""The parts of the benchmark at their smallest, and that baselines compute what they are meant to."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from worldmodel.encoders.objectives import LeJEPA
from worldmodel.encoders.sigreg import random_slices, sigreg
from worldmodel.scripts.speed.all import PARTS, All, run_all
from worldmodel.scripts.speed.encode import Encode, encode, nature_cnn
from worldmodel.scripts.speed.growth import Growth, exponent, growth
from worldmodel.scripts.speed.reach import Reach, reach
from worldmodel.scripts.speed.sigreg import Sigreg, relative_errors, sigreg_times
from worldmodel.scripts.speed.train import OURS, Train, train
from worldmodel.scripts.speed.train_baseline import published_encoder, published_loss, published_step
from worldmodel.scripts.speed.turns import by_turns, times_faster, torch_threads


def result(folder: Path) -> dict[str, Any]:
    return json.loads((folder / "result.json").read_text())


def test_ratios_are_taken_within_a_round_and_the_first_round_is_not_kept() -> None:
    order: list[str] = []
    clock = iter([9.0, 9.0, 1.0, 3.0, 2.0, 8.0])

    def measure(name: str) -> float:
        order.append(name)
        return next(clock)

    ms = by_turns({name: lambda name=name: measure(name) for name in ("ours", "theirs")}, 2, "")  # type: ignore[misc]
    assert order == ["ours", "theirs"] * 3
    assert ms == {"ours": [1.0, 2.0], "theirs": [3.0, 8.0]}
    assert times_faster(ms["ours"], ms["theirs"]) == [3.0, 4.0]


def test_training_is_compared_with_the_faster_of_the_published_ways(tmp_path: Path) -> None:
    times = train(Train(size=32, frames=16, batch_size=4, steps=1, repeats=2, threads=(1,), device="cpu", out=tmp_path))
    written = result(tmp_path)
    assert [row["way"] for row in written["train"]] == [one.way for one in times]
    by_way = {one.way: one for one in times}
    best = by_way[written["published_best"]]
    assert by_way[OURS].faster == np.divide(best.ms, by_way[OURS].ms).tolist() and best.faster == [1.0, 1.0]
    assert set(written["first_look_ms"]) >= set(by_way)


def test_the_published_encoder_is_that_of_the_paper() -> None:
    layers = [tuple(weight.shape) for weight in published_encoder(2).state_dict().values()]
    convolutions = [(32, 3, 4, 4), (64, 32, 4, 4), (128, 64, 4, 4), (256, 128, 4, 4)]
    assert [shape for shape in layers if len(shape) == 4] == convolutions and (2, 256 * 4 * 4) in layers


def test_the_published_loss_is_plain_lejepa_on_one_sample() -> None:
    views = torch.randn(2, 32, 3, generator=torch.Generator().manual_seed(0))
    published = published_loss(views, torch.Generator().manual_seed(1), weight=0.1)
    directions = random_slices(3, 256, torch.Generator().manual_seed(1))
    plain = LeJEPA(weight=0.1, whiten=False)(views, torch.Generator())
    by_hand = 0.9 * plain.alignment / 2 + 0.1 * sigreg(views.reshape(1, 64, 3), directions)
    assert float(published) == pytest.approx(float(by_hand), rel=1e-4)


def test_the_published_step_learns() -> None:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        step = published_step(published_encoder(2, 16))
    frames = torch.randint(0, 256, (16, 16, 16, 3), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    with torch_threads(1):
        losses = [float(step(frames, frames)) for _ in range(30)]
    assert np.mean(losses[-5:]) < np.mean(losses[:5])


def test_sigreg_keeps_the_precision_of_float32(tmp_path: Path) -> None:
    (row,) = sigreg_times(Sigreg(((2, 16, 3),), slices=8, calls=1, repeats=2, device="cpu", out=tmp_path))
    assert result(tmp_path)["sigreg"][0]["shape"] == [2, 16, 3] and len(row.faster) == 2
    assert row.faster == np.divide(row.formula, row.ours).tolist()
    h, directions = torch.randn(2, 128, 4), random_slices(4, 64, torch.Generator().manual_seed(0))
    assert max(relative_errors(sigreg, h, directions)) < 1e-4


def test_frames_are_embedded_as_by_a_policy_of_sb3(tmp_path: Path) -> None:
    options = Encode((1, 3), size=48, frames=4, repeats=2, device="cpu", out=tmp_path)
    times = encode(options)
    assert [row["batch"] for row in result(tmp_path)["encode"]] == [1, 3] == [one.batch for one in times]
    assert all(one.faster == np.divide(one.nature_cnn, one.ours).tolist() for one in times)
    frames = np.random.default_rng(0).integers(0, 256, (3, 48, 48, 3), np.uint8)
    assert nature_cnn(options, torch.device("cpu"))(frames).shape == (3, 512)


@pytest.mark.filterwarnings("ignore:the embedding collapses")
def test_reaching_draws_its_frames_anew(tmp_path: Path) -> None:
    options = Reach("cartpole", frames=200, steps=2, seeds=(3,), processes=1, device="cpu", out=tmp_path)
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "left-over").touch()
    (run,) = reach(options)
    assert not (tmp_path / "data" / "left-over").exists()
    (row,) = result(tmp_path)["reach"]
    assert row["seconds"] == pytest.approx(row["collect_seconds"] + row["train_seconds"] + row["measure_seconds"])
    assert run.reached == (min(run.r2_per_latent) >= options.target) and len(run.r2_per_latent) == 2


def test_all_parts_end_in_one_result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from worldmodel.scripts.speed import all as bench_all

    def tiny(options: All, out: Path) -> list[bench_all.Finding]:
        times = sigreg_times(Sigreg(((2, 8, 2),), slices=4, calls=1, repeats=2, device=options.device, out=out))
        return [bench_all.Finding("sigreg", "2 x 8 x 2", "formula", times[0].faster, 5)]

    monkeypatch.setitem(PARTS, "sigreg", tiny)
    (row,) = run_all(All(parts=("sigreg",), device="cpu", out=tmp_path))
    written = result(tmp_path)
    assert written["summary"] == [json.loads(json.dumps(row.__dict__))]
    assert written["parts"] == {"sigreg": result(tmp_path / "sigreg")} and set(written["seconds"]) == {"sigreg"}


def test_every_part_has_its_command() -> None:
    assert tuple(PARTS) == All().parts


@pytest.mark.parametrize(
    "measure, options",
    [
        (train, Train(repeats=1)),
        (train, Train(frames=128)),
        (sigreg_times, Sigreg(repeats=1)),
        (encode, Encode(batches=())),
        (reach, Reach(seeds=())),
        (run_all, All(device="abacus")),
    ],
)
def test_options_that_measure_nothing_are_refused_before_anything_is_made(
    measure: Any, options: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match=r"at least|needs|unknown device"):
        measure(options)
    assert not list(tmp_path.iterdir())


def test_growth_is_measured_at_the_first_sizes_of_every_part(tmp_path: Path) -> None:
    axes = ("latents", "samples", "environments")  # frames would take ten seconds more
    curves = growth(Growth(axes, largest=0.004, repeats=2, device="cpu", out=tmp_path))
    assert {curve.axis for curve in curves} == set(axes)
    for curve in curves:
        assert len(curve.ms) == len(curve.sizes) and all(len(one) == 2 and min(one) > 0 for one in curve.ms)
    assert [row["what"] for row in result(tmp_path)["growth"]] == [curve.what for curve in curves]
    assert (tmp_path / "growth.png").exists() and not (tmp_path / "data").exists()


def test_the_exponent_is_that_of_the_last_sizes() -> None:
    ms = [[9.0, 9.0], [1.0, 1.0], [7.0, 9.0, 8.0], [64.0, 60.0, 99.0]]
    assert exponent([1, 2, 4, 8], ms) == pytest.approx(3.0)
    assert np.isnan(exponent([2], [[1.0]]))
