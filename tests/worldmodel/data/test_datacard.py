from pathlib import Path

import numpy as np
import pytest
from short_episodes import IDENTITY, episodes

from worldmodel.agents.ou import ou_chains
from worldmodel.data.datacard import DataCard, describe, lag_correlation


def test_a_card_is_read_as_it_was_written(tmp_path: Path) -> None:
    card = episodes(5, 6, 7).card
    card.save(tmp_path / "card.json")
    assert DataCard.load(tmp_path / "card.json") == card


def test_correlation_is_taken_inside_episodes() -> None:
    chains = ou_chains(0.7, 500, 20, 2, np.random.default_rng(0))
    offsets = np.arange(0, 10_001, 20)
    for lag in (1, 3):
        assert lag_correlation(chains.reshape(-1, 2), offsets, lag) == pytest.approx((0.7**lag, 0.7**lag), abs=0.03)


def test_uniform_noise_is_told_from_a_policy_by_its_autocorrelation() -> None:
    actions = np.random.default_rng(0).uniform(-1, 1, (1980, 1)).astype(np.float32)
    latents = np.random.default_rng(1).standard_normal((2000, 2)).astype(np.float32)
    card = describe(latents, actions, np.arange(0, 2001, 100), **IDENTITY)
    assert card.action_std == pytest.approx((1 / np.sqrt(3),), abs=0.02)
    assert card.action_autocorrelation == pytest.approx((0,), abs=0.08)


def test_a_latent_that_never_moves_has_no_correlation(tmp_path: Path) -> None:
    still = np.random.default_rng(0).standard_normal((100, 2)) * [1, 0]
    card = describe(still, np.zeros((98, 0)), np.array([0, 50, 100]), **IDENTITY)
    assert card.to_json()["rho"][1] is None and card.to_json()["gaussianity"]["anisotropy"] is None
    card.save(tmp_path / "card.json")
    assert np.isnan(DataCard.load(tmp_path / "card.json").rho[1])


def test_data_without_latents_has_a_card_that_claims_nothing_of_them(tmp_path: Path) -> None:
    identity = IDENTITY | {"latent_names": (), "latent_scales": ()}
    card = describe(np.zeros((20, 0)), np.zeros((18, 1)), np.array([0, 10, 20]), **identity)
    assert card.rho == card.mean == () and np.isnan(card.mean_rho) and np.isnan(card.gaussianity.coverage)
    card.save(tmp_path / "card.json")
    assert DataCard.load(tmp_path / "card.json").to_json() == card.to_json()


@pytest.mark.parametrize("text", ["{", "[]", "{}", '{"gaussianity": {"beauty": 1}}'])
def test_a_file_that_is_no_card_is_one_clear_error(text: str, tmp_path: Path) -> None:
    (tmp_path / "card.json").write_text(text)
    with pytest.raises(ValueError, match="is no data card"):
        DataCard.load(tmp_path / "card.json")
