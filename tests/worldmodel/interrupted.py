"""An objective that ends its run, as somebody who presses Ctrl-C does."""

import torch

from worldmodel.encoders.objectives import LeJEPA, ObjectiveValue


def interrupted(step: int) -> LeJEPA:
    """LeJEPA that is interrupted in a step of training, counted from 1."""
    calls = 0

    class Interrupted(LeJEPA):
        def __call__(self, views: torch.Tensor, generator: torch.Generator) -> ObjectiveValue:
            nonlocal calls
            calls += 1
            if calls == step:
                raise KeyboardInterrupt
            return super().__call__(views, generator)

    Interrupted.__qualname__ = "LeJEPA"  # the same objective, by what is on record
    return Interrupted()
