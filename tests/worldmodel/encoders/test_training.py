"""Training on real frames, with tiny budgets."""

import shutil
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from interrupted import interrupted

from worldmodel.agents import LatentOU, collect
from worldmodel.data.datacard import IDENTITY, describe
from worldmodel.data.episodes import Episodes
from worldmodel.encoders.batches import HeldPairs, drawn_batches
from worldmodel.encoders.checkpoints import load_checkpoint
from worldmodel.encoders.encoder import Encoder
from worldmodel.encoders.history import CollapseWarning, LocalOptimumWarning, TrainingHistory, spread_of
from worldmodel.encoders.objectives import LeJEPA, ObjectiveValue
from worldmodel.encoders.training import TrainingError, TrainingOptions, TrainingRun, compiled, fit_encoder
from worldmodel.measures.identifiability import certify, identifiability

TINY = TrainingOptions(steps=12, batch_size=32, channels=(8, 8, 8, 8, 8), checkpoint_seconds=0.0)


@pytest.fixture(scope="module")
def episodes(tmp_path_factory: pytest.TempPathFactory) -> Episodes:
    return collect("cartpole", LatentOU(0.9), 1500, tmp_path_factory.mktemp("data") / "d", length=50, progress=False)


def fit(episodes: Episodes, out: Path | None = None, **changes: object) -> Encoder:
    options = replace(TINY, **changes)  # type: ignore[arg-type]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LocalOptimumWarning)
        return fit_encoder(episodes, 2, options=options, out=out, progress=False, device="cpu")


def same(one: Encoder, two: Encoder) -> bool:
    return all(torch.equal(value, two.state_dict()[name]) for name, value in one.state_dict().items())


def test_a_few_seconds_of_training_find_the_cart(episodes: Episodes) -> None:
    encoder = fit(episodes, steps=150, batch_size=64, channels=(16, 16, 16, 16, 16))
    cart, _ = identifiability(encoder, episodes).r2_per_latent
    assert cart > 0.85


def test_the_same_seed_gives_the_same_encoder_and_leaves_the_global_generator_alone(episodes: Episodes) -> None:
    state = torch.get_rng_state()
    assert same(fit(episodes), fit(episodes))
    assert torch.equal(state, torch.get_rng_state())


def test_torch_gets_its_threads_back(episodes: Episodes) -> None:
    before = torch.get_num_threads()
    fit(episodes, steps=1)
    assert torch.get_num_threads() == before


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_the_host_never_waits_for_the_gpu(episodes: Episodes) -> None:
    cuda = torch.device("cuda")
    batches = HeldPairs(episodes.train, 0, cuda).batches((1,), 32, 0, 8)
    run = TrainingRun(Encoder(2), LeJEPA(), TINY, 0.9, 0, cuda, "test")
    run.encoder.train()
    for step in range(8):
        torch.cuda.set_sync_debug_mode("error" if step > 2 else "default")  # the first steps set things up
        try:
            run.update(next(batches), 32)
        finally:
            torch.cuda.set_sync_debug_mode("default")


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("g++") is None, reason="torch compiles for CPUs with g++")
def test_a_compiled_encoder_has_the_same_gradients_and_comes_back_plain(episodes: Episodes) -> None:
    frames = torch.from_numpy(episodes.heldout.frames[:64])
    found = []
    for wanted in (False, True):
        torch.manual_seed(0)
        encoder = Encoder(2, channels=TINY.channels).train()
        with compiled(encoder, wanted):
            (encoder(frames).square() * torch.arange(len(frames))[:, None]).mean().backward()
        found.append(torch.cat([parameter.grad.flatten() for parameter in encoder.parameters()]))
    assert float((found[0] - found[1]).norm() / found[0].norm()) < 1e-3
    assert fit(episodes, steps=2, compile=True)._compiled_call_impl is None


@pytest.mark.parametrize("coarse", [0.0, 0.3, 0.9], ids=["one lag", "in the second part", "in the first part"])
def test_an_interrupted_training_resumes_to_the_same_encoder(episodes: Episodes, tmp_path: Path, coarse: float) -> None:
    options = replace(TINY, coarse_share=coarse)
    with pytest.raises(KeyboardInterrupt):
        fit_encoder(episodes, 2, interrupted(step=8), options, out=tmp_path, progress=False, device="cpu")
    assert load_checkpoint(tmp_path / "checkpoint.pt")["step"] == 7
    assert same(fit(episodes, out=tmp_path, coarse_share=coarse), fit(episodes, coarse_share=coarse))


