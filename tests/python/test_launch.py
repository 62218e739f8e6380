"""Who am I? Asked of the environment and of torch.distributed."""

import multiprocessing
import os
import sys
from types import SimpleNamespace

import forebay
import pytest
from forebay import _connect, _launch

NAMES = (
    "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "NODE_RANK", "MASTER_ADDR",
    "MASTER_PORT", "TORCHELASTIC_RUN_ID", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS",
    "SLURM_STEP_TASKS_PER_NODE", "SLURM_NODEID", "HOROVOD_RANK", "HOROVOD_SIZE",
    "FLUX_TASK_RANK", "FLUX_JOB_SIZE", "JSM_NAMESPACE_RANK", "JSM_NAMESPACE_SIZE",
)  # fmt: skip


@pytest.fixture
def started(monkeypatch):
    """Sets just these variables."""
    for name in NAMES:
        monkeypatch.delenv(name, raising=False)

    def start(**variables):
        for name, value in variables.items():
            monkeypatch.setenv(name, str(value))
        return _launch.find_place()

    return start


def test_nothing_is_said_of_others(started):
    assert started() is None
    assert started(MASTER_ADDR="localhost", MASTER_PORT=1) is None, "one process may set them"
    assert started(WORLD_SIZE=1) is None


@pytest.mark.parametrize(
    ("variables", "place"),
    [
        ({"RANK": 3, "WORLD_SIZE": 8, "LOCAL_WORLD_SIZE": 4}, (3, 8, 4)),
        ({"LOCAL_RANK": 1, "NODE_RANK": 0, "WORLD_SIZE": 2}, (1, 2, 1)),
        ({"LOCAL_RANK": 1, "NODE_RANK": 1, "WORLD_SIZE": 4, "RANK": 3}, (3, 4, 1)),
        ({"SLURM_PROCID": 5, "SLURM_STEP_NUM_TASKS": 6, "SLURM_NODEID": 1,
          "SLURM_STEP_TASKS_PER_NODE": "4,2"}, (5, 6, 2)),
        ({"HOROVOD_RANK": 1, "HOROVOD_SIZE": 2}, (1, 2, 1)),
        ({"FLUX_TASK_RANK": 2, "FLUX_JOB_SIZE": 3}, (2, 3, 1)),
    ],
)  # fmt: skip
def test_launchers_tell_the_place(started, variables, place):
    assert started(**variables)[:3] == place


@pytest.mark.parametrize(
    ("variables", "named"),
    [
        ({"WORLD_SIZE": 4}, "WORLD_SIZE is 4"),
        ({"RANK": "x", "WORLD_SIZE": 4}, "WORLD_SIZE is 4"),
        ({"RANK": 4, "WORLD_SIZE": 4}, "no place among ranks"),
        ({"LOCAL_RANK": 0, "NODE_RANK": 1, "WORLD_SIZE": 4}, "leave open"),
    ],
)
def test_others_are_evident_and_the_place_is_not(started, variables, named):
    with pytest.raises(forebay.UsageError, match=named) as refused:
        started(**variables)
    assert "ranks=" in refused.value.remedy


def place_or_refusal(_=None):
    try:
        return str(_launch.find_place())
    except forebay.UsageError as error:
        return error.happened


def test_a_process_of_spawn_that_knows_of_others_does_not_take_all(started):
    started(MASTER_ADDR="localhost", MASTER_PORT=12345)
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert "started by multiprocessing" in pool.map(place_or_refusal, [0])[0]
    for name in ("MASTER_ADDR", "MASTER_PORT"):
        del os.environ[name]
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.map(place_or_refusal, [0])[0] == "None"


def group(rank, size):
    return SimpleNamespace(
        is_available=lambda: True,
        is_initialized=lambda: True,
        get_rank=lambda: rank,
        get_world_size=lambda: size,
    )


def test_torch_distributed_is_believed_before_the_environment(started, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch.distributed", group(1, 2))
    assert started(RANK=3, WORLD_SIZE=8)[:2] == (1, 2)
    found = forebay.find_ranks()
    assert (found.rank, found.size, found.kind) == (1, 2, "network")


def test_a_loader_of_one_process_notices_that_there_are_others(started, numbers, monkeypatch):
    assert started() is None
    with forebay.Loader(numbers, batch_size=4, decode=False) as loader:
        assert loader.ranks.kind == "single"
        next(iter(loader))
        monkeypatch.setitem(sys.modules, "torch.distributed", group(1, 2))
        with pytest.raises(forebay.UsageError, match="rank 1 of 2"):
            next(iter(loader))
    monkeypatch.delitem(sys.modules, "torch.distributed")
    with forebay.Loader(numbers, batch_size=4, decode=False, ranks="single") as loader:
        monkeypatch.setitem(sys.modules, "torch.distributed", group(1, 2))
        next(iter(loader))


@pytest.mark.parametrize(
    ("nodes", "first"),
    [("gpu[07-09,11],login", "gpu07"), ("a1", "a1"), ("a1,a2", "a1"), ("n[3]", "n3")],
)
def test_the_first_node_of_a_step(nodes, first):
    assert _connect.first_node(nodes) == first
