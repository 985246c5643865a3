"""Ways of training an encoder on the same episodes: plain, and what may mend data that the theory does not fit."""

from dataclasses import dataclass
from pathlib import Path

from worldmodel.data.episodes import Episodes
from worldmodel.encoders.encoder import Encoder
from worldmodel.encoders.objectives import LeJEPA
from worldmodel.encoders.resampling import gaussian_weights
from worldmodel.encoders.training import TrainingOptions, fit_encoder
from worldmodel.envs.latents import LatentSpec

_WORDS = ("plain", "unwhitened", "circle", "wide", "mixed", "resampled")
_WIDE = 4  # coordinates for each latent


@dataclass(frozen=True)
class Recipe:
    """A way of training.

    Attributes:
        whiten: measure alignment after whitening; the published loss does not.
        circle: two coordinates for every latent that turns all the way round.
        wide: four coordinates for every latent: the slow functions of an unfitting law are many.
        mixed: mix pairs of half, the same and twice the lag.
        resampled: train twice, the second time on pairs drawn so that the first embedding is nearer to a Gaussian.
    """

    whiten: bool = True
    circle: bool = False
    wide: bool = False
    mixed: bool = False
    resampled: bool = False

    @classmethod
    def of(cls, text: str) -> "Recipe":
        """Read a recipe: words joined by plus signs.

        >>> Recipe.of("circle+mixed")
        Recipe(whiten=True, circle=True, wide=False, mixed=True, resampled=False)

        Raises:
            ValueError: there is no such word.
        """
        words = text.split("+")
        unknown = set(words) - set(_WORDS)
        if unknown:
            raise ValueError(f"unknown training {', '.join(sorted(unknown))}: join {', '.join(_WORDS)} by plus signs")
        changes = {word: True for word in words if word not in ("plain", "unwhitened")}
        return cls(whiten="unwhitened" not in words, **changes)

    def train(
        self, episodes: Episodes, spec: LatentSpec, lag: int, steps: int, device: str, seed: int, out: Path
    ) -> Encoder:
        """Train an encoder; what was trained before an interruption is found in ``out``."""
        latents = _WIDE * spec.n if self.wide else spec.circle_latents if self.circle else spec.n
        options = TrainingOptions(steps=steps, lag=lag, mixed_lags=(max(1, lag // 2), 2 * lag) if self.mixed else ())
        objective = LeJEPA(whiten=self.whiten)

        def fit(folder: Path, first: Encoder | None = None) -> Encoder:
            weights = None if first is None else gaussian_weights(first.encode(episodes.train.frames))
            return fit_encoder(
                episodes,
                latents,
                objective,
                options,
                weights=weights,
                device=device,
                seed=seed,
                out=folder,
                progress=False,
            )

        return fit(out / "again", fit(out)) if self.resampled else fit(out)
