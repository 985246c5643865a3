"""A planner as an explorer: it drives to one goal after another, as an agent with tasks does."""

import hashlib
from dataclasses import dataclass, field

import numpy as np

from worldmodel.agents.policies import Policy
from worldmodel.dynamics.world_model import WorldModel
from worldmodel.envs import SuiteEnv
from worldmodel.envs.control_tasks import control_goals
from worldmodel.envs.pixels import frames_at
from worldmodel.planners.catalogue import ControlOptions, planner_policy
from worldmodel.planners.names import PlannerName
from worldmodel.planners.oracle import linear_of
from worldmodel.planners.policy import PlannerPolicy


@dataclass(frozen=True)
class GoalSeeker:
    """Seeks goals of the latent law, each for a while, by one of the planners.

    Attributes:
        planner: its name.
        world: what it knows: that of an embedding, or its oracle twin.
        period: seconds of the world's control step; an action lasts as long.
        seconds: for which it seeks a goal.
        options: cost and horizon.
        sha256: the start of the digest of the world's linear model.

    Raises:
        ValueError: times that are not positive.
    """

    planner: PlannerName
    world: WorldModel = field(repr=False, compare=False)
    period: float
    seconds: float = 2.0
    options: ControlOptions = ControlOptions()  # noqa: RUF009 (frozen)
    sha256: str = field(init=False)

    def __post_init__(self) -> None:
        if not (self.period > 0 and self.seconds > 0):
            raise ValueError(f"period is {self.period} and seconds {self.seconds}: both have to be positive")
        linear = linear_of(self.world, "a digest")
        model = np.concatenate([linear.A.ravel(), linear.B.ravel()])
        object.__setattr__(self, "sha256", hashlib.sha256(model.tobytes()).hexdigest()[:12])

    def policy_in(self, env: SuiteEnv, observation: np.ndarray, rng: np.random.Generator) -> tuple[Policy, np.ndarray]:
        """Return the policy of one episode.

        Raises:
            ControlError: the world cannot be controlled.
        """
        held, sought = (max(1, round(time / env.dt)) for time in (self.period, self.seconds))
        sought = held * max(1, sought // held)
        step, memory, action = 0, None, np.zeros((1, env.num_actions), np.float32)
        policy = self._to_a_goal(env, rng)

        def act(observation: np.ndarray) -> np.ndarray:
            nonlocal step, memory, action, policy
            if step and step % sought == 0:  # at rest by now, as at the start of an episode
                policy, memory = self._to_a_goal(env, rng), None
            if step % held == 0:
                action, memory = policy.predict(self._look(env), memory)
            step += 1
            return action[0]

        return act, observation

    def _to_a_goal(self, env: SuiteEnv, rng: np.random.Generator) -> PlannerPolicy:
        goal = control_goals(env.latent_spec, 1, rng).goal
        shown = goal if self.world.observes == "latents" else frames_at(env, goal)
        seed = int(rng.integers(2**31))
        return planner_policy(self.planner, self.world, shown, env.num_actions, self.options, seed=seed)

    def _look(self, env: SuiteEnv) -> np.ndarray:
        seen = env.latents() if self.world.observes == "latents" else env.render()
        return seen[None]
