import subprocess
import sys

import numpy as np
import pytest
import scipy.stats
import torch

from worldmodel.synthetic.eigenfunctions import additive_modes
from worldmodel.synthetic.mixings import Coupling, make_mixing
from worldmodel.synthetic.pair_laws import draw
from worldmodel.synthetic.worlds import World

GAUSSIAN_2D = ("spiral", "banana", "sinusoid", "coupling")


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize("name", GAUSSIAN_2D)
def test_a_mixing_is_undone_by_its_inverse(name: str) -> None:
    z = torch.randn(3, 50, 2, generator=seeded(), dtype=torch.float64)
    mixing = make_mixing(name, 2)  # type: ignore[arg-type]
    torch.testing.assert_close(mixing.inverse(mixing(z)), z)
    assert not torch.allclose(mixing(z), z, atol=0.1)


@pytest.mark.parametrize("latents", [2, 3, 7, 8])
def test_a_coupling_of_any_dimension_is_undone_and_keeps_volumes(latents: int) -> None:
    z = torch.randn(5, latents, generator=seeded(), dtype=torch.float64)
    mixing = Coupling.random(latents, layers=5, seed=1)
    torch.testing.assert_close(mixing.inverse(mixing(z)), z)
    jacobian = torch.autograd.functional.jacobian(mixing, z[0])
    assert float(torch.linalg.det(jacobian)) == pytest.approx(1)
    gram = mixing.weights[0] @ mixing.weights[0].T
    torch.testing.assert_close(gram, 4 * torch.eye(latents // 2, dtype=torch.float64))


def test_the_mixings_are_those_of_the_paper() -> None:
    z = torch.tensor([[0.5, 0.0], [0.3, 2.0]])
    torch.testing.assert_close(make_mixing("spiral", 2)(z)[0], torch.tensor([0.0, 0.5]))  # a quarter turn at radius 1/2
    torch.testing.assert_close(make_mixing("banana", 2)(z)[1], torch.tensor([0.3, 2.09]))
    torch.testing.assert_close(make_mixing("sinusoid", 2)(z)[1], torch.tensor([0.3 + float(np.sin(3.0)), 2.0]))


@pytest.mark.parametrize("law, alpha", [("gaussian", 2), ("laplace", 1), ("gennorm:0.5", 0.5), ("gennorm:8", 8)])
def test_latents_have_their_law(law: str, alpha: float) -> None:
    z = draw(law, (40_000,), seeded()).double().numpy()
    expected = scipy.stats.gennorm(alpha, scale=1 / scipy.stats.gennorm.std(alpha))
    assert scipy.stats.kstest(z, expected.cdf).pvalue > 0.01


def test_uniform_latents_fill_their_interval() -> None:
    z = draw("uniform", (40_000,), seeded()).numpy()
    assert scipy.stats.kstest(z, scipy.stats.uniform(-np.sqrt(3), 2 * np.sqrt(3)).cdf).pvalue > 0.01


@pytest.mark.parametrize("views, expected", [("parent", 0.81), ("successor", 0.9)])
@pytest.mark.parametrize("law, kind", [("gaussian", "additive"), ("uniform", "additive"), ("uniform", "langevin"),
                                       ("laplace", "langevin"), ("gennorm:4", "copula")])  # fmt: skip
def test_the_views_have_the_correlation_that_the_world_states(law: str, kind: str, views: str, expected: float) -> None:
    world = World(law=law, rho=0.9, views=views, pairs=kind)  # type: ignore[arg-type]
    assert world.correlation == pytest.approx(expected)
    first, second = world.draw_pairs(60_000, seeded(), torch.float64)
    assert float((first * second).mean()) == pytest.approx(expected, abs=0.02)
    assert float(first.square().mean()) == pytest.approx(1, abs=0.03)
    assert float((first[:, 0] * second[:, 1]).mean()) == pytest.approx(0, abs=0.02)


@pytest.mark.parametrize("kind", ["langevin", "copula"])
def test_stationary_pairs_keep_the_law_and_are_reversible(kind: str) -> None:
    world = World(law="uniform", rho=0.8, pairs=kind)  # type: ignore[arg-type]
    first, second = world.draw_pairs(20_000, seeded(), torch.float64).numpy()
    law = scipy.stats.uniform(-np.sqrt(3), 2 * np.sqrt(3)).cdf
    assert scipy.stats.kstest(second[:, 0], law).pvalue > 0.01
    assert (first**3 * second).mean() == pytest.approx((first * second**3).mean(), abs=0.05)


def test_the_slowest_function_of_additive_pairs_keeps_its_correlation_in_samples() -> None:
    modes = additive_modes("uniform", 0.9)
    first, second = World(law="uniform", rho=0.9).draw_pairs(60_000, seeded(), torch.float64).numpy()
    kept = (modes.slowest(first) * modes.slowest(second)).mean()
    assert kept == pytest.approx(modes.values[0], abs=0.01)
    assert kept > (first * second).mean()  # slower than the latent itself


def test_the_same_seed_gives_the_same_world() -> None:
    views = [World(3, "coupling", seed=4).observe(World(3, "coupling").draw_pairs(5, seeded())) for _ in range(2)]
    torch.testing.assert_close(views[0], views[1])


def test_a_world_that_there_is_not_is_refused_where_nothing_is_asserted_too() -> None:
    code = "from worldmodel.synthetic.worlds import World; World(mixing='bogus')"
    done = subprocess.run([sys.executable, "-O", "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1 and "bogus" in done.stderr.splitlines()[-1]


@pytest.mark.parametrize("bad", [{"latents": 3}, {"mixing": "knot"}, {"law": "cauchy"}, {"rho": 1.0}, {"rho": 0.0},
                                 {"latents": 1, "mixing": "coupling"}])  # fmt: skip
def test_a_world_that_there_is_not_is_refused(bad: dict[str, object]) -> None:
    with pytest.raises(ValueError):
        World(**bad)  # type: ignore[arg-type]
