import math
from collections.abc import Callable

import pytest
import torch

from worldmodel.encoders.objectives import BarlowTwins, InfoNCE, LeJEPA, Objective, VICReg, Whitening, whitened


def pairs(rho: float, n: int = 4096, m: int = 2) -> torch.Tensor:
    z, noise = torch.randn(2, n, m, generator=torch.Generator().manual_seed(0))
    return torch.stack([z, rho * z + math.sqrt(1 - rho**2) * noise])


@pytest.mark.parametrize("whiten", [True, False])
@pytest.mark.parametrize("rho", [0.5, 0.9])
def test_the_alignment_of_the_latents_themselves_is_one_minus_rho(rho: float, whiten: bool) -> None:
    value = LeJEPA(whiten=whiten, slices=8)(pairs(rho), torch.Generator().manual_seed(0))
    assert float(value.alignment) == pytest.approx(1 - rho, rel=0.05)


def test_the_loss_weighs_its_two_terms() -> None:
    value = LeJEPA(weight=0.3)(pairs(0.9, n=64), torch.Generator().manual_seed(0))
    assert float(value.loss) == pytest.approx(float(0.7 * value.alignment + 0.3 * value.regulariser))


def test_whitened_alignment_cannot_be_lowered_by_shrinking() -> None:
    views = pairs(0.9, n=64)
    values = [LeJEPA()(scale * views, torch.Generator().manual_seed(0)).alignment for scale in (1.0, 0.1)]
    assert float(values[0]) == pytest.approx(float(values[1]), rel=0.01)


def test_whitening_leaves_mean_zero_and_covariance_one() -> None:
    views = pairs(0.9, m=3) @ torch.randn(3, 3, generator=torch.Generator().manual_seed(1)) + 5
    pooled = whitened(views.double(), floor=0.0).reshape(-1, 3)
    torch.testing.assert_close(pooled.mean(0), torch.zeros(3).double(), atol=1e-9, rtol=0)
    torch.testing.assert_close(torch.cov(pooled.T, correction=0), torch.eye(3).double())


def test_what_cannot_be_whitened_is_nan_and_no_error() -> None:
    constant = torch.ones(2, 8, 3)
    assert whitened(constant, floor=0.0).isnan().all() and whitened(constant).isfinite().all()


def test_one_far_value_does_not_end_whitening() -> None:
    views = pairs(0.9, m=2, n=64).float()
    views[0, 0] = torch.tensor([3e6, -3e6])
    views.requires_grad_()
    white = whitened(views)
    white.square().mean().backward()
    assert white.isfinite().all() and views.grad is not None and views.grad.isfinite().all()


def test_a_quadratic_mode_is_aligned_worse_than_a_linear_one() -> None:
    views = pairs(0.9, n=50_000)
    hermite = torch.stack([views[..., 0], (views[..., 1] ** 2 - 1) / math.sqrt(2)], dim=-1)
    value = LeJEPA(whiten=False, slices=1)(hermite, torch.Generator().manual_seed(0))
    assert float(value.alignment) == pytest.approx(((1 - 0.9) + (1 - 0.81)) / 2, rel=0.03)


def test_it_stays_finite_when_the_embedding_has_collapsed() -> None:
    views = torch.zeros(2, 32, 2, requires_grad=True)
    LeJEPA()(views, torch.Generator().manual_seed(0)).loss.backward()
    assert views.grad is not None and views.grad.isfinite().all()


def test_a_weight_outside_zero_and_one_is_refused() -> None:
    with pytest.raises(ValueError, match="between 0 and 1"):
        LeJEPA(weight=1.5)


GENERATOR = torch.Generator().manual_seed(0)
TRAINABLE = (LeJEPA(slices=8), Whitening(), VICReg(), InfoNCE(), BarlowTwins())


