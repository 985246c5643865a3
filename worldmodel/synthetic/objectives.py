"""The objectives by name, with the weights that suit synthetic worlds."""

from typing import Literal

from worldmodel.encoders.objectives import BarlowTwins, InfoNCE, LeJEPA, Objective, VICReg, Whitening

ObjectiveName = Literal["lejepa", "whitening", "vicreg", "infonce", "infonce-matched", "barlow-twins", "slow-features"]
"""Names of objectives in synthetic worlds; slow features have a closed form and are not trained."""


def synthetic_objective(name: ObjectiveName, correlation: float, keeps_volumes: bool = False) -> Objective | None:
    """Return an objective with the weights that suit synthetic worlds; None for slow features.

    Args:
        name: of the objective.
        correlation: of the two views, which a matched InfoNCE must know.
        keeps_volumes: the encoder cannot shrink, as a coupling cannot. A little whitening then suffices, and keeps more
            runs out of local optima (8 latents: R² 0.999999 with a weight of 0.02, 0.83 to 0.99 with 0.5); an MLP on
            the spiral collapses with 0.1.
    """
    objectives: dict[str, Objective] = {
        "lejepa": LeJEPA(weight=1e-3, slices=64),
        "whitening": Whitening(weight=0.02 if keeps_volumes else 0.5),
        "vicreg": VICReg(),
        "infonce": InfoNCE(sigma=1.0),
        "infonce-matched": InfoNCE.matched(correlation),
        "barlow-twins": BarlowTwins(),
    }
    return objectives.get(name)
