"""Choices about latents that were made by looking at the pictures, where the rule of `latents.py` does not serve.

What was looked at: at z = 0 and z = ±2 in every coordinate, and at random z ~ N(0, 1), the body stays inside a square
picture of camera 0, above the floor (which hides what is below it), and no coordinate is hidden behind another part.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Pose:
    """How a joint is centred and scaled.

    Attributes:
        mean: Position at z = 0 in rad or m, or None for the rule's.
        scale: Change of position per unit of z in rad or m, or None for the rule's.
        period: Turn in rad after which a free hinge looks the same.
    """

    mean: float | None = None
    scale: float | None = None
    period: float = 2 * math.pi


_TURN = 2 * math.pi
_FINGER = {
    "proximal": Pose(mean=-0.9, scale=0.3),  # hangs beside the spinner; straight out it would cover it
    "distal": Pose(scale=0.5),
}

_BOXES: dict[str, Pose | str] = {}
for _i in range(4):  # side by side; a square looks the same after a quarter turn
    _BOXES[f"box{_i}_x"] = Pose(mean=0.36 - 0.24 * _i, scale=0.04)
    _BOXES[f"box{_i}_z"] = Pose(mean=0.15, scale=0.04)
    _BOXES[f"box{_i}_y"] = Pose(scale=_TURN / 36, period=_TURN / 4)

_CURATED: dict[str, dict[str, Pose | str]] = {
    "reacher": {
        "wrist": Pose(scale=0.6),  # beyond 2.3 rad the forearm lies over the upper arm: 4 sigma away
        "target_x": Pose(scale=0.09),  # as far as the task throws it; three scales end inside the walls
        "target_y": Pose(scale=0.09),
    },
    "point_mass": {"root_x": Pose(scale=0.08), "root_y": Pose(scale=0.08)},  # three scales end inside the walls
    "cartpole": {"slider": Pose(scale=0.3)},  # more, and a falling pole leaves the picture
    "cartpole-three_poles": {  # a bow: straight up it would leave the picture
        "slider": Pose(scale=0.3),
        "hinge_1": Pose(mean=-1.0, scale=0.4),
        "hinge_2": Pose(mean=1.0, scale=0.4),
        "hinge_3": Pose(mean=1.0, scale=0.4),
    },
    "pendulum": {"hinge": Pose(mean=0.0)},  # upright
    "acrobot": {"shoulder": Pose(mean=0.0), "elbow": Pose(mean=0.0)},  # upright, stretched
    "finger": {**_FINGER, "hinge": Pose(mean=0.0)},  # the red tip tells the ends of the spinner apart
    "finger-spin": {**_FINGER, "hinge": Pose(mean=0.0, period=_TURN / 2)},  # no tip here: half a turn looks the same
    "ball_in_cup": {
        "cup_x": Pose(scale=0.06),
        "cup_z": Pose(mean=-0.04, scale=0.05),
        "ball_x": Pose(scale=0.06),
        "ball_z": Pose(mean=0.12, scale=0.04),  # nearer to the cup, so that the string is seldom taut
    },
    "cheetah": {
        "rootz": Pose(mean=0.3, scale=0.08),  # off the floor, which still shows
        "rooty": Pose(mean=0.0, scale=0.25),
        "bfoot": Pose(mean=-0.6, scale=0.4),  # the middle of its range folds it into the shin
    },
    "hopper": {
        "rootz": Pose(mean=0.15, scale=0.07),
        "rooty": Pose(mean=0.0, scale=0.4),
    },
    "walker": {
        "rootz": Pose(mean=0.1, scale=0.06),
        "rooty": Pose(mean=0.0, scale=0.3),
        "right_hip": Pose(mean=1.2, scale=0.18),  # the legs look alike: the right one stays in front of the left one
        "left_hip": Pose(mean=0.2, scale=0.18),
    },
    "manipulator": {
        "ball_x": Pose(mean=0.3, scale=0.05),
        "ball_z": Pose(mean=0.2, scale=0.05),
        "ball_y": "a ball looks the same at every angle",
        "peg_x": Pose(mean=-0.3, scale=0.05),
        "peg_z": Pose(mean=0.2, scale=0.05),
    },
    "stacker": _BOXES,
}


def curated(domain: str, task: str) -> Mapping[str, Pose | str]:
    """Choices for a task: joint to pose, or to the reason why it is left out; joints not named follow the rule."""
    return _CURATED.get(f"{domain}-{task}", _CURATED.get(domain, {}))
