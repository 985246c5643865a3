"""The closed-loop half of the main job: drive, learn what actions do, plan, and act in the simulator from frames."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from worldmodel.agents import ActionOU, collect
from worldmodel.data.episodes import Episodes
from worldmodel.data.store import load_episodes
from worldmodel.dynamics.forecast import OpenLoop, open_loop
from worldmodel.dynamics.linear import Excitation
from worldmodel.dynamics.similarity import Similarity, similarity
from worldmodel.dynamics.states import Encodes, Trajectories
from worldmodel.dynamics.world_model import WorldModel
from worldmodel.encoders.encoder import Encoder
from worldmodel.envs import SuiteEnv
from worldmodel.envs.control_tasks import ControlSetting, control_goals
from worldmodel.envs.goals import GoalTasks
from worldmodel.envs.pixels import frames_at
from worldmodel.envs.targets import ARMS, target_tasks
from worldmodel.measures.identifiability import procrustes
from worldmodel.planners.catalogue import ControlOptions
from worldmodel.planners.closed_loop import ClosedLoop, evaluate
from worldmodel.planners.driving import Driven
from worldmodel.planners.lqr import ControlError
from worldmodel.planners.mpc import MPCOptions
from worldmodel.planners.names import PlannerName
from worldmodel.planners.oracle import embedding_world, oracle_world, true_trajectories
from worldmodel.planners.outcomes import State
from worldmodel.planners.value import ValueEquivalence, value_equivalence
from worldmodel.scripts.planning.options import PlanOptions
from worldmodel.stats.intervals import Interval, bootstrap
from worldmodel.utils.stages import Stage, run_stage

EXPLORER = ActionOU()
PARTS = ("train", "selection", "heldout")
_AHEAD = (1, 5, 10, 20)


@dataclass(frozen=True)
class SuiteReturn:
    """The suite's own reward over its own episode, mean over targets.

    Attributes:
        planner: whose.
        targets: number of episodes.
        excluded: targets that no pose within the latent law reaches.
        embedding: return from frames.
        oracle: return on the true state.
        random: return of random actions.
    """

    planner: str
    targets: int
    excluded: int
    embedding: Interval
    oracle: Interval
    random: Interval


@dataclass(frozen=True)
class Control:
    """What was learnt of control, and what it reached.

    Attributes:
        data: episodes driven through the actuators.
        forecasts: held-out errors without feedback, of the embedding's dynamics and of the oracle's.
        excitation: how well the driven data determine the embedding's dynamics; None where not every direction.
        similarity: of both dynamics through the fitted orthogonal map; None where their states differ.
        values: LQR's value by the embedding's dynamics against the oracle's; None where LQR cannot control one.
        closed: every planner in the simulator.
        suite_return: None where the suite's task has no target, or it cannot be controlled.
        stages: what was done, or kept from an earlier run.
        world: the world model that frames show.
    """

    data: Episodes
    forecasts: dict[State, OpenLoop]
    excitation: Excitation | None
    similarity: Similarity | None
    values: ValueEquivalence | None
    closed: ClosedLoop
    suite_return: SuiteReturn | None
    stages: tuple[Stage, ...]
    world: WorldModel


class ControlJob:
    """Stages of the closed loop, each kept under what determines it.

    Args:
        options: those of the main job.
        out: where stages are kept.
        env: the task at the control step.
        setting: how its domain is controlled.
        encoder: frames to embeddings.
        encoder_digest: of its training, or of its weights.
        frames: of driven data.
        tell: is handed every stage.
    """

    def __init__(
        self,
        options: PlanOptions,
        out: Path,
        env: SuiteEnv,
        setting: ControlSetting,
        encoder: Encodes,
        encoder_digest: str,
        frames: int,
        tell: Callable[[Stage], Stage],
    ) -> None:
        self.options, self.out, self.env, self.setting, self.frames = options, out, env, setting, frames
        self.encoder, self.encoder_digest, self._tell = encoder, encoder_digest, tell
        horizon = max(1, round(setting.foresight / env.dt))
        weight = setting.action_weight if options.action_weight is None else options.action_weight
        self.planning = ControlOptions(action_weight=weight, mpc=MPCOptions(horizon=horizon))
        self.stages: list[Stage] = []
        self._given = ""

    def run(self, given: WorldModel | None = None, digest: str = "") -> Control:
        """Do all of it, by a world model that was given (with the digest of its dynamics), or by one that is fitted.

        Raises:
            ValueError: the data allow no dynamics, or the world model is one of another control step.
        """
        self._given = digest
        driven = self._drive_explorer()
        data = load_episodes(driven.folder / "episodes")
        seen, true = self._embed(driven, data), {part: true_trajectories(getattr(data, part)) for part in PARTS}
        about = {"env": data.card.env, "dt": data.card.dt, "actions": self.env.num_actions}
        if given is not None and given.about != about:
            raise ValueError(f"the world model is of {dict(given.about)}, and here it would be {about}")
        fitted = given or embedding_world(self.encoder, seen["train"], seen["selection"], self.options.dynamics)
        worlds: dict[State, WorldModel] = {
            "embedding": replace(fitted, about=about),
            "oracle": oracle_world(self.env.latent_spec, true["train"], true["selection"], self.options.dynamics),
        }
        forecasts: dict[State, OpenLoop] = {
            "embedding": _forecast(worlds["embedding"], seen["heldout"]),
            "oracle": _forecast(worlds["oracle"], true["heldout"]),
        }
        alike = _similarity(worlds, seen["train"].h, true["train"].h)
        tasks = control_goals(self.env.latent_spec, self.options.tasks, np.random.default_rng([self.options.seed, 2]))
        frames = (frames_at(self.env, tasks.start), frames_at(self.env, tasks.goal))
        values = None
        with suppress(ControlError):
            values = value_equivalence(
                worlds["embedding"], worlds["oracle"], tasks, frames, self.planning.cost, seed=self.options.seed
            )
        steps = round(self.setting.seconds / self.env.dt)
        closed = self._evaluate(driven, worlds, self.options.planner, tasks, steps)
        reward = self._suite_return(driven, worlds) if self.env.domain in ARMS else None
        return Control(
            data,
            forecasts,
            worlds["embedding"].excitation,
            alike,
            values,
            closed,
            reward,
            tuple(self.stages),
            worlds["embedding"],
        )

    def _stage(
        self,
        name: str,
        key: dict[str, Any],
        build: Callable[[Path], object],
        made_by: Callable[..., Any],
        quiet: bool = False,
    ) -> Stage:
        stage = run_stage(self.out, name, key, build, made_by=[made_by], keep=self.options.keep)
        self.stages.append(stage if quiet else self._tell(stage))
        return stage

    def _drive_explorer(self) -> Stage:
        o = self.options
        key = {
            "env": o.env,
            "explorer": EXPLORER,
            "latents": self.env.latent_spec,
            "frames": self.frames,
            "frame_skip": self.env.frame_skip,
            "within": self.setting.within,
            "seed": o.seed,
            "size": o.size,
            "camera": o.camera,
        }

        def build(folder: Path) -> None:
            collect(
                o.env,
                EXPLORER,
                self.frames,
                folder / "episodes",
                seed=o.seed,
                within=self.setting.within,
                processes=o.processes,
                height=o.size,
                width=o.size,
                camera=o.camera,
                frame_skip=self.env.frame_skip,
            )

        return self._stage("drive", key, build, collect)

    def _embed(self, driven: Stage, data: Episodes) -> dict[str, Trajectories]:
        def build(folder: Path) -> None:
            for part in PARTS:
                np.save(folder / f"{part}.npy", self.encoder.encode(getattr(data, part).frames), allow_pickle=False)

        stage = self._stage("embed-driven", {"data": driven.digest, "encoder": self.encoder_digest}, build, Encoder)
        seen = {}
        for part in PARTS:
            h, episodes = np.load(stage.folder / f"{part}.npy", allow_pickle=False), getattr(data, part)
            seen[part] = Trajectories(h.astype(np.float64), episodes.actions, episodes.offsets)
        return seen

    def _suite_return(self, driven: Stage, worlds: dict[State, WorldModel]) -> SuiteReturn | None:
        o, steps = self.options, round(self.env.time_limit / self.env.dt)
        targets = target_tasks(self.env, max(2, o.tasks // 5), self.setting.within, o.seed)
        name = next((planner for planner in o.planner if planner != "straight-line"), o.planner[0])
        closed = self._evaluate(driven, worlds, (name,), targets.tasks, steps, targets.seeds)
        if closed.refused:
            return None
        embedding, oracle, random = (bootstrap(run.rewards.sum(axis=1), seed=o.seed) for run in closed.driven.values())
        return SuiteReturn(name, len(targets.tasks), targets.tasks.excluded, embedding, oracle, random)

    def _evaluate(
        self,
        driven: Stage,
        worlds: dict[State, WorldModel],
        planners: tuple[PlannerName, ...],
        tasks: GoalTasks,
        steps: int,
        seeds: np.ndarray | None = None,
    ) -> ClosedLoop:
        """Drive the tasks, or take the runs that an earlier call kept."""
        o = self.options
        asked = {"start": tasks.start.tolist(), "goal": tasks.goal.tolist(), "steps": steps, "seed": o.seed}
        asked |= {"data": driven.digest, "dynamics": o.dynamics, "planning": self.planning}

        def keep(name: str, state: State, make: Callable[[], Driven]) -> Driven:
            encoder = {"encoder": self.encoder_digest} if state == "embedding" else {}
            encoder |= {"world_model": self._given} if state == "embedding" and self._given else {}
            stage = self._stage(
                f"{'control' if seeds is None else 'targets'}-{name}-{state}",
                asked | encoder,
                lambda folder: make().save(folder / "driven.npz"),
                evaluate,
                quiet=state != "embedding",
            )
            return Driven.load(stage.folder / "driven.npz")

        return evaluate(
            self.env,
            planners,
            worlds["embedding"],
            worlds["oracle"],
            tasks,
            self.setting,
            self.planning,
            steps=steps,
            seeds=None if seeds is None else seeds.tolist(),
            seed=o.seed,
            processes=o.processes,
            keep=keep,
        )


def _forecast(world: WorldModel, heldout: Trajectories) -> OpenLoop:
    """Return errors as far ahead as held-out episodes go."""
    longest = int(np.diff(heldout.offsets).max())
    return open_loop(world.dynamics, *heldout, steps=[ahead for ahead in _AHEAD if ahead + 4 <= longest])


def _similarity(worlds: dict[State, WorldModel], h: np.ndarray, z: np.ndarray) -> Similarity | None:
    true, learnt = worlds["oracle"].linear, worlds["embedding"].linear
    if true is None or learnt is None or true.A.shape != learnt.A.shape:
        return None
    return similarity(true, learnt, procrustes(h, z))
