"""Real trainings with every way to sum gradients, in turns: the part of run_sync.py without emulation."""

import dataclasses
import json
import os
import statistics
import subprocess
import sys

from measuring import spread_of

_STRATEGIES = ("blocking", "negotiate", "gs", "nbcs", "scp", "topo", "scp-topo", "servers")


@dataclasses.dataclass(frozen=True)
class Net:
    """What a network learns here: made-up images, since only times count."""
    name: str
    shape: str
    batch: int  # of all ranks
    iterations: int


# Small images, so that a step of the largest takes two cores a second.
NETS = (Net("lenet", "1x28x28", 64, 200), Net("cifar10_full", "3x32x32", 64, 40),
        Net("resnet50", "3x32x32", 8, 4))


def measure(sync, net, ranks, repetitions):
    """{"summary": [a row for each strategy]}; the strategies take turns."""
    data = _data(sync, net)
    runs = {strategy: [] for strategy in _STRATEGIES}
    for _ in range(repetitions):
        for strategy in _STRATEGIES:
            output = sync.launch(ranks, [
                sync.command, "train", data, "--net", net.name, "--batch", net.batch,
                "--iterations", net.iterations, "--sync", strategy, "--json"])
            runs[strategy].append(json.loads(output.strip().splitlines()[-1]))
    rows = [_row(strategy, results) for strategy, results in runs.items()]
    base = rows[0]["images_per_second"]["median"]
    for row in rows:
        row["gain"] = row["images_per_second"]["median"] / base - 1
    return {"net": dataclasses.asdict(net), "summary": rows}


def _data(sync, net):
    path = os.path.join(sync.data, f"training-{net.shape}")
    if not os.path.exists(path):
        os.makedirs(sync.data, exist_ok=True)
        subprocess.run([sync.command, "pack", "-", path, "--from", "synthetic", "--shape",
                        net.shape, "--count", "8192"], check=True, stdout=sys.stderr)
    return path


def _row(strategy, results):
    seconds = [result["ranks"][0]["total_seconds"] for result in results]
    engines = [result.get("sync", {}).get("ranks", []) for result in results]
    # A thread's time counts from the engine's begin, a little before the first iteration.
    busy = [statistics.mean(rank["thread_user_seconds"] + rank["thread_system_seconds"]
                            for rank in engine) / total if engine else 0.0
            for engine, total in zip(engines, seconds)]
    exposed = [statistics.mean(rank["parameter_sync_seconds"] / rank["total_seconds"]
                               for rank in result["ranks"]) for result in results]
    return {"strategy": strategy,
            "images_per_second": spread_of([result["images_per_second"] for result in results]),
            "exposed_share": spread_of(exposed), "progress_share": spread_of(busy),
            "overlap": spread_of([result.get("sync", {}).get("overlap", 0.0)
                                  for result in results])}
