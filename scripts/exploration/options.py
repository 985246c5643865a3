"""Options of the benchmark."""

from dataclasses import dataclass
from pathlib import Path

from worldmodel.utils.backends import Backend


@dataclass(frozen=True)
class BenchmarkOptions:
    """Options of the benchmark.

    Attributes:
        env: a DeepMind Control task: reacher, point_mass, ...
        explorers: what moves the simulator, as for scripts/collect.py; your own as module:Name or file.py:Name. Also
            sac or ppo (trained first, on the task's state) and seek:PLANNER (to one goal after another).
        lags: control steps between the frames of a pair; lags across which nothing correlates are skipped.
        trainings: how encoders are trained: plain, or joined by plus signs: unwhitened, circle (two coordinates for a
            hinge that turns all the way round), wide (four for every latent), mixed (lags), resampled (pairs, towards a
            Gaussian).
        seeds: how many; the unit of all statistics.
        frames: of each explorer's data.
        steps: of training.
        driven: frames of the common driven data, to which dynamics are fitted.
        tasks: start-goal pairs that are planned and driven.
        test_frames: of each common law: three eighths fit the maps, one chooses lags, half score.
        scale: rad or m per latent, for explorers that pose (default: the task's own; 1.0 is the paper's).
        size: height and width of a frame in pixels, a multiple of 16.
        camera: the camera, by number or name.
        jobs: cells at a time; 0 means one per core.
        backend: where they run: loky (processes of this machine) or ray (a cluster; pip install 'worldmodel[ray]').
        seed: the first seed.
        device: where encoders are trained.
        out: output folder (default: runs/benchmark-<env>); the same command goes on from what lies there.
    """

    env: str = "reacher"
    explorers: tuple[str, ...] = ("latent-ou:0.9", "tracking-ou", "action-ou", "random")
    lags: tuple[int, ...] = (1, 4, 16)
    trainings: tuple[str, ...] = ("plain",)
    seeds: int = 3
    frames: int = 20_000
    steps: int = 500
    driven: int = 4_000
    tasks: int = 50
    test_frames: int = 4_000
    scale: float | None = None
    size: int = 64
    camera: int | str = 0
    jobs: int = 0
    backend: Backend = "loky"
    seed: int = 0
    device: str = "auto"
    out: Path | None = None
