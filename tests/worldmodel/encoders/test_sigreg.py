"""SIGReg's closed forms."""

import math

import pytest
import torch

from worldmodel.encoders.sigreg import GAUSSIAN_FLOOR, random_slices, sigreg, sigreg_direct


def gaussian(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def slices(m: int, count: int = 256, seed: int = 1) -> torch.Tensor:
    return random_slices(m, count, torch.Generator().manual_seed(seed)).double()


@pytest.mark.parametrize("n", [8, 64, 512])
def test_a_gaussian_batch_has_the_same_floor_whatever_its_size(n: int) -> None:
    values = [float(sigreg(gaussian(20, n, 2, seed=seed), slices(2, 16, seed))) for seed in range(40)]
    mean, error = sum(values) / 40, torch.tensor(values).std().item() / math.sqrt(40)
    assert mean == pytest.approx(1.0525, abs=4 * error + 1e-3)


def test_the_floor_is_the_exact_integral_over_the_knots_range() -> None:
    t = torch.linspace(-3, 3, 100_001, dtype=torch.float64)
    exact = torch.trapezoid((1 - torch.exp(-(t**2))) * torch.exp(-(t**2) / 2), t).item()
    assert exact == pytest.approx(1.0527, abs=5e-5)
    assert exact == pytest.approx(GAUSSIAN_FLOOR)


@pytest.mark.parametrize("n", [16, 256])
def test_full_collapse_costs_in_proportion_to_the_batch(n: int) -> None:
    assert float(sigreg(torch.zeros(1, n, 3), slices(3))) == pytest.approx(0.402 * n, rel=1e-3)


def test_pooling_the_views_of_a_pair_moves_the_floor() -> None:
    rho, values = 0.95, []
    for seed in range(40):
        z, noise = gaussian(2, 256, 2, seed=seed)
        pooled = torch.cat([z, rho * z + math.sqrt(1 - rho**2) * noise])[None]
        values.append(float(sigreg(pooled, slices(2, 64, seed))))
    assert 1.9 < sum(values) / len(values) < 2.3


def test_it_does_not_change_when_embeddings_and_slices_turn_together() -> None:
    rotation = torch.linalg.qr(gaussian(4, 4)).Q
    h, directions = gaussian(2, 64, 4), slices(4)
    assert sigreg(h @ rotation.T, rotation @ directions).item() == pytest.approx(sigreg(h, directions).item())


def test_its_law_is_the_same_for_a_turned_embedding() -> None:
    rotation = torch.linalg.qr(gaussian(3, 3)).Q
    h = gaussian(1, 32, 3) * torch.tensor([1.0, 0.5, 2.0])
    directions = slices(3, 20_000)
    assert sigreg(h @ rotation, directions).item() == pytest.approx(sigreg(h, directions).item(), rel=0.02)


def test_the_fast_gradient_is_that_of_the_formula() -> None:
    h = gaussian(2, 32, 3).requires_grad_()
    fast = torch.autograd.grad(sigreg(h, slices(3)), h)[0]
    direct = torch.autograd.grad(sigreg_direct(h, slices(3)), h)[0]
    torch.testing.assert_close(fast, direct)
    assert torch.autograd.gradcheck(lambda x: sigreg(x, slices(3, 4)), (h,))


def test_many_samples_are_walked_in_blocks_of_slices_to_the_same_value() -> None:
    h = gaussian(2, 3000, 2)
    torch.testing.assert_close(sigreg(h, slices(2, 13)), sigreg_direct(h, slices(2, 13)))


@pytest.mark.parametrize(
    "h",
    [torch.randn(2, 16, 2).bfloat16(), torch.randn(2, 1, 2), torch.full((2, 16, 2), 7.0), torch.zeros(2, 16, 2)],
    ids=["bfloat16", "one sample", "constant", "zero"],
)
def test_value_and_gradient_are_finite(h: torch.Tensor) -> None:
    h = h.clone().requires_grad_()
    with torch.autocast("cpu", torch.bfloat16):
        value = sigreg(h, slices(2).float())
    value.backward()
    assert value.dtype == torch.float32 and value.isfinite() and h.grad is not None and h.grad.isfinite().all()


def test_slices_are_unit_vectors_of_their_own_generator() -> None:
    before = torch.get_rng_state()
    directions = random_slices(5, 100, torch.Generator().manual_seed(3))
    torch.testing.assert_close(directions.norm(dim=0), torch.ones(100))
    assert torch.equal(before, torch.get_rng_state())
