"""Importance weights towards a Gaussian."""

import numpy as np
import pytest
from scipy import stats

from worldmodel.encoders.resampling import gaussian_weights
from worldmodel.stats.linear import whiten


def kurtosis(x: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Weighted excess kurtosis of each column."""
    centred = x - np.average(x, axis=0, weights=weights)
    second, fourth = (np.average(centred**power, axis=0, weights=weights) for power in (2, 4))
    return fourth / second**2 - 3


def test_a_uniform_square_becomes_a_gaussian_cut_off_at_its_edges() -> None:
    h = np.random.default_rng(0).uniform(-1, 1, (20_000, 2))
    weights = gaussian_weights(h)
    assert np.allclose(kurtosis(h, np.ones(len(h))), -1.2, atol=0.05)
    truncated = stats.truncnorm(-np.sqrt(3), np.sqrt(3)).stats("k")  # the square ends at √3 standard deviations
    assert np.allclose(kurtosis(h, weights), truncated, atol=0.1)
    narrow = stats.truncnorm(-2 * np.sqrt(3), 2 * np.sqrt(3)).stats("k")
    assert np.allclose(kurtosis(h, gaussian_weights(h, std=0.5, most=20.0)), narrow, atol=0.1)


def test_a_gaussian_is_left_alone() -> None:
    weights = gaussian_weights(np.random.default_rng(0).standard_normal((20_000, 2)))
    assert np.quantile(weights, 0.05) > 0.5 and np.quantile(weights, 0.95) < 1.6


def test_weights_have_mean_1_and_no_frame_stands_for_all() -> None:
    h = np.random.default_rng(0).standard_cauchy((5_000, 2))
    weights = gaussian_weights(h, most=3.0)
    assert weights.mean() == pytest.approx(1) and weights.max() <= 3.0 * 1.01 and weights.min() >= 0


def test_turning_and_stretching_the_embedding_changes_nothing() -> None:
    rng = np.random.default_rng(0)
    h = rng.uniform(-1, 1, (2_000, 2))
    assert np.allclose(gaussian_weights(h), gaussian_weights(h @ rng.standard_normal((2, 2)) + 3))


def test_too_few_embeddings_are_refused() -> None:
    with pytest.raises(ValueError, match="too few"):
        gaussian_weights(np.zeros((50, 2)))


def test_whitening_leaves_out_what_has_no_spread() -> None:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((500, 2)) @ rng.standard_normal((2, 3))
    white = whiten(x)
    assert white.shape == (500, 2) and np.allclose(white.T @ white / 500, np.eye(2)) and np.allclose(white.mean(0), 0)
