"""Frames that stay on disk."""

import tracemalloc
import warnings
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from dots import SIZE, store_dots
from interrupted import interrupted

from worldmodel.data.episodes import Episodes
from worldmodel.data.pairs import mixed_pairs
from worldmodel.data.store import load_episodes
from worldmodel.data.streaming import StreamedEpisodes, open_episodes
from worldmodel.encoders.encoder import Encoder
from worldmodel.encoders.history import LocalOptimumWarning
from worldmodel.encoders.ranks import Ranks
from worldmodel.encoders.streamed_pairs import StreamedPairs
from worldmodel.encoders.training import TrainingOptions, fit_encoder
from worldmodel.measures.identifiability import certify, identifiability

FRAME = SIZE * SIZE * 3
SHARD = 200  # frames
MEMORY = 6 * SHARD * FRAME  # a round holds two shards of the dozen: 0.35 · 6 shards, of which 80% are training frames
TINY = TrainingOptions(steps=12, batch_size=32, channels=(8, 8, 8, 8, 8), checkpoint_seconds=0.0)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return store_dots(tmp_path_factory.mktemp("data") / "dots", shards=12, lengths=(3, 40, 17) * 3 + (20,)).path


@pytest.fixture(scope="module")
def streamed(folder: Path) -> StreamedEpisodes:
    return StreamedEpisodes.open(folder, MEMORY)


@pytest.fixture(scope="module")
def loaded(folder: Path) -> Episodes:
    return load_episodes(folder)


def keys(first: np.ndarray, second: np.ndarray) -> Counter[bytes]:
    return Counter(one.tobytes() + two.tobytes() for one, two in zip(first, second, strict=True))


def pairs_of(batches: list[torch.Tensor]) -> Counter[bytes]:
    return sum((keys(*batch.numpy().reshape(2, -1, SIZE, SIZE, 3)) for batch in batches), Counter[bytes]())


@pytest.mark.parametrize("lags", [(1,), (5, 30)], ids=["one lag", "mixed lags"])
def test_each_epoch_meets_the_pairs_of_the_training_episodes_once(
    streamed: StreamedEpisodes, loaded: Episodes, lags: tuple[int, ...]
) -> None:
    first, second = mixed_pairs(loaded.train.offsets, lags)
    frames = loaded.train.frames
    every = keys(frames[first], frames[second])
    size = next(size for size in range(40, 0, -1) if len(first) % size == 0)
    per_epoch = len(first) // size
    stream = StreamedPairs(streamed, seed=3)
    batches = list(stream.batches(lags, size, 0, 2 * per_epoch))
    assert pairs_of(batches[:per_epoch]) == pairs_of(batches[per_epoch:]) == every
    assert not torch.equal(torch.cat(batches[:per_epoch]), torch.cat(batches[per_epoch:]))
    np.testing.assert_array_equal(stream.offsets, loaded.train.offsets)


def test_batches_mix_episodes_of_several_shards(streamed: StreamedEpisodes) -> None:
    rounds = streamed.rounds(np.arange(12))
    assert all(len(np.unique(streamed.shards[episodes])) == 2 for episodes in rounds)
    assert np.array_equal(np.sort(np.concatenate(rounds)), streamed.train_episodes)


def test_the_order_follows_from_the_seed_and_resumes_at_any_step(streamed: StreamedEpisodes) -> None:
    whole = list(StreamedPairs(streamed, seed=1).batches((1,), 50, 0, 80))  # two epochs, and a little
    for step in (1, 70):
        rest = list(StreamedPairs(streamed, seed=1).batches((1,), 50, step, 80))
        assert len(rest) == 80 - step and torch.equal(torch.cat(rest), torch.cat(whole[step:]))
    assert not torch.equal(whole[0], next(StreamedPairs(streamed, seed=2).batches((1,), 50, 0, 1)))
    assert not list(StreamedPairs(streamed, seed=1).batches((1,), 50, 80, 80))


def test_two_processes_share_each_batch(streamed: StreamedEpisodes) -> None:
    (whole,), (one,), (two,) = (
        StreamedPairs(streamed, 0, ranks=ranks).batches((1,), 2_501, 0, 1)
        for ranks in (Ranks(), Ranks(0, 2), Ranks(1, 2))
    )
    parts = [part.unflatten(0, (2, -1)) for part in (one, two)]
    assert torch.equal(torch.cat(parts, dim=1).flatten(0, 1), whole)  # a batch that spans every round


