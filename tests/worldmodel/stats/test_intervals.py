import numpy as np
import pytest

from worldmodel.stats.intervals import Interval, bootstrap, equivalence, ratio_interval, resample, t_interval, wilson


@pytest.mark.parametrize("episodes", [1, 50])
def test_five_seeds_are_five_values_however_many_episodes_each_has(episodes: int) -> None:
    per_seed = np.array([[mean] * episodes for mean in (1, 2, 3, 4, 5)]).mean(1)
    interval = t_interval(per_seed)
    assert (interval.mean, interval.high - interval.mean) == (3, pytest.approx(1.963, abs=1e-3))


def test_seven_of_ten_successes() -> None:
    interval = wilson(7, 10)
    assert (interval.low, interval.high) == (pytest.approx(0.397, abs=1e-3), pytest.approx(0.892, abs=1e-3))


def test_no_failure_does_not_mean_certainty() -> None:
    assert wilson(100, 100).low == pytest.approx(0.963, abs=1e-3)


def test_the_bootstrap_agrees_with_the_t_interval_on_many_gaussian_values() -> None:
    values = np.random.default_rng(0).standard_normal(400)
    ours, exact = bootstrap(values), t_interval(values)
    assert (ours.low, ours.high) == (pytest.approx(exact.low, abs=0.02), pytest.approx(exact.high, abs=0.02))


def test_the_bootstrap_draws_whole_rows() -> None:
    chains = np.repeat(np.random.default_rng(0).standard_normal((30, 1)), 100, axis=1)  # one value per chain
    interval = bootstrap(chains)
    assert interval.high - interval.low == pytest.approx(4 * chains[:, 0].std() / np.sqrt(30), rel=0.2)


def test_equivalence_needs_both_ends_within_the_margin() -> None:
    values = np.random.default_rng(0).normal(0.01, 0.02, 100)
    assert equivalence(values, 0.05).equivalent
    assert not equivalence(values, 0.011).equivalent
    assert not equivalence(values[:3] * 20, 0.05).equivalent  # few noisy values show nothing


def test_one_value_says_nothing_about_its_spread() -> None:
    for interval in (t_interval([2.0]), bootstrap(np.array([2.0]))):
        assert (interval.mean, interval.low, interval.high) == (2.0, -np.inf, np.inf)
    assert not equivalence([0.0], 0.05).equivalent


def test_statistics_that_are_resampled_together_see_the_same_draws() -> None:
    values = np.random.default_rng(0).standard_normal(50)
    mean, doubled = resample(lambda chosen: [values[chosen].mean(), 2 * values[chosen].mean()], 50)
    assert (doubled.mean, doubled.low, doubled.high) == (2 * mean.mean, 2 * mean.low, 2 * mean.high)


def test_the_same_seed_gives_the_same_interval() -> None:
    values = np.random.default_rng(0).standard_normal(50)
    assert bootstrap(values, seed=1) == bootstrap(values, seed=1) != bootstrap(values, seed=2)


def test_json_has_mean_and_interval() -> None:
    assert Interval(1.0, 0.5, 1.5).to_json() == {"mean": 1.0, "ci95": [0.5, 1.5]}
    assert Interval(1.0, -np.inf, np.inf).to_json() == {"mean": 1.0, "ci95": [None, None]}


@pytest.mark.parametrize("values", [[], [1.0, np.nan]])
def test_nan_and_nothing_are_refused(values: list[float]) -> None:
    for interval in (t_interval, bootstrap, lambda v: equivalence(v, 0.1)):
        with pytest.raises(ValueError, match="finite"):
            interval(values)


def test_a_rate_of_no_trials_and_a_margin_of_nothing_are_refused() -> None:
    with pytest.raises(ValueError, match="at least one trial"):
        wilson(0, 0)
    with pytest.raises(ValueError, match="positive"):
        equivalence([0.1, 0.2], 0.0)


def test_ratios_are_averaged_by_their_logarithms() -> None:
    interval = ratio_interval([0.5, 2.0])
    assert interval.mean == pytest.approx(1.0) and interval.low > 0
    turned = ratio_interval([2.0, 0.5])
    assert turned.low * interval.high == pytest.approx(1.0)
    with pytest.raises(ValueError, match="positive"):
        ratio_interval([1.0, 0.0])


def test_an_interval_is_written_for_people() -> None:
    assert Interval(0.5, 0.25, 1.0).text(2) == "0.50 [0.25, 1.00]"
    assert t_interval([0.5]).text(2) == "0.50"
