#!/usr/bin/python3
"""Measures reading and training over ranks, nodes, data sets and file systems.

  bench/run_matrix.py --build build/release                 a few minutes
  bench/run_matrix.py --build build/release --full          hours, the figures of docs/results

Every configuration is one run of `forebay bench read` or `forebay bench train` under the launcher;
strategies are interleaved inside of it. All results go into one JSON file, which
is whole after each configuration; `forebay-bench report` draws it. A configuration that fails is listed
in the file, the others go on, and the exit status is 1. Cold caches, other read-ahead and the
modelled file system need root; without, they are left out, and the results say so.

  strong    a fixed number of samples, read by more and more ranks
  weak      two samples a rank and iteration, the same number of samples in all
  seek      seeking alone, by rank
  blocks    mmap against pread over the block size, one reader

On the local disk all ranks share one page cache. On the modelled parallel file system each node has
one of its own, as on a cluster.
"""

import contextlib
import os
import subprocess
import sys
from dataclasses import dataclass

import machine
import measuring
from measuring import PFS
from nodes import end_by_exception

# Read-ahead of the device, KiB; None: as found. PFS: bench/pfs.
LOCAL_128, LOCAL = "local disk, read-ahead 128 KiB", "local disk as found"
READ_AHEAD_KB = {LOCAL_128: 128, LOCAL: None}


@dataclass(frozen=True)
class DataSet:
    name: str
    preset: str
    count: int
    batch: int
    samples: int  # that a run reads

    def pack_words(self, folder):
        return ["pack", "-", f"{folder}/{self.name}", "--from", "synthetic", "--preset",
                self.preset, "--count", str(self.count)]


@dataclass(frozen=True)
class Configuration:
    kind: str     # read or train
    data: DataSet
    storage: str
    scaling: str
    nodes: int
    ranks_per_node: int
    words: tuple = ()

    def text(self):
        return (f"{self.kind:5} {self.scaling:6} {self.data.name:12} {self.storage:32} "
                f"{self.nodes} x {self.ranks_per_node} {' '.join(self.words)}")


def data_sets(full):
    """3 KB and 192 KB records."""
    if full:
        return [DataSet("cifar-3KB", "cifar10-large", 400_000, 640, 400_000),
                DataSet("imagenet-192KB", "imagenet-large", 10_000, 64, 9_984)]
    return [DataSet("cifar-3KB", "cifar10-large", 50_000, 640, 25_600),
            DataSet("imagenet-192KB", "imagenet-large", 1_000, 64, 512)]


def all_configurations(full, storages):
    found = []
    for data in data_sets(full):
        for storage in storages:
            found += _read(full, data, storage)
    return found


