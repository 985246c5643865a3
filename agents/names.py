"""Algorithms by name."""

from typing import Literal

Algorithm = Literal["sac", "ppo"]
"""Of stable-baselines3."""