@pytest.mark.parametrize("objective", TRAINABLE, ids=lambda objective: type(objective).__name__)
def test_every_objective_reports_the_alignment_and_has_a_finite_gradient(objective: Objective) -> None:
    views = pairs(0.9, n=512).requires_grad_()
    value = objective(views, GENERATOR)
    assert float(value.alignment.detach()) == pytest.approx(0.1, rel=0.2)
    value.loss.backward()
    assert views.grad is not None and views.grad.isfinite().all() and float(views.grad.abs().max()) > 0
    collapsed = torch.zeros(2, 16, 2, requires_grad=True)
    objective(collapsed, GENERATOR).loss.backward()
    assert collapsed.grad is not None and collapsed.grad.isfinite().all()


@pytest.mark.parametrize("objective", TRAINABLE[1:], ids=lambda objective: type(objective).__name__)
def test_a_quadratic_coordinate_costs_more_than_a_linear_one(objective: Objective) -> None:
    views = pairs(0.9, n=4096)
    quadratic = torch.stack([views[..., 0], (views[..., 1] ** 2 - 1) / math.sqrt(2)], dim=-1)
    assert objective(views, GENERATOR).loss < objective(quadratic, GENERATOR).loss


def test_whitening_is_zero_at_the_identity_and_counts_every_entry_of_the_covariance() -> None:
    white = whitened(pairs(0.9, n=64).double(), floor=0.0)
    assert float(Whitening()(white, GENERATOR).regulariser) == pytest.approx(0, abs=1e-12)
    assert float(Whitening()(2 * white, GENERATOR).regulariser) == pytest.approx(9)  # (4 - 1)², per dimension


def test_vicreg_asks_for_a_std_of_one_at_least_and_for_no_covariance() -> None:
    first = whitened(torch.stack([pairs(0.9, n=64)[0].double()] * 2), floor=0.0)
    assert float(VICReg(covariance=0.0)(1.1 * first, GENERATOR).regulariser) == 0
    assert float(VICReg(covariance=0.0)(0.5 * first, GENERATOR).regulariser) == pytest.approx(25 * 0.5, rel=0.02)
    alike = first[..., :1].expand(2, 64, 2)  # two copies of one coordinate: Cov_12 = 1 on each side, in each view
    assert float(VICReg(variance=0.0)(alike, GENERATOR).regulariser) == pytest.approx(2, rel=0.05)


def test_infonce_is_the_cross_entropy_of_finding_the_partner() -> None:
    first, second = views = pairs(0.9, n=32)
    logits = -torch.cdist(first, second).square() / (2 * 0.7**2)
    target = torch.arange(32)
    expected = torch.nn.functional.cross_entropy(logits, target) + torch.nn.functional.cross_entropy(logits.T, target)
    assert float(InfoNCE(0.7)(views, GENERATOR).loss) == pytest.approx(float(expected / 2), rel=1e-5)
    assert float(InfoNCE()(torch.zeros(2, 32, 3), GENERATOR).loss) == pytest.approx(math.log(32))


def test_a_matched_kernel_makes_the_latents_their_own_best_scale() -> None:
    views, matched = pairs(0.9, n=4000, m=1), InfoNCE.matched(0.9)
    losses = {scale: float(matched(scale * views, GENERATOR).loss) for scale in (0.8, 0.9, 1.0, 1.1, 1.2)}
    assert min(losses, key=lambda scale: losses[scale]) == 1.0
    s = 1 / matched.sigma**2
    expected = s * (1 - 0.9) - math.log(1 + s) / 2 - s / (2 * (1 + s)) + math.log(4000)
    assert losses[1.0] == pytest.approx(expected, abs=0.05)
    with pytest.raises(ValueError, match="between 0 and 1"):
        InfoNCE.matched(1.0)


def test_barlow_twins_is_blind_to_scale_and_has_its_known_value_at_the_latents() -> None:
    views = pairs(0.8, n=50_000, m=3)
    value = BarlowTwins()(views * torch.tensor([1.0, 5.0, 0.2]), GENERATOR)
    assert float(value.loss) == pytest.approx(3 * 0.2**2, rel=0.05)


@pytest.mark.parametrize("bad", [lambda: Whitening(weight=2.0), lambda: InfoNCE(sigma=0.0)])
def test_options_that_make_no_objective_are_refused(bad: Callable[[], Objective]) -> None:
    with pytest.raises(ValueError, match="must"):
        bad()