def test_a_folder_with_another_run_is_refused(episodes: Episodes, tmp_path: Path) -> None:
    fit(episodes, out=tmp_path)
    with pytest.raises(ValueError, match="holds another run"):
        fit(episodes, out=tmp_path, steps=13)
    other = replace(episodes, frames=255 - episodes.frames)
    with pytest.raises(ValueError, match="holds another run"):
        fit(other, out=tmp_path)


@pytest.mark.parametrize("where", ["loss", "gradient"])
def test_nan_stops_the_run_and_keeps_the_last_good_checkpoint(episodes: Episodes, tmp_path: Path, where: str) -> None:
    class Poisoned(LeJEPA):
        calls = 0

        def __call__(self, views: torch.Tensor, generator: torch.Generator) -> ObjectiveValue:
            type(self).calls += 1
            value = super().__call__(views, generator)
            if self.calls <= 5:
                return value
            poison = float("nan") if where == "loss" else (views * 0).sum().abs().sqrt()  # a root at 0: 0, slope NaN
            return value._replace(loss=value.loss + poison)

    with pytest.raises(TrainingError, match=r"step 6.*checkpoint\.pt"):
        fit_encoder(episodes, 2, Poisoned(), TINY, out=tmp_path, progress=False, device="cpu")
    kept = load_checkpoint(tmp_path / "checkpoint.pt")
    assert kept["step"] == 5 and all(value.isfinite().all() for value in kept["encoder"].values())


def test_collapse_is_named_by_what_the_embedding_does(episodes: Episodes) -> None:
    class AlignmentAlone:
        def __call__(self, views: torch.Tensor, generator: torch.Generator) -> ObjectiveValue:
            loss = views.square().mean()
            return ObjectiveValue(loss, loss.detach(), loss.detach())

    with pytest.warns(CollapseWarning, match="effective rank"):
        fit_encoder(episodes, 2, AlignmentAlone(), replace(TINY, steps=40), progress=False, device="cpu")


def test_a_local_optimum_is_named(episodes: Episodes) -> None:
    with pytest.warns(LocalOptimumWarning, match="local optimum"):
        fit_encoder(episodes, 2, options=TINY, progress=False, device="cpu")


def test_a_damaged_checkpoint_is_one_clear_error(episodes: Episodes, tmp_path: Path) -> None:
    (tmp_path / "checkpoint.pt").write_bytes(b"damaged")
    with pytest.raises(ValueError, match="not a readable checkpoint"):
        fit(episodes, out=tmp_path)


def test_a_device_that_is_not_there_is_refused(episodes: Episodes) -> None:
    for device, line in (("gpu7", "unknown device"), ("cuda", "no GPU")):
        if device == "cuda" and torch.cuda.is_available():
            continue
        with pytest.raises(ValueError, match=line):
            fit_encoder(episodes, 2, options=TINY, device=device, progress=False)


def test_episodes_shorter_than_the_lag_are_refused(episodes: Episodes) -> None:
    with pytest.raises(ValueError, match="shorter"):
        fit(episodes, lag=50)


def test_the_history_is_written_and_read(episodes: Episodes, tmp_path: Path) -> None:
    encoder = fit(episodes, out=tmp_path)
    assert TrainingHistory.load(tmp_path / "history.json") == encoder.history
    assert encoder.history.step == list(range(1, 13))


def test_data_without_true_latents_trains_and_certifies_once_rho_is_given(episodes: Episodes, tmp_path: Path) -> None:
    none = np.zeros((episodes.num_frames, 0), np.float32)
    identity = {name: getattr(episodes.card, name) for name in IDENTITY} | {"latent_names": (), "latent_scales": ()}
    card = describe(none, episodes.actions, episodes.offsets, **identity)
    blind = replace(episodes, latents=none, card=card)
    encoder = fit(blind, out=tmp_path)
    assert same(encoder, fit(episodes))  # rho decides what is reported, not what is learnt
    assert np.isnan(TrainingHistory.load(tmp_path / "history.json").optimum).all()
    with pytest.raises(ValueError, match="nothing to identify"):
        identifiability(encoder, blind)
    with pytest.raises(ValueError, match="give rho"):
        certify(encoder, blind)
    assert certify(encoder, blind, rho=0.9) == certify(encoder, episodes, rho=0.9)


