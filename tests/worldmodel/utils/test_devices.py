"""How many threads torch gets."""

import os

import pytest
import torch

from worldmodel.scripts.speed.turns import torch_threads
from worldmodel.utils.devices import one_core_spared


def threads() -> int:
    with one_core_spared():
        return torch.get_num_threads()


def test_one_core_is_left_to_others_unless_the_user_has_all(monkeypatch: pytest.MonkeyPatch) -> None:
    cores = os.cpu_count() or 1
    with torch_threads(cores):
        monkeypatch.delenv("WORLDMODEL_THREADS", raising=False)
        assert threads() == max(1, cores - 1)
        monkeypatch.setenv("WORLDMODEL_THREADS", str(cores))
        assert threads() == cores == torch.get_num_threads()


def test_a_worker_with_one_thread_keeps_to_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORLDMODEL_THREADS", "2")
    with torch_threads(1):
        assert threads() == 1


@pytest.mark.parametrize("text", ["0", "-1", "two", "1.5"])
def test_a_wrong_number_of_threads_is_one_clear_line(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORLDMODEL_THREADS", text)
    with pytest.raises(ValueError, match=f"WORLDMODEL_THREADS is '{text}'"):
        threads()
