import signal

import pytest

from worldmodel.utils.endings import how_it_ended, what_to_try


@pytest.mark.parametrize("by", [signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS, signal.SIGILL, signal.SIGFPE])
def test_a_crash_has_its_name_and_sends_to_the_doctor(by: signal.Signals) -> None:
    ending = how_it_ended(-by)
    assert ending == by.name and "worldmodel doctor" in what_to_try(ending)


def test_a_kill_is_taken_for_want_of_memory() -> None:
    assert "fewer --processes or --jobs" in what_to_try(how_it_ended(-signal.SIGKILL))


def test_a_crash_outweighs_the_workers_that_were_killed_after_it() -> None:
    assert "worldmodel doctor" in what_to_try("SIGKILL", "SIGSEGV")


def test_what_has_no_name_is_a_number() -> None:
    assert how_it_ended(-250) == "signal 250" and how_it_ended(3) == "exit status 3"
    assert what_to_try("signal 250", "exit status 3") == ""
