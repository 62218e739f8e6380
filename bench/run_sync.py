#!/usr/bin/python3
"""Measures gradient synchronization, on the emulated accelerator and in real trainings: chapter 6 of
paper 002.

  bench/run_sync.py --build build/release                            all of it: hours on two cores
  bench/run_sync.py --sections weak nets --nets resnet50 googlenet   a part
  bench/run_sync.py --page docs/results/sync.md                      the page from what is there

Every cell is one run of `forebay-bench sync` under the launcher, its strategies interleaved, or one
run of a peer (bench/peers). Results go into one JSON file, which is whole after each cell; a cell
that is already in the file is not measured again. A cell that fails is listed, the others go on, and
the exit status is 1.
"""

import dataclasses
import json
import os
import statistics
import subprocess
import sys

import machine
import measuring
import sync_page
from measuring import spread_of

_STRATEGIES = "negotiate,gs,nbcs,scp,topo,scp-topo"
_TRAINED = ("blocking", "negotiate", "gs", "nbcs", "scp", "topo", "scp-topo", "servers")
SECTIONS = ("weak", "strong", "contention", "cycles", "input", "nets", "peers", "training")


@dataclasses.dataclass(frozen=True)
class Cell:
    """One run; `x` is where its section puts it. A peer is a script of bench/peers."""
    section: str
    x: str
    net: str
    ranks: int
    batch: int
    strategies: str = _STRATEGIES
    input: str = "real"
    threads: int = 2
    cycle_ms: float = 5
    peer: str = ""

    def text(self):
        return " ".join(str(value) for value in dataclasses.astuple(self) if value != "")


@dataclasses.dataclass(frozen=True)
class TrainedNet:
    """What a network learns here: made-up images, since only times count."""
    name: str
    shape: str
    batch: int  # of all ranks
    iterations: int


# Small images, so that a step of the largest takes two cores a second.
_TRAINED_NETS = (TrainedNet("lenet", "1x28x28", 64, 200),
                 TrainedNet("cifar10_full", "3x32x32", 64, 40),
                 TrainedNet("resnet50", "3x32x32", 8, 4))


