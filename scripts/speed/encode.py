"""Milliseconds from frames to embeddings, beside the CNN of stable-baselines3's policies."""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import gymnasium as gym
import numpy as np
import torch
from stable_baselines3.common.policies import ActorCriticCnnPolicy

from worldmodel.encoders.encoder import Encoder
from worldmodel.report.tables import new_table, spread
from worldmodel.scripts import cli
from worldmodel.scripts.speed.result import write_result
from worldmodel.scripts.speed.turns import by_turns, milliseconds, times_faster, torch_threads
from worldmodel.utils.devices import resolve_device

Embed = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Encode:
    """Embed frames by turns with Encoder.encode and with the NatureCNN of an SB3 policy, from the same uint8 arrays.

    Attributes:
        batches: frames that are embedded together; one is what a policy sees.
        size: height and width of a frame in pixels.
        dim: dimensions of the embedding; NatureCNN has 512 features.
        frames: embedded per repeat, in batches; of single ones a fourth.
        repeats: how often each is timed, after one round that is not.
        threads: of either side.
        device: auto, cpu or cuda.
        seed: of weights and frames.
        out: output folder.
    """

    batches: tuple[int, ...] = (1, 64)
    size: int = 64
    dim: int = 2
    frames: int = 256
    repeats: int = 9
    threads: int = 1
    device: str = "auto"
    seed: int = 0
    out: Path = Path("runs/bench/encode")


@dataclass(frozen=True)
class EncodeTime:
    """Time to embed batches of one size.

    Attributes:
        batch: frames.
        ours: milliseconds per frame, one entry per repeat.
        nature_cnn: the same of SB3's.
        faster: their ratio within each repeat.
    """

    batch: int
    ours: list[float]
    nature_cnn: list[float]
    faster: list[float]


def encode(options: Encode) -> list[EncodeTime]:
    """Time both, and leave the table in ``result.json``."""
    if options.repeats < 2 or options.threads < 1 or min(options.batches, default=0) < 1:
        raise ValueError("--batches and --threads must be at least 1, and --repeats at least 2")
    device = resolve_device(options.device)
    folder = cli.run_folder(options.out, "bench/encode")
    rng = np.random.default_rng(options.seed)
    frames = rng.integers(0, 256, (max(options.batches), options.size, options.size, 3), np.uint8)
    with torch_threads(options.threads), torch.random.fork_rng():
        torch.manual_seed(options.seed)
        ours, theirs = our_way(options, device), nature_cnn(options, device)
        times = [_at_batch(frames[:batch], ours, theirs, options) for batch in options.batches]
    table = new_table(
        f"milliseconds per frame, {options.size}x{options.size}, {device.type}",
        "frames together",
        ("SB3's NatureCNN", "range", "Encoder.encode", "range", "x faster", "range"),
    )
    for one in times:
        table.add_row(str(one.batch), *spread(one.nature_cnn, 3), *spread(one.ours, 3), *spread(one.faster, 2))
    cli.console.print(table)
    write_result(folder, options, {"device_type": device.type, "encode": [asdict(one) for one in times]}, {})
    return times


def our_way(options: Encode, device: torch.device) -> Embed:
    """Return what turns frames (B, H, W, 3) uint8 into embeddings (B, m)."""
    return Encoder(options.dim, (options.size, options.size)).to(device).freeze().encode


def nature_cnn(options: Encode, device: torch.device) -> Embed:
    """Return what turns frames (B, H, W, 3) uint8 into features (B, 512), as a policy of SB3 does in ``predict``."""
    space = gym.spaces.Box(0, 255, (3, options.size, options.size), np.uint8)  # what SB3 makes of frames
    policy = ActorCriticCnnPolicy(space, gym.spaces.Box(-1, 1, (2,)), lambda _: 1e-3).to(device)
    policy.set_training_mode(False)

    def embed(frames: np.ndarray) -> np.ndarray:
        obs, _ = policy.obs_to_tensor(frames)  # channels first
        with torch.no_grad():
            features = policy.extract_features(obs)  # divides by 255
        assert isinstance(features, torch.Tensor)
        return features.cpu().numpy()

    return embed


def _at_batch(frames: np.ndarray, ours: Embed, theirs: Embed, options: Encode) -> EncodeTime:
    batch = len(frames)
    calls = max(1, options.frames // (4 * batch) if batch == 1 else options.frames // batch)

    def measure(embed: Embed) -> float:
        return milliseconds(lambda: embed(frames), calls) / batch

    ways = {"ours": partial(measure, ours), "nature_cnn": partial(measure, theirs)}
    ms = by_turns(ways, options.repeats, f"{batch} together")
    return EncodeTime(batch, ms["ours"], ms["nature_cnn"], times_faster(ms["ours"], ms["nature_cnn"]))
