"""What run_matrix.py measures: every configuration, as plain values.

  strong    a fixed number of samples, read by more and more ranks
  weak      two samples a rank and iteration, the same number of samples in all
  seek      seeking alone, by rank
  blocks    mmap against pread over the block size, one reader

On the local disk all ranks share one page cache. On the modelled parallel file system each node has
one of its own, as on a cluster.
"""

from dataclasses import dataclass

from measuring import PFS

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


def configurations(full, storages):
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
