"""Rankings with paired comparisons."""

import numpy as np
import pytest
from scipy import stats

from worldmodel.stats.ranking import rank


def test_the_best_mean_comes_first_and_differences_are_paired() -> None:
    scores = {"low": [0.5, 0.6, 0.7], "high": [0.6, 0.7, 0.8]}  # far apart seed by seed, not in their spread
    first, second = rank(scores)
    assert (first.name, first.behind, first.tied) == ("high", None, True)
    assert second.behind is not None and second.behind.mean == pytest.approx(0.1)
    assert second.p < 1e-9 and not second.tied


def test_what_cannot_be_told_apart_is_tied() -> None:
    rng = np.random.default_rng(0)
    _, second = rank({"a": rng.normal(size=5), "b": rng.normal(size=5)})
    assert second.tied and second.p > 0.05


def test_the_smaller_may_be_the_better() -> None:
    first, second = rank({"a": [3.0, 4.0], "b": [1.0, 2.0]}, larger_is_better=False)
    assert first.name == "b" and second.behind is not None and second.behind.mean == 2.0


def test_p_values_are_corrected_for_the_number_of_tests() -> None:
    rng = np.random.default_rng(3)
    best = rng.normal(size=6) + 1.5
    others = {name: rng.normal(size=6) for name in "bcd"}
    raw = {name: stats.ttest_rel(best, row).pvalue for name, row in others.items()}
    places = {place.name: place.p for place in rank({"a": best, **others})}
    order = sorted(raw, key=lambda name: raw[name])
    expected = np.minimum(1, np.maximum.accumulate([raw[name] * (3 - i) for i, name in enumerate(order)]))
    assert [places[name] for name in order] == pytest.approx(expected.tolist())


def test_a_single_seed_tells_nothing_apart() -> None:
    _, second = rank({"a": [1.0], "b": [0.0]})
    assert second.tied and second.p == 1 and second.behind is not None and second.behind.high == np.inf


def test_seeds_have_to_match() -> None:
    with pytest.raises(ValueError, match="same seeds"):
        rank({"a": [1.0], "b": [0.0, 1.0]})
