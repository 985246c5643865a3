"""A way of exploring of one's own: every actuator sways at a pace of its own.

python scripts/benchmark.py --explorers latent-ou:0.8 examples/sway.py:Sway --lags 1 16
"""

import numpy as np


class Sway:
    """Made anew for each episode.

    Args:
        actions: width of an action; actions lie in ±1.
        dt: seconds of a step.
        rng: all randomness comes from it.
    """

    def __init__(self, actions: int, dt: float, rng: np.random.Generator) -> None:
        self.pace = 2 * np.pi * dt * rng.uniform(0.2, 1.0, actions)  # radians per step, of 0.2 to 1 Hz
        self.phase = rng.uniform(0, 2 * np.pi, actions)

    def __call__(self, observation: np.ndarray) -> np.ndarray:
        """Return the next action (actions,)."""
        self.phase = self.phase + self.pace
        return np.sin(self.phase)
