"""What to do with a folder that exists, by name."""

from typing import Literal

Mode = Literal["append", "overwrite", "error"]