def _read(full, data, storage):
    if storage == PFS:
        # The model moves at most 200 MB/s: a part of the full data set is enough for minutes.
        data = _part(data, 25_600 if data.batch == 640 else 1_024)
        shapes = [(nodes, 1) for nodes in ((1, 2, 4, 8, 16) if full else (1, 4))]
    else:
        shapes = [(1, ranks) for ranks in ((1, 2, 4, 8, 16) if full else (1, 4))]
    for nodes, ranks in shapes:
        yield _configuration(data, storage, "strong", nodes, ranks, data.batch)
    if full or storage == PFS:
        # Iterations of two samples a rank are many and small, so fewer samples in all.
        small = _part(data, (25_600 if full else 5_120) // (1 if data.batch == 640 else 40))
        for nodes, ranks in shapes:
            yield _configuration(small, storage, "weak", nodes, ranks, 2 * nodes * ranks)
    nodes, ranks = shapes[-1]
    if full or storage != LOCAL:
        yield _configuration(data, storage, "seek", nodes, ranks, data.batch, "--seek-only")
        yield _configuration(data, storage, "blocks", 1, 1, data.batch, "--block-sizes",
                             "--no-plain", "--no-verify", "--strategies", "lmdb")


def _part(data, samples):
    return DataSet(data.name, data.preset, data.count, data.batch, min(samples, data.samples))


def _configuration(data, storage, scaling, nodes, ranks_per_node, batch, *words):
    iterations = max(1, data.samples // batch)
    return Configuration("read", data, storage, scaling, nodes, ranks_per_node,
                         ("--batch", str(batch), "--iterations", str(iterations), *words))


def trainings(full):
    """Ranks of one thread, and the variant of one process with as many threads."""
    cifar, imagenet = data_sets(full)
    iterations = 100 if full else 5
    for data, net, batch in ((cifar, "cifar10_full", 64), (imagenet, "caffenet_small", 16)):
        for ranks, threads in ((2, 1), (1, 2)):
            yield Configuration("train", data, LOCAL, "strong", 1, ranks,
                                ("--net", net, "--batch", str(batch), "--iterations",
                                 str(iterations), "--threads", str(threads)))


def parse_arguments():
    parser = measuring.parser(__doc__, "results", timeout=1800)
    parser.add_argument("--full", action="store_true", help="all ranks, all nodes, large data")
    parser.add_argument("--only", choices=("local", "pfs", "train"), nargs="+",
                        default=["local", "pfs", "train"])
    parser.add_argument("--scaling", choices=("strong", "weak", "seek", "blocks"), nargs="+",
                        default=["strong", "weak", "seek", "blocks"])
    parser.add_argument("--repetitions", type=int, help="of every run (default: 2, full: 5)")
    parser.add_argument("--strategies", help="as forebay bench read takes them (default: all)")
    parser.add_argument("--dry-run", action="store_true", help="print what would be measured")
    return parser.parse_args()


class Matrix(measuring.Measuring):

    bench = "matrix"

    def __init__(self, options):
        super().__init__(options, go_on=False)
        self.privileged = machine.can_drop_caches()
        self.left_out = []

    def configurations(self):
        """What this machine and build can measure; fills left_out."""
        storages = []
        if "local" in self.options.only:
            storages.append(LOCAL)
            self._add_if(storages, LOCAL_128, self.privileged, "needs root")
        if "pfs" in self.options.only:
            self._add_if(storages, PFS, self.privileged and os.path.exists(self.pfs),
                         "needs root and forebay-pfs")
        found = [configuration for configuration in all_configurations(self.options.full, storages)
                 if configuration.scaling in self.options.scaling]
        if "train" in self.options.only:
            if os.path.exists(os.path.join(self.build, "src", "forebay-train")):
                found += trainings(self.options.full)
            else:
                self.left_out.append("training: forebay-train was not built")
        return found

    def _add_if(self, storages, storage, possible, why):
        if possible:
            storages.append(storage)
        else:
            self.left_out.append(f"{storage}: {why}")

    def words(self, configuration, dataset, output):
        """The command of one configuration, without its launcher."""
        words = [self.command, "bench", configuration.kind, dataset, *configuration.words,
                 "--json", output, "--repetitions", str(self._repetitions(configuration))]
        if configuration.kind == "read" and self.privileged:
            words.append("--cold")
        if self.options.strategies and "--strategies" not in words:
            words += ["--strategies", self.options.strategies]
        return words

    def _repetitions(self, configuration):
        if configuration.scaling in ("seek", "blocks"):
            return 1
        return self.options.repetitions or (5 if self.options.full else 2)

    def make_data(self, configurations):
        for data in {configuration.data.name: configuration.data
                     for configuration in configurations}.values():
            if os.path.exists(os.path.join(self.data, data.name, "data.mdb")):
                continue
            os.makedirs(self.data, exist_ok=True)
            subprocess.run([self.command, *data.pack_words(self.data)], check=True,
                           stdout=sys.stderr)

    def measure(self, configuration):
        name, load = configuration.data.name, machine.load_average()
        read_ahead = READ_AHEAD_KB.get(configuration.storage)
        with (machine.read_ahead_set_to(os.path.join(self.data, name), read_ahead) if read_ahead
              else contextlib.nullcontext()):
            result, file_system = self.json_of(
                configuration, name, lambda *places: self.words(configuration, *places))
        return {"kind": configuration.kind, "data": name, "storage": configuration.storage,
                "scaling": configuration.scaling, "load": load, "file_system": file_system,
                "result": result}

    def facts(self):
        return {"name": "full matrix" if self.options.full else "quick matrix",
                "read_ahead_kb": machine.read_ahead_kb(self.data), "left_out": self.left_out}

    def measure_all(self):
        configurations = self.configurations()
        for text in self.left_out:
            print(f"left out: {text}", file=sys.stderr)
        if self.options.dry_run:
            for configuration in configurations:
                print(configuration.text())
            return
        self.make_data(configurations)
        self.run(configurations)
        print(self.output)


def main():
    end_by_exception()
    matrix_run = Matrix(parse_arguments())
    matrix_run.measure_all()
    sys.exit(1 if matrix_run.failures else 0)


if __name__ == "__main__":
    main()
