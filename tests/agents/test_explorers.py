from pathlib import Path

import numpy as np
import pytest

from worldmodel.agents import (
    ActionOU,
    CallablePolicy,
    LatentLaw,
    LatentOU,
    Mixture,
    RandomActions,
    SB3Policy,
    TrackingOU,
    explorer,
)
from worldmodel.agents.explorers import PosedExplorer
from worldmodel.agents.policies import DrivingExplorer, EnvironmentExplorer


def drive(driver: DrivingExplorer, dt: float, steps: int = 20_000, seed: int = 0) -> np.ndarray:
    policy = driver.policy(2, dt, np.random.default_rng(seed))
    return np.stack([policy(np.zeros(3)) for _ in range(steps)])


@pytest.mark.parametrize("dt", [0.02, 0.04])
def test_ou_actions_forget_at_the_same_pace_in_seconds_whatever_the_step(dt: float) -> None:
    actions = drive(ActionOU(std=0.3, correlation_time=0.2), dt)
    lag = round(0.2 / dt)
    correlation = np.mean(actions[:-lag] * actions[lag:]) / actions.var()
    assert correlation == pytest.approx(np.exp(-1), abs=0.05) and actions.std() == pytest.approx(0.3, rel=0.05)


def test_actions_stay_within_one_and_are_float32() -> None:
    for driver in (ActionOU(std=2.0), RandomActions()):
        actions = drive(driver, 0.02, steps=500)
        assert actions.dtype == np.float32 and np.abs(actions).max() <= 1


def test_random_actions_are_independent_and_uniform() -> None:
    actions = drive(RandomActions(), 0.02)
    assert actions.std() == pytest.approx(1 / np.sqrt(3), rel=0.02)
    assert abs(np.mean(actions[1:] * actions[:-1])) < 0.01


def test_the_same_generator_gives_the_same_actions_and_another_one_others() -> None:
    for driver in (ActionOU(), RandomActions()):
        np.testing.assert_array_equal(drive(driver, 0.02, 5), drive(driver, 0.02, 5))
        assert not np.array_equal(drive(driver, 0.02, 5), drive(driver, 0.02, 5, seed=1))


def test_each_latent_may_have_its_own_correlation() -> None:
    chains = LatentOU((0.2, 0.9)).chains(5_000, 2, 2, np.random.default_rng(0))
    assert (chains[:, 0] * chains[:, 1]).mean(0) == pytest.approx((0.2, 0.9), abs=0.06)


def test_an_explorer_either_poses_or_drives() -> None:
    posed, driving = (
        ("latent-ou", "latent-law:uniform"),
        ("action-ou", "random", "tracking-ou", "mix:0.1:random+random"),
    )
    for name in (*posed, *driving):
        kind = explorer(name)
        assert isinstance(kind, PosedExplorer) == (name in posed)
        assert isinstance(kind, DrivingExplorer | EnvironmentExplorer) == (name in driving)


@pytest.mark.parametrize(
    "text",
    [
        "latent-ou",
        "latent-ou:0.8",
        "latent-ou:0.9,0.8",
        "latent-law:uniform",
        "latent-law:laplace:0.9,0.8",
        "latent-law:gennorm:4:0.5",
        "action-ou:0.5:0.2",
        "random",
        "tracking-ou",
        "tracking-ou:2:0.5",
        "mix:0.2:action-ou:0.5:0.2+random",
        "mix:.25:10:tracking-ou:2+mix:1:random+action-ou",
    ],
)
def test_a_name_says_all_that_the_card_says(text: str) -> None:
    kind = explorer(text)
    assert eval(repr(kind)) == kind  # the card holds the repr


def test_numbers_go_to_the_fields_in_their_order() -> None:
    assert explorer("latent-ou:0.9") == LatentOU(0.9) and repr(LatentOU(0.9)) == "LatentOU(rho=0.9)"
    assert explorer("latent-law:gennorm:4:0.5") == LatentLaw("gennorm:4", 0.5)
    assert explorer("latent-law:gennorm:4") == LatentLaw("gennorm:4")
    assert explorer("tracking-ou:2:0.5") == TrackingOU(correlation_time=2, std=0.5)
    assert explorer("mix:0.2:action-ou:0.5:0.3+random") == Mixture(ActionOU(0.5, 0.3), RandomActions(), 0.2)
    nested = Mixture(TrackingOU(), Mixture(RandomActions(), ActionOU(), 1.0), 0.5, segment=10)
    assert explorer("mix:0.5:10:tracking-ou+mix:1:random+action-ou") == nested


def test_paths_and_names_are_explorers_too(tmp_path: Path) -> None:
    model, rules = tmp_path / "model+1.zip", tmp_path / "rules.py"
    model.write_bytes(b"model")
    rules.write_text("act = None")
    assert explorer(f"ppo:{model}") == SB3Policy(str(model), "ppo")
    assert explorer(f"sac:{model}:deterministic") == SB3Policy(str(model), "sac", deterministic=True)
    assert explorer(f"{rules}:act") == CallablePolicy(f"{rules}:act")
    assert explorer(f"mix:0.1:random+td3:{model}") == Mixture(RandomActions(), SB3Policy(str(model), "td3"), 0.1)
    assert explorer("worldmodel.agents.ou:ou_chains") == CallablePolicy("worldmodel.agents.ou:ou_chains")


@pytest.mark.parametrize(
    "text, line",
    [
        ("latent-ou:high", "with numbers"),
        ("latent-ou:1.0", "between -1 and 1"),
        ("latent-ou:0.9:0.8", "at most 1"),
        ("action-ou:0.5,0.4", "several numbers"),
        ("action-ou:0.5:0", "positive"),
        ("levy-flight", "unknown explorer"),
        ("latent-uo:0.9", "nearest: latent-ou"),
        ("tracking", "nearest: tracking-ou"),
        ("latent-law", "write latent-law:LAW:RHO"),
        ("latent-law:cauchy:0.9", "unknown law 'cauchy'"),
        ("latent-law:uniform:high", "latent-law"),
        ("latent-law:uniform:0.9:0.8", "write latent-law:LAW:RHO"),
        ("tracking-ou:0", "positive"),
        ("tracking-ou:1,2", "several numbers"),
        ("sac", "write sac:PATH"),
        ("sac:nowhere.zip", "nowhere.zip cannot be read"),
        ("mix:0.2:random", "write mix:EPSILON:FIRST"),
        ("mix:2:random+random", "between 0 and 1"),
        ("mix:0.2:random+latent-ou", "does not drive"),
        ("mix:0.2:random+randm", "nearest: random"),
        ("no_such_module:Policy", "no module 'no_such_module'"),
    ],
)
def test_a_name_that_makes_no_explorer_is_one_clear_line(text: str, line: str) -> None:
    with pytest.raises(ValueError, match=line):
        explorer(text)
