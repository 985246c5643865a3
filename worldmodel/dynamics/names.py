"""Dynamics by name."""

from typing import Literal

DynamicsName = Literal["linear", "kalman", "neural"]
"""Linear over the last embeddings and actions; linear over a Kalman filter's estimate; networks that correct it."""
