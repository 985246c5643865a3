"""What the cells of the benchmark share: the task, the data of each explorer, and what all are scored on.

Everything is a stage on disk under a hash of what determines it, so that cells run anywhere, resume after a kill, and
share what they have in common.
"""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from worldmodel.agents import ActionOU, LatentLaw, LatentOU, PosedExplorer, collect
from worldmodel.agents.explorers import Explorer
from worldmodel.envs import SuiteEnv, make, suite_of
from worldmodel.envs.control_tasks import ControlSetting, control_setting
from worldmodel.utils.stages import Stage, run_stage


@dataclass(frozen=True)
class Setup:
    """What all cells share.

    Attributes:
        env: name of the task.
        scale: rad or m per latent; None takes the task's own.
        frames: of each explorer's data.
        steps: of training.
        driven: frames of the common data that dynamics are fitted to.
        tasks: start-goal pairs.
        test_frames: of each common law.
        size: height and width of a frame.
        camera: number or name.
        seed: of what is common to all.
        device: where encoders are trained.
        out: where stages are kept.
    """

    env: str
    scale: float | None
    frames: int
    steps: int
    driven: int
    tasks: int
    test_frames: int
    size: int
    camera: int | str
    seed: int
    device: str
    out: Path

    @cached_property
    def env_options(self) -> dict[str, Any]:
        """Options of the environment."""
        options: dict[str, Any] = {"height": self.size, "width": self.size, "camera": self.camera}
        if self.scale is None:
            return options
        return options | {"latent_spec": suite_of(make(self.env, **options)).latent_spec.rescaled(self.scale)}

    def make(self, **changes: Any) -> SuiteEnv:
        """Make the environment."""
        return suite_of(make(self.env, **self.env_options, **changes))

    def control(self) -> tuple[SuiteEnv, ControlSetting]:
        """Make the environment at its control step, with how it is controlled."""
        env = self.make()
        setting, dt = control_setting(env.latent_spec), env.dt
        env.close()
        return self.make(frame_skip=setting.frame_skip(dt)), setting

    def key(self, *names: str) -> dict[str, Any]:
        """Return options that determine a stage; the environment's own are always among them."""
        return {name: getattr(self, name) for name in ("env", "scale", "size", "camera", *names)}


@dataclass(frozen=True)
class Common:
    """What all cells are scored on.

    Attributes:
        gaussian: frames of latents from N(0, I).
        uniform: frames of latents from the uniform law of variance 1.
        driven: episodes that dynamics are fitted to.
    """

    gaussian: Stage
    uniform: Stage
    driven: Stage

    @property
    def digests(self) -> list[str]:
        """Of its stages."""
        return [self.gaussian.digest, self.uniform.digest, self.driven.digest]


def collect_common(setup: Setup, processes: int) -> Common:
    """Collect what all cells are scored on, with progress bars."""
    gaussian = _collect_law(setup, "gaussian", LatentOU(0.0), setup.seed + 1_000_003, processes)
    uniform = _collect_law(setup, "uniform", LatentLaw("uniform", 0.0), setup.seed + 2_000_006, processes)
    env, setting = setup.control()
    explorer, seed = ActionOU(), setup.seed + 3_000_009
    key = setup.key("seed", "driven") | {"explorer": explorer, "within": setting.within, "frame_skip": env.frame_skip}
    options: dict[str, Any] = {"within": setting.within, "frame_skip": env.frame_skip}
    options |= {"seed": seed, "processes": processes}
    driven = _collect(setup, "driven", key, explorer, setup.driven, options)
    env.close()
    return Common(gaussian, uniform, driven)


def _collect_law(setup: Setup, name: str, law: Explorer, seed: int, processes: int) -> Stage:
    key = setup.key("seed") | {"explorer": repr(law), "frames": setup.test_frames}
    options = {"length": 2, "seed": seed, "processes": processes}
    return _collect(setup, f"law-{name}", key, law, setup.test_frames, options)


def law_parts(frames: int) -> dict[str, slice]:
    """Cut the independent frames of a common law: three eighths fit maps, one chooses lags, half score."""
    fitted, chosen = 3 * frames // 8, frames // 2
    return {"train": slice(0, fitted), "selection": slice(fitted, chosen), "heldout": slice(chosen, frames)}


def collect_data(setup: Setup, explorer: Explorer, lags: tuple[int, ...], seed: int) -> Stage:
    """Collect the data of one explorer and one seed."""
    length = max(50, 2 * max(lags)) if isinstance(explorer, PosedExplorer) else None
    key = setup.key("frames") | {"explorer": repr(explorer), "length": length, "seed": seed}
    options = {"length": length, "seed": seed, "progress": False}
    return _collect(setup, "data", key, explorer, setup.frames, options)


def _collect(
    setup: Setup, name: str, key: dict[str, Any], explorer: Explorer, frames: int, options: dict[str, Any]
) -> Stage:
    def build(folder: Path) -> None:
        collect(setup.env, explorer, frames, folder / "episodes", **options, **setup.env_options)

    return run_stage(setup.out, name, key, build, made_by=[collect])