def test_no_more_than_the_memory_is_held(tmp_path: Path) -> None:
    store_dots(tmp_path / "data", shards=24, lengths=(50,) * 10)
    shard = 500 * FRAME
    memory = 12 * shard  # two rounds of 5 shards, 400 training frames each
    tracemalloc.start()
    try:
        streamed = StreamedEpisodes.open(tmp_path / "data", memory)
        before, _ = tracemalloc.get_traced_memory()
        tracemalloc.reset_peak()
        for _ in StreamedPairs(streamed, 0).batches((1,), 64, 0, 150):
            pass
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert 6 * shard < peak - before < 0.7 * memory + 4 * shard < 0.6 * streamed.frame_bytes


def test_samples_are_of_their_part_and_fit_a_tenth_of_memory(streamed: StreamedEpisodes, loaded: Episodes) -> None:
    for name in ("train", "selection", "heldout"):
        sample, part = getattr(streamed, name), getattr(loaded, name)
        assert 0 < sample.frames.nbytes <= 0.1 * MEMORY or len(sample) == 1
        assert {e.frames.tobytes() for e in sample} <= {e.frames.tobytes() for e in part}
        for episode in sample:
            assert len(episode.frames) == len(episode.latents) == len(episode.actions) + 1
    assert streamed.card == loaded.card


def fit(episodes: Episodes | StreamedEpisodes, out: Path | None = None, **changes: object) -> Encoder:
    options = replace(TINY, **changes)  # type: ignore[arg-type]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LocalOptimumWarning)
        return fit_encoder(episodes, 2, options=options, out=out, progress=False, device="cpu")


def test_streaming_learns_as_much_as_memory_does(streamed: StreamedEpisodes, loaded: Episodes) -> None:
    scores, losses = [], []
    for episodes in (loaded, streamed):
        encoder = fit(episodes, steps=120, batch_size=64, channels=(16, 16, 16, 16, 16))
        scores.append(identifiability(encoder, loaded).r2_hz)
        assert encoder.history is not None
        losses.append(np.mean(encoder.history.loss[-20:]))
    assert min(scores) > 0.9 and losses[1] == pytest.approx(losses[0], rel=0.25), (scores, losses)
    assert identifiability(encoder, streamed).r2_hz > 0.8 and certify(encoder, streamed).rho > 0.8


def test_an_interrupted_stream_resumes_to_the_same_encoder(streamed: StreamedEpisodes, tmp_path: Path) -> None:
    options = replace(TINY, coarse_share=0.5)
    with pytest.raises(KeyboardInterrupt):
        fit_encoder(streamed, 2, interrupted(step=9), options, out=tmp_path, progress=False, device="cpu")
    resumed, whole = fit(streamed, out=tmp_path, coarse_share=0.5), fit(streamed, coarse_share=0.5)
    assert all(torch.equal(value, whole.state_dict()[name]) for name, value in resumed.state_dict().items())


def test_data_that_does_not_fit_streams(folder: Path, loaded: Episodes) -> None:
    assert isinstance(open_episodes(folder, 2 * loaded.frames.nbytes), Episodes)
    assert isinstance(open_episodes(folder, 2 * loaded.frames.nbytes - 1), StreamedEpisodes)


def test_bad_input_is_one_line(folder: Path, streamed: StreamedEpisodes, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"too few: a shard of .* training frames"):
        StreamedEpisodes.open(folder, SHARD * FRAME)
    with pytest.raises(ValueError, match="not a data set"):
        open_episodes(tmp_path, 1e9)
    with pytest.raises(ValueError, match="in memory only"):
        fit_encoder(streamed, 2, weights=np.ones(5))


def test_a_shard_that_is_damaged_stops_the_stream_by_name(tmp_path: Path) -> None:
    store = store_dots(tmp_path, shards=3)
    streamed = StreamedEpisodes.open(tmp_path, 10 * SHARD * FRAME)
    next(path for path in store.path.glob("shards/00001.zarr/frames/c/**/*") if path.is_file()).write_bytes(b"damaged")
    with pytest.raises(ValueError, match=r"00001\.zarr is damaged"):
        list(StreamedPairs(streamed, 0).batches((1,), 64, 0, 8))
