"""Parts of a model that are kept as data: the name of their class, options as JSON, and arrays.

A folder from elsewhere never runs code: classes of this project are known by name, any other is handed in by whoever
loads, or imported where he says that he trusts the folder.
"""

from collections.abc import Collection, Mapping
from importlib import import_module
from typing import Any, Protocol, Self

import numpy as np


class Part(Protocol):
    """What can be kept. Your own classes need these three, and nothing else."""

    def options(self) -> dict[str, Any]:
        """Return what :meth:`rebuilt` needs beside the arrays, as JSON values."""

    def arrays(self) -> dict[str, np.ndarray]:
        """Return the numbers, by name."""

    @classmethod
    def rebuilt(cls, options: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> Self:
        """Make the part anew.

        Raises:
            KeyError, TypeError, ValueError: options or arrays are not those of such a part.
        """


def name_of(part: Part, known: Mapping[str, str]) -> str:
    """Return the name that a part is kept under: that of a known class, else ``module:Name``."""
    kind = type(part)
    name = f"{kind.__module__}:{kind.__qualname__}"
    return next((short for short, full in known.items() if full == name), name)


def class_of(name: str, known: Mapping[str, str], classes: Collection[type] = (), trust: bool = False) -> type[Part]:
    """Return the class of a part that was kept.

    Args:
        name: from :func:`name_of`.
        known: classes of this project by short name, as ``module:Name``.
        classes: others, handed in.
        trust: import it, which runs the code of its module.

    Raises:
        ValueError: the class is none of these, or its module has no such name.
    """
    given = {f"{kind.__module__}:{kind.__qualname__}": kind for kind in classes}
    if name in given:
        return given[name]
    if name not in known and not trust:
        raise ValueError(f"it holds a {name}: hand that class in, or trust the folder, which runs that module's code")
    module, _, qualname = known.get(name, name).partition(":")
    try:
        found: Any = import_module(module)
        for part in qualname.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError, ValueError) as error:
        raise ValueError(f"it holds a {name}, which cannot be imported: {error}") from None
    return found
