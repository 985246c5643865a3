"""Where work fans out to, by name."""

from typing import Literal

Backend = Literal["loky", "ray"]
"""Where workers run: processes of this machine, or a Ray cluster (one of this machine where none is joined)."""
