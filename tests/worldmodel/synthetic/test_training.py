import numpy as np
import pytest
import torch

from worldmodel.encoders.objectives import InfoNCE, LeJEPA, Whitening
from worldmodel.measures.certificate import bound_of_pairs
from worldmodel.synthetic.encoders import CouplingEncoder, MLPEncoder
from worldmodel.synthetic.mixings import Coupling
from worldmodel.synthetic.report import examine
from worldmodel.synthetic.training import VectorTraining, fit_vectors, judge, judge_latents
from worldmodel.synthetic.worlds import World

QUICK = VectorTraining(steps=40, batch_size=64, late_batch=64, copies=2, hidden=16, layers=2)


def test_copies_of_an_encoder_are_those_encoders_by_themselves() -> None:
    encoder = MLPEncoder(3, 2, copies=4, hidden=8, layers=2, generator=torch.Generator().manual_seed(0))
    x = torch.randn(5, 3, generator=torch.Generator().manual_seed(1))
    h = encoder(x)
    assert h.shape == (4, 5, 2)
    for copy in range(4):
        alone = x
        for layer, (weight, bias) in enumerate(zip(encoder.weights, encoder.biases, strict=True)):
            alone = (torch.nn.functional.gelu(alone) if layer else alone) @ weight[copy] + bias[copy]
        torch.testing.assert_close(h[copy], alone)
    assert not torch.allclose(h[0], h[1])


@pytest.mark.parametrize("latents", [2, 5])
def test_a_coupling_encoder_with_the_mixing_s_weights_is_its_inverse(latents: int) -> None:
    mixing = Coupling.random(latents, layers=4, seed=0)
    encoder = CouplingEncoder(latents, copies=1, layers=4, generator=torch.Generator().manual_seed(0)).double()
    for mine, theirs in zip(encoder.weights, mixing.weights, strict=True):
        mine.data = theirs[None].clone()
    z = torch.randn(6, latents, dtype=torch.float64)
    torch.testing.assert_close(encoder(mixing(z))[0], z)


def test_the_copy_with_the_least_loss_is_the_one_that_goes_on() -> None:
    run = fit_vectors(World(mixing="banana"), 2, LeJEPA(slices=8), QUICK, seed=3)
    assert len(run.losses) == 2 and run.chosen == int(np.argmin(run.losses))
    assert run.encode(np.zeros((7, 2))).shape == (7, 2) and run.encode(np.zeros((7, 2))).dtype == np.float64


def test_training_does_what_it_did_before() -> None:
    runs = [fit_vectors(World(mixing="banana"), 2, LeJEPA(slices=8), QUICK, seed=3) for _ in range(2)]
    x = np.random.default_rng(0).standard_normal((9, 2))
    np.testing.assert_allclose(runs[0].encode(x), runs[1].encode(x), rtol=1e-6)


@pytest.mark.parametrize("objective", [LeJEPA(weight=1e-3, slices=16), Whitening()])
def test_a_coupling_is_inverted_and_the_bound_holds(objective: LeJEPA | Whitening) -> None:
    world = World(mixing="coupling", layers=2)
    options = VectorTraining(steps=500, copies=3, lr=3e-2, encoder="coupling")
    report = examine(fit_vectors(world, 2, objective, options).encode, world, count=5000)
    assert report.r2_hz > 0.999 > report.r2_xz and report.true_error < report.bound
    assert report.energy is not None and report.nonlinear_energy == pytest.approx(sum(report.energy[2:]), abs=1e-3)


def test_the_latents_themselves_are_examined_as_perfect() -> None:
    world = World(3, "coupling", seed=1)
    report = examine(lambda x: world.mix.inverse(torch.from_numpy(x)).numpy(), world, count=20_000)
    assert report.r2_hz == pytest.approx(1) and report.r2_zh == pytest.approx(1) and report.r2_grid is None
    assert report.true_error < 1e-9 and report.orthogonality_error < 1e-9 and report.nonlinear_energy < 1e-12
    assert report.alignment == pytest.approx(1 - world.correlation)
    assert abs(report.alignment_gap) < 1e-9 and report.bound < 1e-9 < report.certificate < 0.5
    assert report.energy is not None
    np.testing.assert_allclose(report.energy[:3], [0, 3, 0], atol=1e-6)


def test_the_bound_of_a_shrunken_embedding_is_tight_for_collapse() -> None:
    first, second = World(rho=0.9).draw_pairs(20_000, torch.Generator().manual_seed(0), torch.float64).numpy()
    collapsed = bound_of_pairs(0 * first, 0 * second, 0.81)
    assert (collapsed.alignment_gap, collapsed.bound) == (0, pytest.approx(2))
    half = bound_of_pairs(0.5 * first, 0.5 * second, 0.81)
    assert half.whitening_error == pytest.approx(0.75 * np.sqrt(2), rel=0.02) and half.bound > 2 * 0.25
    with pytest.raises(ValueError, match="alike in shape"):
        bound_of_pairs(first, second[:5], 0.81)


def test_the_learning_rate_is_held_and_then_falls_to_nothing() -> None:
    options = VectorTraining(steps=100, lr=1.0, hold=0.5)
    assert [options.rate(step) for step in (0, 49, 50)] == [1, 1, 1]
    assert options.rate(75) == pytest.approx(0.5) and options.rate(99) < 0.01


def test_judging_gives_every_copy_the_same_data() -> None:
    world = World(mixing="banana")
    encoder = MLPEncoder(2, 2, copies=1, hidden=8, layers=1, generator=torch.Generator().manual_seed(0))
    first, second = (judge(encoder, world, Whitening(), 32, seed=0, batches=3) for _ in range(2))
    assert first == second and len(first) == 1


def test_an_encoder_that_is_the_inverse_costs_what_the_latents_cost() -> None:
    world = World(3, "coupling")
    encoder = CouplingEncoder(3, copies=1, layers=4, generator=torch.Generator().manual_seed(0))
    for mine, theirs in zip(encoder.weights, world.mix.weights, strict=True):  # type: ignore[attr-defined]
        mine.data = theirs[None].float()
    for objective in (LeJEPA(slices=8), InfoNCE()):
        assert judge(encoder, world, objective, 64, 1)[0] == pytest.approx(judge_latents(world, objective, 64, 1))


@pytest.mark.parametrize("bends", [True, False])
def test_a_kernel_too_wide_prefers_bent_latents_and_a_matched_one_does_not(bends: bool) -> None:
    world, options = World(mixing="coupling"), VectorTraining(steps=800, copies=3, lr=3e-2, encoder="coupling")
    objective = InfoNCE(1.0) if bends else InfoNCE.matched(world.correlation)
    run = fit_vectors(world, 2, objective, options)
    r2 = examine(run.encode, world, count=2000).r2_hz
    above = judge(run.encoder, world, objective, 256, 0)[0] - judge_latents(world, objective, 256, 0)
    if bends:
        assert r2 < 0.96 and above < -0.005
    else:
        assert r2 > 0.999 and abs(above) < 0.005


def test_bad_options_are_refused_before_any_work() -> None:
    with pytest.raises(ValueError, match="keeps dimensions"):
        fit_vectors(World(3, "coupling"), 2, LeJEPA(), VectorTraining(encoder="coupling"))
    for bad in ({"steps": 0}, {"encoder": "cnn"}, {"hold": 1.0}):
        with pytest.raises(ValueError, match=r"must|unknown|share"):
            VectorTraining(**bad)  # type: ignore[arg-type]