def test_far_pairs_come_first(episodes: Episodes, tmp_path: Path) -> None:
    once = fit(episodes, coarse_share=0.5, coarse_lag=4, out=tmp_path / "a")
    assert once.history is not None
    assert np.allclose(once.history.rho, [episodes_rho(episodes) ** 4] * 6 + [episodes_rho(episodes)] * 6)
    state = load_checkpoint(tmp_path / "a" / "checkpoint.pt")
    assert state["step"] == 12
    assert not same(once, fit(episodes))
    with pytest.raises(ValueError, match="share of the steps"):
        TrainingOptions(coarse_share=1.5)


def test_pairs_of_several_lags_are_mixed(episodes: Episodes) -> None:
    mixed = fit(episodes, mixed_lags=(3, 7))
    assert mixed.history is not None
    expected = np.mean([episodes_rho(episodes) ** lag for lag in (1, 3, 7)])
    assert mixed.history.rho[-1] == pytest.approx(expected, abs=0.02)  # an episode has more near pairs than far ones
    assert not same(mixed, fit(episodes))
    with pytest.raises(ValueError, match="shorter"):
        fit(episodes, mixed_lags=(50,))
    with pytest.raises(ValueError, match="mixed_lags"):
        TrainingOptions(mixed_lags=(0,))


def test_training_goes_on_from_an_encoder_and_leaves_it_alone(episodes: Episodes) -> None:
    start = fit(episodes).freeze()
    before = {name: value.clone() for name, value in start.state_dict().items()}
    still = replace(TINY, steps=2, lr=1e-9, weight_decay=0.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LocalOptimumWarning)
        further = fit_encoder(episodes, 2, options=still, start=start, seed=1, progress=False, device="cpu")
    for name, value in further.named_parameters():
        torch.testing.assert_close(value, before[name], atol=1e-6, rtol=0)
    assert all(torch.equal(value, before[name]) for name, value in start.state_dict().items())
    assert further.train().training and not start.train().training  # only the one that was frozen is
    with pytest.raises(ValueError, match="has 2 dimensions, not 3"):
        fit_encoder(episodes, 3, options=still, start=start, progress=False, device="cpu")


def test_weights_of_pairs_have_to_fit(episodes: Episodes) -> None:
    weights = np.ones(len(episodes.train.frames))
    for wrong in (weights[:-1], -weights, 0 * weights, weights * np.nan):
        with pytest.raises(ValueError, match="weights"):
            fit_encoder(episodes, 2, options=TINY, weights=wrong, progress=False, device="cpu")


@pytest.mark.filterwarnings("ignore::worldmodel.encoders.history.LocalOptimumWarning")
def test_a_weighted_training_resumes_only_with_its_weights(episodes: Episodes, tmp_path: Path) -> None:
    weights = np.linspace(1, 2, len(episodes.train.frames))
    fit_encoder(episodes, 2, options=TINY, weights=weights, out=tmp_path, progress=False, device="cpu")
    with pytest.raises(ValueError, match="holds another run"):
        fit(episodes, out=tmp_path)


def test_pairs_are_drawn_as_often_as_they_weigh() -> None:
    chances = np.array([1.0, 0.0, 3.0])
    drawn = np.concatenate(list(drawn_batches(3, 3, seed=0, done=0, end=4_000, chances=chances)))
    assert np.allclose(np.bincount(drawn) / len(drawn), chances / 4, atol=0.02)


def episodes_rho(episodes: Episodes) -> float:
    return float(np.mean(episodes.card.rho))


def test_spread_knows_its_closed_forms() -> None:
    rng = np.random.default_rng(0)
    views = torch.from_numpy(rng.standard_normal((2, 50_000, 3)))
    spread = spread_of(views)
    assert spread.alignment == pytest.approx(6, rel=0.02) and spread.trace == pytest.approx(3, rel=0.02)
    assert spread.effective_rank == pytest.approx(3, abs=0.01) and spread.std == pytest.approx(1, abs=0.02)
    flat = spread_of(views * torch.tensor([1.0, 0.0, 0.0]))
    assert flat.effective_rank == pytest.approx(1) and flat.std == 0
