import itertools
import math

import numpy as np
import pytest

from worldmodel.measures.ceiling import aliased_r2, sampled_r2


@pytest.mark.parametrize(
    ("sigma", "expected", "digits"),
    [(1.0, 0.9489, 4), (0.9, 0.9819, 4), (0.8, 0.9959, 4), (0.7, 0.9995, 4), (0.6, 0.99999, 5)],
)
def test_an_angle_seen_modulo_a_full_turn_has_the_known_ceiling(sigma: float, expected: float, digits: int) -> None:
    assert round(aliased_r2(sigma, 2 * math.pi), digits) == expected


def test_only_the_ratio_of_sigma_to_period_matters() -> None:
    assert aliased_r2(0.5, math.pi) == pytest.approx(aliased_r2(1.0, 2 * math.pi), abs=1e-12)


def test_the_ceiling_falls_with_sigma_from_one_towards_zero() -> None:
    ceilings = [aliased_r2(sigma, 1.0) for sigma in (1e-6, 0.1, 0.2, 0.4, 3.0)]
    assert ceilings[0] == 1.0
    assert all(a > b for a, b in itertools.pairwise(ceilings))
    assert 0 <= ceilings[-1] < 0.01


def test_no_regression_on_the_seen_angle_beats_the_ceiling() -> None:
    angle = np.random.default_rng(0).normal(size=400_000)
    seen = (angle + math.pi) % (2 * math.pi) - math.pi
    bins = np.digitize(seen, np.linspace(-math.pi, math.pi, 400))
    guess = (np.bincount(bins, angle, 402) / np.maximum(np.bincount(bins, minlength=402), 1))[bins]
    r2 = 1 - np.mean((angle - guess) ** 2) / angle.var()
    assert r2 == pytest.approx(aliased_r2(1.0, 2 * math.pi), abs=3e-3)


@pytest.mark.parametrize(("sigma", "period"), [(0.0, 1.0), (1.0, -1.0), (math.nan, 1.0), (1.0, math.inf)])
def test_numbers_that_are_no_scale_are_refused(sigma: float, period: float) -> None:
    with pytest.raises(ValueError, match="positive finite number"):
        aliased_r2(sigma, period)


@pytest.mark.parametrize("sigma", [0.7, 1.0, 1.5])
def test_draws_give_the_ceiling_of_a_gaussian(sigma: float) -> None:
    draws = sigma * np.random.default_rng(0).standard_normal(400_000)
    assert sampled_r2(draws, 2 * math.pi) == pytest.approx(aliased_r2(sigma, 2 * math.pi), abs=0.002)


def test_draws_within_one_turn_lose_nothing() -> None:
    assert sampled_r2(np.random.default_rng(0).uniform(-3, 3, 20_000), 2 * math.pi) == 1.0


def test_too_few_draws_are_refused() -> None:
    with pytest.raises(ValueError, match="too few"):
        sampled_r2(np.zeros(100), 1.0)
