import numpy as np
import pytest
from stable_baselines3.common.noise import VectorizedActionNoise

from worldmodel.agents.ou import OrnsteinUhlenbeck, ou_chains


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


@pytest.mark.parametrize("steps, std", [(10, 0.314), (100, 0.930), (1000, 1.780)])
def test_from_a_zero_start_the_spread_grows_as_the_theory_says(steps: int, std: float) -> None:
    noise = OrnsteinUhlenbeck(1, theta=0.15, sigma=1.0, dt=0.01, envs=20_000, start=0.0, rng=rng())
    for _ in range(steps):
        values = noise()
    assert float(values.std()) == pytest.approx(std, rel=0.02)


@pytest.mark.parametrize("dt, std", [(0.01, 1.826), (1.0, 1.898)])
def test_the_stationary_spread_is_that_of_the_discrete_process(dt: float, std: float) -> None:
    noise = OrnsteinUhlenbeck(1, theta=0.15, sigma=1.0, dt=dt, envs=50_000, rng=rng())
    assert noise.std == pytest.approx(std, abs=1e-3)
    assert float(noise().std()) == pytest.approx(std, rel=0.02)  # it starts there


def test_each_environment_has_its_own_state_reset_by_index() -> None:
    noise = OrnsteinUhlenbeck(2, theta=1.0, sigma=1.0, dt=0.1, envs=3, start=0.0, rng=rng())
    before = noise()
    noise.reset([1])
    assert (noise._x[1] == 0).all() and (noise._x[[0, 2]].astype(np.float32) == before[[0, 2]]).all()


def test_it_never_touches_the_global_generator_and_repeats_with_its_own() -> None:
    state = np.random.get_state()[1].copy()  # noqa: NPY002 (what must not change)
    one, two = (OrnsteinUhlenbeck(2, theta=1.0, sigma=1.0, dt=0.1, rng=rng(5)) for _ in range(2))
    for _ in range(3):
        np.testing.assert_array_equal(one(), two())
    assert one().dtype == np.float32 and (np.random.get_state()[1] == state).all()  # noqa: NPY002


def test_a_step_that_is_not_stationary_is_refused() -> None:
    with pytest.raises(ValueError, match="between 0 and 2"):
        OrnsteinUhlenbeck(1, theta=3.0, sigma=1.0, dt=1.0, rng=rng())


def test_chains_are_standard_gaussian_at_every_step_with_the_correlation_asked_for() -> None:
    chains = ou_chains((0.5, 0.9), 20_000, 4, 2, rng())
    assert chains.shape == (20_000, 4, 2) and chains.dtype == np.float32
    np.testing.assert_allclose(chains.std(0), 1.0, atol=0.02)
    for lag in (1, 2, 3):
        correlation = (chains[:, 0] * chains[:, lag]).mean(0)
        np.testing.assert_allclose(correlation, np.array([0.5, 0.9]) ** lag, atol=0.03)


@pytest.mark.parametrize("rho", [1.0, (0.5, 0.5, 0.5)])
def test_a_correlation_that_makes_no_chain_is_refused(rho: float | tuple[float, ...]) -> None:
    with pytest.raises(ValueError, match="rho is"):
        ou_chains(rho, 1, 2, 2, rng())


def test_the_environments_of_sb3_each_draw_their_own_noise() -> None:
    base = OrnsteinUhlenbeck(2, theta=1.0, sigma=1.0, dt=0.1, rng=rng())
    noise = VectorizedActionNoise(base, 3)
    values = noise()
    assert values.shape == (3, 2) and len(np.unique(values)) == 6
