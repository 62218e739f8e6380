"""Ranks that torchrun and its like have started: connected, and with all that MPI's ranks have."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from conftest import LOAD, SAVE, json_lists, no_segments, run_ranks

torch = pytest.importorskip("torch")

DELIVERED = """
import json, sys, forebay
found = []
for options in json.loads(sys.argv[2]):
    with forebay.Loader(
        sys.argv[1], global_batch_size=12, decode=False, seed=4, **options
    ) as loader:
        found.append([batch["sample"].tolist() for _ in range(2) for batch in loader])
        ranks = loader.ranks
# Lines of that length run into each other.
with open(f"{sys.argv[3]}.{ranks.rank}", "w") as told:
    json.dump([ranks.kind, found], told)
"""


def delivered(ranks, launcher, kind, *words):
    """Batches, by rank."""
    run_ranks(ranks, *words, launcher=launcher)
    told = [json.loads(Path(f"{words[-1]}.{rank}").read_text()) for rank in range(ranks)]
    assert {each[0] for each in told} == {kind}
    return [batches for _, batches in told]


ORDERS = (
    {"order": "strided"},
    {"order": "strided", "coalesce": 3},
    {"order": "shuffled", "end": "exact"},
    {"order": "grouped", "group": 7},
    {"order": "in_memory", "end": "exact"},
    {"order": "shuffled", "hold": "memory"},
)


@pytest.mark.parametrize("ranks", [2, 4])
def test_orders_are_those_of_mpi(numbers, script, tmp_path, ranks):
    words = [script(DELIVERED), numbers, json.dumps(ORDERS)]
    by_mpi = delivered(ranks, "mpirun", "mpi", *words, tmp_path / "mpi")
    by_torch = delivered(ranks, "torchrun", "network", *words, tmp_path / "torch")
    assert by_mpi == by_torch
    assert not no_segments()


def test_one_process_of_a_node_reads_for_all(numbers, script):
    text = """
import json, sys, forebay
loader = forebay.Loader(sys.argv[1], batch_size=6, decode=False, order="strided", epochs=1)
for batch in loader:
    pass
print(json.dumps([loader.stats()["requests"], loader.explain()]), flush=True)
loader.close()
"""
    found = json_lists(run_ranks(3, script(text), numbers, launcher="torchrun").stdout)
    assert sorted(requests > 0 for requests, _ in found) == [False, False, True]
    assert any("1 of 3 ranks on this node reads for all" in explained for _, explained in found)


def test_gradients_are_summed_by_every_strategy(script):
    text = """
import sys
import numpy as np
import forebay
for strategy in forebay.Synchronizer.strategies():
    if strategy.startswith("scp"):
        continue  # wants cores of its own
    sums = forebay.Synchronizer(strategy=strategy)
    rank, size = sums.ranks.rank, sums.ranks.size
    for step in range(5):
        arrays = [np.full(1000 * (i + 1), rank + i, np.float32) for i in range(4)]
        handles = [sums.allreduce(f"t{i}", a, reduction="sum") for i, a in enumerate(arrays)]
        for handle in handles:
            handle.wait()
        for i, array in enumerate(arrays):
            assert (array == sum(range(size)) + i * size).all(), (strategy, step)
    sums.close()
    print("right", strategy, flush=True)
"""
    out = run_ranks(4, script(text), launcher="torchrun").stdout
    for strategy in ("negotiate", "gs", "nbcs", "topo"):
        assert out.count(f"right {strategy}") == 4


@pytest.mark.parametrize("launchers", [("mpirun", "torchrun"), ("torchrun", "mpirun")])
def test_a_run_goes_on_under_the_other_launcher(numbers, script, tmp_path, launchers):
    state = tmp_path / "state.json"

    def ids(output):
        return [i for seen in json_lists(output) for i in seen]

    first = run_ranks(4, script(SAVE, "save.py"), numbers, state, launcher=launchers[0])
    rest = run_ranks(2, script(LOAD, "load.py"), numbers, state, launcher=launchers[1])
    assert sorted(ids(first.stdout) + ids(rest.stdout)) == list(range(203))


def test_an_error_of_one_rank_is_told_by_all(numbers, script):
    text = """
import sys, forebay
def decode(value):
    raise KeyError("no such thing")
mine = decode if forebay.find_ranks().rank == 1 else (lambda value: {"x": 1})
loader = forebay.Loader(sys.argv[1], batch_size=4, decode=mine, order="strided")
try:
    for _ in range(50):
        for batch in loader:
            pass
except forebay.Error as error:
    print("told", error.rank, "no such thing" in str(error), flush=True)
