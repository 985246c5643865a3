"""Theorem 3 on Ornstein-Uhlenbeck chains, where everything is known."""

import numpy as np
import pytest

from worldmodel.agents.ou import ou_chains
from worldmodel.measures.certificate import certificate

RHO = 0.8


@pytest.fixture(scope="module")
def chains() -> tuple[np.ndarray, np.ndarray]:
    z = ou_chains(RHO, 2_000, 20, 2, np.random.default_rng(0)).reshape(-1, 2).astype(np.float64)
    return z, np.arange(0, len(z) + 1, 20)


def test_the_latents_themselves_leave_no_gap(chains: tuple[np.ndarray, np.ndarray]) -> None:
    z, offsets = chains
    proof = certificate(z, offsets, rho=RHO)
    assert proof.alignment_gap.low < 0 < proof.alignment_gap.high
    assert proof.bound.mean < 0.02


def test_a_quadratic_mode_of_energy_w_adds_two_rho_minus_rho_squared_w(chains: tuple[np.ndarray, np.ndarray]) -> None:
    z, offsets = chains
    w = 0.3
    h = np.stack([z[:, 0], np.sqrt(1 - w) * z[:, 1] + np.sqrt(w) * (z[:, 0] ** 2 - 1) / np.sqrt(2)], axis=1)
    gap = certificate(h, offsets, rho=RHO).alignment_gap
    assert gap.low < 2 * (RHO - RHO**2) * w < gap.high and gap.mean > 0


@pytest.mark.parametrize("strength", [0.2, 0.5, 1.0])
def test_the_true_error_lies_below_the_bound(chains: tuple[np.ndarray, np.ndarray], strength: float) -> None:
    z, offsets = chains
    q = np.array([[0.6, -0.8], [0.8, 0.6]])
    h = z @ q.T + strength * (z[:, ::-1] ** 2 - 1) / np.sqrt(2)
    error = ((h - z @ q.T) ** 2).sum(1).mean()
    assert error < certificate(h, offsets, rho=RHO).bound.mean


def test_scaling_shows_as_whitening_error(chains: tuple[np.ndarray, np.ndarray]) -> None:
    z, offsets = chains
    proof = certificate(2 * z, offsets, rho=RHO)
    assert proof.whitening_error.mean == pytest.approx(np.linalg.norm(3 * np.eye(2)), rel=0.05)


def test_pairs_at_a_longer_lag_certify_with_the_power_of_rho(chains: tuple[np.ndarray, np.ndarray]) -> None:
    z, offsets = chains
    gap = certificate(z, offsets, rho=RHO**3, lag=3).alignment_gap
    assert gap.low < 0 < gap.high


def test_a_gap_that_sampling_made_negative_is_reported_and_adds_nothing(chains: tuple[np.ndarray, np.ndarray]) -> None:
    z, offsets = chains
    proof = certificate(z, offsets, rho=RHO - 0.05)  # asks for a larger gap than these chains have
    assert proof.alignment_gap.mean < 0
    assert proof.bound.mean == pytest.approx(proof.whitening_error.mean**2)


def test_one_episode_leaves_the_interval_open(chains: tuple[np.ndarray, np.ndarray]) -> None:
    proof = certificate(chains[0][:20], np.array([0, 20]), rho=RHO)
    assert np.isfinite(proof.bound.mean) and proof.bound.to_json()["ci95"] == [None, None]


def test_embeddings_that_do_not_fill_the_episodes_are_refused(chains: tuple[np.ndarray, np.ndarray]) -> None:
    z, offsets = chains
    for wrong in (z[:-1], np.where(z == z[0], np.nan, z)):
        with pytest.raises(ValueError, match="finite embeddings of shape"):
            certificate(wrong, offsets, rho=RHO)


def test_a_rho_that_makes_no_theorem_is_refused(chains: tuple[np.ndarray, np.ndarray]) -> None:
    with pytest.raises(ValueError, match="between 0 and 1"):
        certificate(*chains, rho=1.0)
