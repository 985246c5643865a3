import numpy as np
import pytest

from worldmodel.data.pairs import pair_indices, window_indices


def test_episodes_of_3_10_and_7_frames_have_11_windows_of_4() -> None:
    assert window_indices(np.array([0, 3, 13, 20]), 4).tolist() == [*range(3, 10), *range(13, 17)]


@pytest.mark.parametrize("lag", [1, 2, 6, 9, 10])
def test_no_pair_crosses_an_episode_and_none_is_missing(lag: int) -> None:
    owner = np.repeat([0, 1, 2], [3, 10, 7])
    every = [t for t in range(20 - lag) if owner[t] == owner[t + lag]]
    assert pair_indices(np.array([0, 3, 13, 20]), lag).tolist() == every


@pytest.mark.parametrize("lag", [0, -1])
def test_a_lag_below_one_is_refused(lag: int) -> None:
    with pytest.raises(ValueError, match="at least 1"):
        pair_indices(np.array([0, 3]), lag)


def test_a_window_below_one_frame_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 1"):
        window_indices(np.array([0, 3]), 0)