loader.close()
"""
    out = run_ranks(3, script(text), numbers, launcher="torchrun").stdout
    assert out.count("told 1 True") == 3


LONG = """
import os, sys, time, forebay
loader = forebay.Loader(sys.argv[1], batch_size=4, decode=False, order=sys.argv[2])
rank = loader.ranks.rank
begun = None
try:
    for _ in range(100000):
        for i, batch in enumerate(loader):
            if rank == 1 and i == 3:
                open(sys.argv[3], "w").close()
                os.kill(os.getpid(), 9)
            if begun is None and os.path.exists(sys.argv[3]):
                begun = time.monotonic()
            time.sleep(0.01)
except forebay.Error as error:
    took = 0 if begun is None else time.monotonic() - begun
    with open(f"{sys.argv[3]}.{rank}", "w") as told:
        told.write(f"{took:.1f} {error.kind} {error}")
    raise
"""


@pytest.mark.parametrize("order", ["strided", "in_memory"])
def test_a_rank_that_dies_ends_the_others(numbers, script, tmp_path, order):
    """Started without torchrun, which would end the others itself."""
    path = script(LONG)
    sign = tmp_path / "killed"
    ranks = [
        subprocess.Popen(
            [sys.executable, str(path), numbers, order, str(sign)],
            env={**os.environ, "RANK": str(rank), "WORLD_SIZE": "3", "LOCAL_WORLD_SIZE": "3"},
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )
        for rank in range(3)
    ]  # fmt: skip
    try:
        for rank in ranks:
            rank.wait(60)
    finally:
        for rank in ranks:
            rank.kill()
    assert ranks[1].returncode == -signal.SIGKILL
    for rank in (0, 2):
        seconds, kind, text = (tmp_path / f"killed.{rank}").read_text().split(" ", 2)
        assert kind == "communication", text
        assert "rank 1" in text
        assert float(seconds) < 10
    assert not no_segments()


SPAWNED = """
import sys
import torch, torch.distributed as dist, torch.multiprocessing as mp
import forebay

def work(rank, size, path, meeting):
    dist.init_process_group("gloo", init_method=f"file://{meeting}", rank=rank, world_size=size)
    loader = forebay.Loader(path, global_batch_size=12, decode=False, seed=4, order="in_memory")
    assert (loader.ranks.rank, loader.ranks.size, loader.ranks.kind) == (rank, size, "network")
    seen = [i for batch in loader for i in batch["sample"][~batch["padded"]].tolist()]
    counts = torch.zeros(203, dtype=torch.int64)
    counts[seen] += 1
    dist.all_reduce(counts)          # torch's Gloo beside Forebay's connections
    assert (counts == 1).all(), counts
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(3, 2))
    model(torch.ones(4, 3)).sum().backward()
    sums = forebay.Synchronizer()
    assert sums.allreduce("x", torch.full((5,), float(rank)), reduction="sum").wait() is not None
    sums.close()
    loader.close()
    dist.destroy_process_group()

if __name__ == "__main__":
    mp.spawn(work, (3, sys.argv[1], sys.argv[2]), nprocs=3)
    print("all done", flush=True)
"""


def test_processes_of_spawn_meet_in_the_store_of_their_group(numbers, script, tmp_path):
    done = subprocess.run(
        [sys.executable, str(script(SPAWNED)), numbers, str(tmp_path / "meeting")],
        check=False, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "all done" in done.stdout


def test_a_loader_before_init_process_group_does_not_disturb_it(numbers, script):
    """Both meet at MASTER_PORT."""
    text = """
import sys
import torch, torch.distributed as dist
import forebay.torch
first = forebay.torch.Loader(sys.argv[1], batch_size=4, codec="raw", schema="x:i64[]", end="exact")
seen = sum(len(batch["sample"]) for batch in first)
dist.init_process_group("gloo")
count = torch.tensor(seen)
dist.all_reduce(count)
second = forebay.torch.Loader(sys.argv[1], batch_size=4, codec="raw", schema="x:i64[]", end="exact")
again = sum(len(batch["sample"]) for batch in second)
print("seen", int(count), again == seen, flush=True)
first.close(), second.close()
"""
    out = run_ranks(2, script(text), numbers, launcher="torchrun").stdout
    assert out.count("seen 203 True") == 2


def test_ranks_that_do_not_come_are_named(numbers, script):
    """Rank 1 of 2 is never started."""
    text = """
import sys, forebay
from forebay import _connect
_connect._PATIENCE = 2.0
forebay.Loader(sys.argv[1], batch_size=4, decode=False)
"""
    begun = time.monotonic()
    done = subprocess.run(
        [sys.executable, str(script(text)), numbers],
        check=False, capture_output=True, text=True, timeout=60,
        env={**os.environ, "RANK": "0", "WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2"},
    )  # fmt: skip
    assert done.returncode != 0
    assert time.monotonic() - begun < 20
    assert "CommunicationError" in done.stderr
    assert "rank 1" in done.stderr
