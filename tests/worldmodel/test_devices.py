"""How many threads torch gets."""

import os

import pytest
import torch

from worldmodel.devices import one_core_spared


def threads() -> int:
    with one_core_spared():
        return torch.get_num_threads()


def test_one_core_is_left_to_others_unless_the_user_has_all(monkeypatch: pytest.MonkeyPatch) -> None:
    before = torch.get_num_threads()
    monkeypatch.delenv("WORLDMODEL_THREADS", raising=False)
    assert threads() == max(1, min(before, (os.cpu_count() or 1) - 1))
    monkeypatch.setenv("WORLDMODEL_THREADS", "3")
    assert threads() == 3 and torch.get_num_threads() == before


@pytest.mark.parametrize("text", ["0", "-1", "two", "1.5"])
def test_a_wrong_number_of_threads_is_one_clear_line(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORLDMODEL_THREADS", text)
    with pytest.raises(ValueError, match=f"WORLDMODEL_THREADS is '{text}'"):
        threads()
