"""Angles on a circle."""

import math

import numpy as np
import pytest

from worldmodel.measures.circle import fit_angle_reader, measure_circle, on_circle


def circle(count: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Angles all the way round and more, and an embedding that holds them as a circle beside something else."""
    rng = np.random.default_rng(seed)
    angles = rng.uniform(-9, 9, (count, 1))
    noise = rng.standard_normal((count, 1))
    mix = np.random.default_rng(5).standard_normal((3, 3))
    return angles, np.hstack([on_circle(angles), noise]) @ mix + 1.0


def test_a_turned_and_stretched_circle_is_read_exactly() -> None:
    angles, h = circle(500)
    reader = fit_angle_reader(h[:250], angles[:250])
    assert np.allclose(on_circle(reader(h[250:])), on_circle(angles[250:]))
    report = measure_circle(h[:250], angles[:250], h[250:], angles[250:])
    assert np.allclose([report.r2_cos, report.r2_sin, report.r2_angle], 1)


def test_whole_turns_make_no_difference() -> None:
    angles, h = circle(500)
    turned = angles + 2 * math.pi * np.random.default_rng(1).integers(-3, 4, angles.shape)
    one, two = (measure_circle(h[:250], x[:250], h[250:], x[250:]) for x in (angles, turned))
    assert one.r2_angle == pytest.approx(two.r2_angle) and one.r2_cos == pytest.approx(two.r2_cos)


def test_an_embedding_that_knows_nothing_reads_nothing() -> None:
    angles, _ = circle(2_000)
    h = np.random.default_rng(2).standard_normal((2_000, 2))
    report = measure_circle(h[:1_000], angles[:1_000], h[1_000:], angles[1_000:])
    assert max(*report.r2_cos, *report.r2_sin, *report.r2_angle) < 0.05
