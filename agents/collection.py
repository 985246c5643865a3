"""Collect episodes: an explorer moves the simulator, frames are drawn in batches, shards go to disk."""

import inspect
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import gymnasium as gym
import joblib
import numpy as np

from worldmodel.agents.explorers import Explorer, PosedExplorer
from worldmodel.agents.policies import begin
from worldmodel.data.episodes import Episode, Episodes
from worldmodel.data.modes import Mode
from worldmodel.data.store import EpisodeStore
from worldmodel.envs import SuiteEnv, env_id, make, suite_of
from worldmodel.utils.progress import progress_bar
from worldmodel.utils.versions import versions
from worldmodel.utils.workers import dismiss, in_parallel

_SHARD_FRAMES = 1_000  # of posed frames: a second or two of work, and four full passes of the renderer at 64x64
_POSED_FRAMES, _DRIVEN_SECONDS = 50, 4.0  # of an episode
_CONFINED_SECONDS, _CONFINED_FRAMES = 2.0, 500  # of an episode, of a shard


@dataclass(frozen=True)
class _Job:
    """What a worker needs to make any shard by its number."""

    env: str
    explorer: Explorer
    seed: int
    length: int
    episodes: int
    options: dict[str, Any]
    path: Path
    within: float | None = None


def collect(
    env: str,
    explorer: Explorer,
    frames: int,
    out: Path | str,
    *,
    seed: int = 0,
    length: int | None = None,
    within: float | None = None,
    processes: int = 1,
    mode: Mode = "append",
    progress: bool = True,
    **env_options: Any,
) -> Episodes:
    """Collect ``frames`` frames, rounded up to whole episodes, or resume what was begun.

    Shard k follows from the seed and k alone: any number of processes, and any interruption, give the same data. What
    the last shard has too many stays on disk, where an extension finds it. An episode that the task itself ends is
    shorter than the others. Driven latents count the turns of a free hinge (``envs.LatentSpec.wrap`` forgets them).

    Args:
        env: name of the environment, as for ``envs.make``.
        explorer: what moves the simulator.
        frames: frames to collect; more than before extends the data.
        out: folder of the data set.
        seed: decides all data.
        length: frames of an episode, at most (default: 50 posed ones, 4 s driven, 2 s driven within).
        within: keep driven data where the picture was learnt: episodes start at rest at latents from
            N(0, (within / 3)² I), and end before a latent leaves ±within. None starts where the task does.
        processes: worker processes; 0 means one per core.
        mode: what to do with a folder that exists: append (resume or extend), overwrite, error.
        progress: draw a progress bar.
        **env_options: those of ``envs.SuiteEnv``, such as height, width, camera or frame_skip.

    Returns:
        The data set, in memory.

    Raises:
        ValueError: bad input, in one line, before any work.
        OSError: the disk is full; what was finished is kept, and the same command goes on from there.
        RuntimeError: a worker died or hangs; likewise.
    """
    if frames < 1:
        raise ValueError(f"frames is {frames}; it must be at least 1")
    if seed < 0 or processes < 0:
        raise ValueError(f"seed is {seed} and processes {processes}; neither may be negative")
    posed = isinstance(explorer, PosedExplorer)
    probe = make(env, **env_options)
    try:
        suite = suite_of(probe)
        if within is not None and (posed or not within > 0):
            raise ValueError(f"within is {within}: it has to be positive, and is for explorers that drive")
        length = _length(posed, within, suite.dt) if length is None else length
        if length < 2:
            raise ValueError(f"an episode has at least 2 frames, not {length}")
        rehearse(explorer, suite)
        shard_frames = _SHARD_FRAMES if posed else 0 if within is None else _CONFINED_FRAMES
        episodes = max(1, shard_frames // length)
        spec = _spec(env_id(env), explorer, seed, suite, env_options)
        spec |= {"length": length, "episodes_per_shard": episodes, "frames": frames}
        spec |= {} if within is None else {"within": within}
        store = EpisodeStore.open(out, spec, mode)
        job = _Job(env, explorer, seed, length, episodes, env_options, store.path, within)
        missing = sorted(set(range(-(-frames // (episodes * length)))) - set(store.shards()))
        drawing = _collect_shards(job, missing, processes or os.cpu_count() or 1, progress)
        data = store.load()
        if missing or not (store.path / "card.json").is_file():
            spent = 1e3 * drawing / (len(missing) * episodes * length) if missing else None
            data = _completed(store, data, suite.renderer.gl_renderer, spent)
    finally:
        probe.close()
    return data if frames == store.spec()["frames"] else store.load(frames)


def _length(posed: bool, within: float | None, dt: float) -> int:
    """Return how many frames an episode has where nobody says so."""
    seconds = _DRIVEN_SECONDS if within is None else _CONFINED_SECONDS
    return _POSED_FRAMES if posed else round(seconds / dt) + 1


def _completed(store: EpisodeStore, data: Episodes, gl_renderer: str, render_ms: float | None) -> Episodes:
    """Write the data card, with what drew the frames and how fast, and return the data with it."""
    card = replace(data.card, gl_renderer=gl_renderer, versions=versions())
    card = card if render_ms is None else replace(card, render_ms_per_frame=render_ms)
    store.write_card(card)
    return replace(data, card=card)


def _spec(env: str, explorer: Explorer, seed: int, suite: SuiteEnv, options: Mapping[str, Any]) -> dict[str, Any]:
    """Say what determines the data, defaults written out, so that giving one by hand changes nothing."""
    parameters = inspect.signature(SuiteEnv).parameters.values()
    defaults = {p.name: p.default for p in parameters if p.default is not p.empty}
    latents = suite.latent_spec  # a task without latents says so here
    return {
        "env": env,
        "explorer": repr(explorer),
        "seed": seed,
        **{k: v for k, v in (defaults | dict(options)).items() if k not in ("render_mode", "latent_spec")},
        "dt": suite.dt,
        "latent_names": latents.names,
        "latent_means": latents.means.tolist(),
        "latent_scales": latents.scales.tolist(),
    }


def rehearse(explorer: Explorer, suite: SuiteEnv) -> None:
    """Let the explorer do one step, so that one that does not fit the task is refused before any work."""
    rng = np.random.default_rng(0)
    if isinstance(explorer, PosedExplorer):
        n = suite.latent_spec.n
        shape: tuple[int, ...] = explorer.chains(1, 2, n, rng).shape
        expected: tuple[int, ...] = (1, 2, n)
    else:
        observation, _ = suite.reset(seed=0)
        size = suite.num_actions
        policy, observation = begin(explorer, suite, observation, rng)
        shape, expected = np.shape(policy(observation)), (size,)
    if shape != expected:
        raise ValueError(f"{explorer} gives shape {shape} where {suite.domain}-{suite.task} takes {expected}")


def _collect_shards(job: _Job, missing: list[int], processes: int, progress: bool) -> float:
    """Make the missing shards; return the seconds spent drawing, summed over processes."""
    drawing = 0.0
    with progress_bar("frames", len(missing) * job.episodes * job.length, progress) as advance:
        for seconds in _work(job, missing, min(processes, len(missing))):
            drawing += seconds
            advance(job.episodes * job.length)
    return drawing


def _work(job: _Job, missing: list[int], processes: int) -> Iterator[float]:
    if processes <= 1:
        env = make(job.env, **job.options) if missing else None
        for index in missing:
            assert env is not None
            yield _make_shard(job, index, env)
        if env is not None:
            env.close()
        return
    try:
        calls = [joblib.delayed(_make_shard_alone)(job, index) for index in missing]
        yield from in_parallel(calls, processes, "collecting")
    finally:
        dismiss()


_Track = tuple[np.ndarray, np.ndarray, np.ndarray]
"""States (T + 1, nq + nv), actions (T, a) and rewards (T,) of one episode."""

_ENVS: dict[str, gym.Env[Any, Any]] = {}  # of this worker process


def _make_shard_alone(job: _Job, index: int) -> float:
    key = repr((job.env, sorted(job.options.items())))
    if key not in _ENVS:
        _ENVS[key] = make(job.env, **job.options)
    return _make_shard(job, index, _ENVS[key])


def _make_shard(job: _Job, index: int, env: gym.Env[Any, Any]) -> float:
    """Make shard ``index`` and write it; return the seconds spent drawing."""
    sequence = np.random.SeedSequence(job.seed, spawn_key=(index,))
    rng = np.random.default_rng(sequence)
    suite = suite_of(env)
    env.reset(seed=int(sequence.generate_state(1)[0]))
    make_episodes = _posed if isinstance(job.explorer, PosedExplorer) else _driven
    tracks = make_episodes(job, env, rng)
    start = time.perf_counter()
    frames = suite.renderer.render_poses(
        np.concatenate([states[:, : suite.model.nq] for states, *_ in tracks]), suite.physics.data.ptr
    )
    seconds = time.perf_counter() - start
    episodes, first = [], 0
    for states, actions, rewards in tracks:
        end = first + len(states)
        latents = suite.latent_spec.to_latents(states[:, : suite.model.nq]).astype(np.float32)
        episodes.append(Episode(frames[first:end], states, latents, actions, rewards))
        first = end
    with suppress(FileExistsError):  # another collection made the same shard meanwhile
        EpisodeStore(job.path).write_shard(index, episodes)
    return seconds


def _posed(job: _Job, env: gym.Env[Any, Any], rng: np.random.Generator) -> list[_Track]:
    """Pose the simulator at the explorer's latents, at rest."""
    assert isinstance(job.explorer, PosedExplorer)
    suite = suite_of(env)
    chains = job.explorer.chains(job.episodes, job.length, suite.latent_spec.n, rng)
    qpos = suite.latent_spec.to_qpos(chains, suite.physics.data.qpos)
    states = np.concatenate([qpos, np.zeros((*qpos.shape[:2], suite.model.nv))], axis=-1)
    nothing, none = np.zeros((job.length - 1, 0), np.float32), np.full(job.length - 1, np.nan, np.float32)
    return [(episode, nothing, none) for episode in states]


def _driven(job: _Job, env: gym.Env[Any, Any], rng: np.random.Generator) -> list[_Track]:
    """Drive the simulator by the explorer's policy, from the task's own start or within the job's bounds."""
    if job.within is None:
        return [_drive(job, env, rng, None) for _ in range(job.episodes)]
    tracks: list[_Track] = []
    missing, n, lost = job.episodes * job.length, suite_of(env).latent_spec.n, 0
    while missing > 0:
        if lost > 1_000 + 100 * len(tracks):
            raise ValueError(f"nearly every episode leaves ±{job.within} at once: give a larger within")
        start = np.clip(job.within / 3 * rng.standard_normal(n), -job.within, job.within)
        track = _drive(job, env, rng, start)
        if len(track[0]) == 1:
            lost += 1
            continue
        tracks.append(track)
        missing -= len(track[0])
    return tracks


def _drive(job: _Job, env: gym.Env[Any, Any], rng: np.random.Generator, start: np.ndarray | None) -> _Track:
    """Return states (T + 1, nq + nv), actions (T, a) and rewards (T,) of one episode."""
    assert not isinstance(job.explorer, PosedExplorer)
    suite, within = suite_of(env), np.inf if job.within is None else job.within

    def outside() -> bool:
        return within < np.inf and bool(np.abs(suite.latent_spec.to_latents(suite.physics.data.qpos)).max() > within)

    observation, _ = env.reset(options=None if start is None else {"latents": start})
    policy, observation = begin(job.explorer, suite, observation, rng)  # may drive on before the recording starts
    states: list[np.ndarray] = [suite.state()]
    actions: list[np.ndarray] = []
    rewards: list[float] = []
    ended = outside()
    while not ended and len(states) < job.length:
        action = np.asarray(policy(observation), np.float32)
        observation, reward, terminated, truncated, _ = env.step(action)
        if outside():
            break
        actions.append(action)
        rewards.append(float(reward))
        states.append(suite.state())
        ended = terminated or truncated
    steps = np.array(actions, np.float32).reshape(len(actions), suite.num_actions)
    return np.stack(states), steps, np.array(rewards, np.float32)
