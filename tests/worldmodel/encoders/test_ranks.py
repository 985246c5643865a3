"""Two processes do the step of one process with the whole batch."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from worldmodel.encoders.objectives import BarlowTwins, InfoNCE, LeJEPA, Objective, VICReg, Whitening
from worldmodel.encoders.ranks import Ranks, joined
from worldmodel.encoders.whole_batch import whole_batch_statistics
from worldmodel.utils.devices import one_core_spared

OBJECTIVES: list[Objective] = [LeJEPA(), LeJEPA(whiten=False), Whitening(), VICReg(), InfoNCE(), BarlowTwins()]
PAIRS = 7  # shared by two as 3 and 4


def step(objective: Objective, ranks: Ranks) -> dict[str, Tensor]:
    """Return the gradients, the loss and BatchNorm's statistics of one step in float64, on this process's rows."""
    torch.manual_seed(0)
    network = nn.Sequential(
        *(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(inplace=True), nn.Flatten()),
        *(nn.Linear(16, 5), nn.BatchNorm1d(5, momentum=None), nn.ReLU(inplace=True), nn.Linear(5, 2)),
    ).double()
    pairs = 3 + 2 * torch.randn(2, PAIRS, 3, 4, 4, dtype=torch.float64)
    with one_core_spared(), whole_batch_statistics(network, ranks):
        for _ in range(2):  # the second has running statistics to move
            network.zero_grad()
            h = network(pairs[:, ranks.share(PAIRS)].flatten(0, 1))
            views = ranks.whole(h.reshape(2, -1, 2), PAIRS)
            value = objective(views, torch.Generator().manual_seed(1))
            value.loss.backward()
            ranks.sum_gradients(network)
    gradients = {f"d {name}": p.grad for name, p in network.named_parameters() if p.grad is not None}
    return gradients | dict(network.named_buffers()) | {"loss": value.loss.detach()}


def steps_of_this_process(out: str) -> None:
    with joined() as ranks:
        torch.save([step(objective, ranks) for objective in OBJECTIVES], f"{out}/{ranks.rank}.pt")


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> list[list[dict[str, Tensor]]]:
    """What each of two processes has, by objective."""
    folder = tmp_path_factory.mktemp("ranks")
    code = f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r}); import test_ranks as t; "
    code += f"t.steps_of_this_process({str(folder)!r})"
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    several = os.environ | {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    started = [subprocess.Popen([sys.executable, "-c", code], env=several | {"RANK": str(n)}) for n in range(2)]
    assert [process.wait() for process in started] == [0, 0]
    return [torch.load(folder / f"{rank}.pt") for rank in range(2)]


@pytest.mark.parametrize("number", range(len(OBJECTIVES)), ids=[repr(objective) for objective in OBJECTIVES])
def test_each_of_two_processes_has_the_gradients_of_the_whole_batch(
    number: int, shared: list[list[dict[str, Tensor]]]
) -> None:
    alone = step(OBJECTIVES[number], Ranks())
    for rank in range(2):
        torch.testing.assert_close(shared[rank][number], alone, rtol=1e-9, atol=1e-12)
    assert all(torch.equal(value, shared[1][number][name]) for name, value in shared[0][number].items())


def test_every_row_is_somebodys() -> None:
    shares = [range(10)[Ranks(rank, 3).share(10)] for rank in range(3)]
    assert [row for share in shares for row in share] == list(range(10))
    with pytest.raises(ValueError, match="each needs a row"):
        Ranks(0, 3).share(2)


def test_a_process_alone_is_left_alone() -> None:
    network, part = nn.Sequential(nn.BatchNorm1d(2)), torch.zeros(2, 3, 2)
    with joined() as ranks, whole_batch_statistics(network, ranks):
        assert ranks == Ranks() and ranks.whole(part, 3) is part and "forward" not in vars(network[0])
        assert ranks.least(2.0) == 2.0 and ranks.agree(2.0)
