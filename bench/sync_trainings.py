"""Real trainings with every way to sum gradients, in turns: the part of run_sync.py without emulation."""

import dataclasses
import json
import os
import statistics
import subprocess

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


class Trainings:

    def __init__(self, command, launcher, folder, timeout):
        self.command, self.launcher, self.folder, self.timeout = command, launcher, folder, timeout

    def measure(self, net, ranks, repetitions):
        """{"summary": [a row for each strategy]}; the strategies take turns."""
        data = self._data(net)
        runs = {strategy: [] for strategy in _STRATEGIES}
        for _ in range(repetitions):
            for strategy in _STRATEGIES:
                runs[strategy].append(self._train(net, data, ranks, strategy))
        rows = [self._row(strategy, results) for strategy, results in runs.items()]
        base = rows[0]["images_per_second"]["median"]
        for row in rows:
            row["gain"] = row["images_per_second"]["median"] / base - 1
        return {"net": dataclasses.asdict(net), "summary": rows}

    def _data(self, net):
        path = os.path.join(self.folder, f"training-{net.shape}")
        if not os.path.exists(path):
            os.makedirs(self.folder, exist_ok=True)
            self._run([self.command, "pack", "-", path, "--from", "synthetic", "--shape", net.shape,
                       "--count", "8192"])
        return path

    def _train(self, net, data, ranks, strategy):
        output = self._run([*self.launcher(ranks), self.command, "train", data, "--net", net.name,
                            "--batch", str(net.batch), "--iterations", str(net.iterations),
                            "--sync", strategy, "--json"])
        return json.loads(output.strip().splitlines()[-1])

    def _run(self, words):
        return subprocess.run(words, check=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              encoding="utf-8", timeout=self.timeout).stdout

    @staticmethod
    def _row(strategy, results):
        def spread(values):
            return {"median": statistics.median(values), "least": min(values), "most": max(values)}

        seconds = [result["ranks"][0]["total_seconds"] for result in results]
        engines = [result.get("sync", {}).get("ranks", []) for result in results]
        # A thread's time counts from the engine's begin, a little before the first iteration.
        busy = [statistics.mean(rank["thread_user_seconds"] + rank["thread_system_seconds"]
                                for rank in engine) / total if engine else 0.0
                for engine, total in zip(engines, seconds)]
        exposed = [statistics.mean(rank["parameter_sync_seconds"] / rank["total_seconds"]
                                   for rank in result["ranks"]) for result in results]
        return {"strategy": strategy,
                "images_per_second": spread([result["images_per_second"] for result in results]),
                "exposed_share": spread(exposed), "progress_share": spread(busy),
                "overlap": spread([result.get("sync", {}).get("overlap", 0.0)
                                   for result in results])}
