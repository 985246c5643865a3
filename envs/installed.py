"""The simulator's packages, imported without what they say that no user can act on."""

import sys
from contextlib import redirect_stdout
from importlib import import_module
from importlib.util import find_spec
from io import StringIO

_NUISANCE = "registration of `dm_control` locomotion envs has failed"  # they need labmaze, which 3.13 has no wheel for


def import_simulator() -> None:
    """Import dm_control, and shimmy, which registers tasks that this package does not use.

    Raises:
        ImportError: dm_control is not installed; the line says how to, which differs between versions of Python.
    """
    if find_spec("dm_control") is None:
        raise ImportError(f"dm_control is not installed: {_advice()}")
    said = StringIO()
    with redirect_stdout(said):
        import_module("shimmy")
    print("".join(line for line in said.getvalue().splitlines(keepends=True) if _NUISANCE not in line), end="")


def _advice() -> str:
    if sys.version_info < (3, 13):
        return "pip install dm_control"
    return "pip install --no-deps dm_control (its labmaze, which has no wheel for this Python, is not needed)"