def cells(options):
    net, most, cores = options.nets[0], options.ranks, os.cpu_count()
    batch, threads = options.batch, max(2, cores)
    ranks = [count for count in (1, 2, 4, 8) if count <= most]
    yield from (Cell("weak", f"{count}", net, count, batch) for count in ranks)
    yield from (Cell("strong", f"{count}", net, count, batch * most // count) for count in ranks)
    yield from (Cell("contention", f"{count}", net, most, batch, threads=count)
                for count in sorted({1, 2, cores, 2 * cores}))
    yield from (Cell("cycles", f"{cycle:g}", net, most, batch, cycle_ms=cycle,
                     strategies="negotiate,gs,nbcs,topo", threads=threads)
                for cycle in (1, 2.5, 5, 10))
    yield from (Cell("input", kind, net, most, batch, input=kind, threads=threads)
                for kind in ("real", "synthetic", "none"))
    yield from (Cell("nets", name, name, most, batch, threads=threads) for name in options.nets)
    for name in options.nets:
        for count in (1, threads):
            for peer in ("", "ddp_gloo", "horovod_torch"):
                yield Cell("peers", f"{name}, {count} input threads", name, most, batch,
                           "blocking,negotiate,topo,scp-topo" if not peer else "", threads=count,
                           peer=peer)
    yield from (Cell("training", f"{net.name}, {count} ranks", net.name, count, net.batch, "", "", 1)
                for net in _TRAINED_NETS for count in ranks if count > 1)


def parse_arguments():
    parser = measuring.parser(__doc__, "sync", timeout=3600)
    parser.add_argument("--page", help="write the tables to this file (default: standard output)")
    parser.add_argument("--sections", nargs="+", choices=SECTIONS, default=SECTIONS)
    parser.add_argument("--nets", nargs="+", default=sync_page.NETS)
    parser.add_argument("--ranks", type=int, default=4, help="the most (default 4)")
    parser.add_argument("--batch", type=int, default=16, help="images of a rank and step")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--warmup", type=int, default=4)
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--time-scale", type=float, default=4,
                        help="factor of the device's times: two cores decode for a slow device only")
    parser.add_argument("--shrink", type=int, default=16,
                        help="one of so many numbers of a gradient is summed: cores do it here")
    parser.add_argument("--peer-python", default="/usr/bin/python3",
                        help="with torch, and horovod for its peer")
    parser.add_argument("--dry-run", action="store_true", help="print what would be measured")
    return parser.parse_args()


# Real trainings with every way to sum gradients, in turns: the part without emulation.

def measure_trainings(sync, net, ranks, repetitions):
    """{"summary": [a row for each strategy]}; the strategies take turns."""
    data = _training_data(sync, net)
    runs = {strategy: [] for strategy in _TRAINED}
    for _ in range(repetitions):
        for strategy in _TRAINED:
            output = sync.launch(ranks, [
                sync.command, "train", data, "--net", net.name, "--batch", net.batch,
                "--iterations", net.iterations, "--sync", strategy, "--json"])
            runs[strategy].append(json.loads(output.strip().splitlines()[-1]))
    rows = [_training_row(strategy, results) for strategy, results in runs.items()]
    base = rows[0]["images_per_second"]["median"]
    for row in rows:
        row["gain"] = row["images_per_second"]["median"] / base - 1
    return {"net": dataclasses.asdict(net), "summary": rows}


def _training_data(sync, net):
    path = os.path.join(sync.data, f"training-{net.shape}")
    if not os.path.exists(path):
        os.makedirs(sync.data, exist_ok=True)
        subprocess.run([sync.command, "pack", "-", path, "--from", "synthetic", "--shape",
                        net.shape, "--count", "8192"], check=True, stdout=sys.stderr)
    return path


def _training_row(strategy, results):
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


class Sync(measuring.Measuring):

    bench = "sync matrix"

    def _network_flags(self, cell):
        return ["--net", cell.net, "--batch", str(cell.batch), "--time-scale",
                str(self.options.time_scale), "--shrink", str(self.options.shrink)]

    def _training_flags(self, cell):
        return ["--steps", str(self.options.steps), "--warmup", str(self.options.warmup),
                "--repetitions", str(self.options.repetitions), "--input", cell.input,
                "--input-threads", str(cell.threads)]

    def measure(self, cell):
        return {**dataclasses.asdict(cell), "load": machine.load_average(),
                "result": self._result(cell)}

    def _result(self, cell):
        command = [self.bench_command, "sync"]
        if cell.section == "training":
            net = next(net for net in _TRAINED_NETS if net.name == cell.net)
            return measure_trainings(self, net, cell.ranks, self.options.repetitions)
        if not cell.peer:
            result = self._last_line(self.launch(cell.ranks, [
                *command, *self._network_flags(cell), *self._training_flags(cell), "--strategy",
                cell.strategies, "--cycle", f"{round(cell.cycle_ms * 1000)}us", "--json", "-"]))
            result.pop("runs")
            return result
        operations = os.path.join(self.build, "bench", "operations.json")
        os.makedirs(os.path.dirname(operations), exist_ok=True)
        with open(operations, "w", encoding="utf-8") as file:
            subprocess.run([*command, *self._network_flags(cell), "--operations"], stdout=file,
                           check=True)
        script = os.path.join(measuring.ROOT, "bench", "peers", f"{cell.peer}.py")
        return self._last_line(self.launch(
            cell.ranks, [self.options.peer_python, "-B", script, operations,
                         *self._training_flags(cell)],
            {"HOROVOD_CYCLE_TIME": f"{cell.cycle_ms:g}"}))

    @staticmethod
    def _last_line(output):
        return json.loads(output.strip().splitlines()[-1])

    def facts(self):
        return {"options": {name: getattr(self.options, name) for name in (
            "ranks", "batch", "steps", "warmup", "repetitions", "time_scale", "shrink")}}


def main():
    options = parse_arguments()
    sync = Sync(options)
    sync.run([cell for cell in cells(options) if cell.section in options.sections])
    if not options.dry_run:
        page = sync_page.page(sync.write())
        if options.page:
            with open(options.page, "w", encoding="utf-8") as file:
                file.write(page)
        else:
            print(page)
    sys.exit(1 if sync.failures else 0)


if __name__ == "__main__":
    main()
