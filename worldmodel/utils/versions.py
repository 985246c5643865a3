"""The versions that a result depends on."""

import platform
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version

_PACKAGES = ("worldmodel", "dm_control", "gymnasium", "mujoco", "numpy", "shimmy", "stable_baselines3", "torch", "zarr")


def versions(others: Sequence[str] = ()) -> dict[str, str]:
    """Return the versions of Python and of the packages that decide what a run gives, as far as installed.

    Args:
        others: packages to name beside them.

    >>> "numpy" in versions()
    True
    """
    found = {"python": platform.python_version()}
    for package in (*_PACKAGES, *others):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found
