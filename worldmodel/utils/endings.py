"""How a process ended, in words, and what to try."""

import signal

_CRASHES = {"SIGSEGV", "SIGABRT", "SIGBUS", "SIGILL", "SIGFPE"}


def how_it_ended(returncode: int) -> str:
    """Name the signal that ended a process, or its exit status.

    Args:
        returncode: as `subprocess` and `multiprocessing` give it: minus the signal's number, or the exit status.

    >>> how_it_ended(-11), how_it_ended(3)
    ('SIGSEGV', 'exit status 3')
    """
    if returncode >= 0:
        return f"exit status {returncode}"
    try:
        return signal.Signals(-returncode).name
    except ValueError:
        return f"signal {-returncode}"


def what_to_try(*endings: str) -> str:
    """Advise whoever reads `how_it_ended`; empty where nothing is known of it.

    >>> what_to_try("exit status 0")
    ''
    """
    if _CRASHES & set(endings):
        return "a library crashed: `worldmodel doctor` tries each part alone"
    if "SIGKILL" in endings:
        return "memory has probably run out: take fewer --processes or --jobs, or smaller batches"
    return ""
