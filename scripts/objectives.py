"""The objectives that command lines offer, by name."""

from typing import Annotated, Literal

import tyro

from worldmodel.objectives import BarlowTwins, InfoNCE, LeJEPA, Objective, VICReg, Whitening

AnyObjective = (
    Annotated[LeJEPA, tyro.conf.subcommand("lejepa", prefix_name=False)]
    | Annotated[Whitening, tyro.conf.subcommand("whitening", prefix_name=False)]
    | Annotated[VICReg, tyro.conf.subcommand("vicreg", prefix_name=False)]
    | Annotated[InfoNCE, tyro.conf.subcommand("infonce", prefix_name=False)]
    | Annotated[BarlowTwins, tyro.conf.subcommand("barlow-twins", prefix_name=False)]
)
"""An objective and its options, chosen by a word after the other options; LeJEPA where there is none."""

ObjectiveName = Literal["lejepa", "whitening", "vicreg", "infonce", "barlow-twins", "slow-features"]
"""Names of objectives in synthetic worlds; slow features have a closed form and are not trained."""


def synthetic_objective(name: ObjectiveName) -> Objective | None:
    """Return an objective with the weights that suit synthetic worlds; None for slow features."""
    objectives: dict[str, Objective] = {
        "lejepa": LeJEPA(weight=1e-3, slices=64),
        "whitening": Whitening(),
        "vicreg": VICReg(),
        "infonce": InfoNCE(sigma=1.0),
        "barlow-twins": BarlowTwins(),
    }
    return objectives.get(name)
