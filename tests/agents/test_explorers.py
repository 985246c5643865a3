import numpy as np
import pytest

from worldmodel.agents import ActionOU, LatentOU, RandomActions, explorer
from worldmodel.agents.explorers import DrivingExplorer, PosedExplorer


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
    for name, poses in (("latent-ou", True), ("action-ou", False), ("random", False)):
        kind = explorer(name)
        assert isinstance(kind, PosedExplorer) == poses and isinstance(kind, DrivingExplorer) != poses


@pytest.mark.parametrize("text", ["latent-ou", "latent-ou:0.8", "latent-ou:0.9,0.8", "action-ou:0.5:0.2", "random"])
def test_a_name_says_all_that_the_card_says(text: str) -> None:
    kind = explorer(text)
    assert eval(repr(kind)) == kind  # the card holds the repr


@pytest.mark.parametrize(
    "text, line",
    [
        ("latent-ou:high", "with numbers"),
        ("latent-ou:1.0", "between -1 and 1"),
        ("latent-ou:0.9:0.8", "at most 1"),
        ("action-ou:0.5,0.4", "several numbers"),
        ("action-ou:0.5:0", "positive"),
        ("levy-flight", "unknown explorer"),
    ],
)
def test_a_name_that_makes_no_explorer_is_one_clear_line(text: str, line: str) -> None:
    with pytest.raises(ValueError, match=line):
        explorer(text)
