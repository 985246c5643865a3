import dataclasses

import numpy as np
import pytest
from short_episodes import episode, episodes

from worldmodel.data.episodes import Episode, stack


def test_actions_and_rewards_are_those_of_their_episode() -> None:
    data = episodes(3, 10, 7)
    for index, part in enumerate(data):
        assert (part.actions == index).all() and len(part.actions) == len(part.frames) - 1
        assert (part.rewards == index).all() and len(part.rewards) == len(part.actions)
    assert data.card.returns == (0 * 2 + 1 * 9 + 2 * 6) / 3


def test_rewards_may_be_unknown() -> None:
    assert np.isnan(dataclasses.replace(episode(5), rewards=None).rewards).all()
    with pytest.raises(ValueError, match="and 3"):
        dataclasses.replace(episode(5), rewards=np.zeros(3, np.float32))


def test_an_episode_needs_one_action_less_than_frames() -> None:
    good = episode(5)
    with pytest.raises(ValueError, match="4 actions"):
        Episode(good.frames, good.states, good.latents, np.zeros((5, 1), np.float32))


@pytest.mark.parametrize("name", ["states", "latents", "actions"])
def test_nan_is_refused(name: str) -> None:
    values = getattr(episode(5), name).copy()
    values[-1, -1] = np.nan
    with pytest.raises(ValueError, match=f"{name} that are not finite"):
        dataclasses.replace(episode(5), **{name: values})


def test_frames_are_uint8_pictures() -> None:
    with pytest.raises(ValueError, match="uint8"):
        dataclasses.replace(episode(5), frames=np.zeros((5, 4, 4, 3)))


def test_splits_are_disjoint_by_episode_and_complete() -> None:
    data = episodes(*[3] * 23)
    parts = [set(part.frames[:, 0, 0, 0].tolist()) for part in (data.train, data.selection, data.heldout)]
    assert sorted(len(part) for part in parts) == [2, 2, 19] and len(set.union(*parts)) == 23


def test_too_few_episodes_cannot_be_split() -> None:
    with pytest.raises(ValueError, match="cannot be split"):
        _ = episodes(3, 3).heldout


def test_no_episodes_is_an_error() -> None:
    with pytest.raises(ValueError, match="empty"):
        stack([])
