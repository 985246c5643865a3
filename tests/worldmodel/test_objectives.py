import math

import pytest
import torch

from worldmodel.objectives import LeJEPA, whitened


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
