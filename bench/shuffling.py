"""What run_shuffling.py measures: the figures of papers 003 and 004, as plain values.

  async    003, tables II to V: one sample a read, the same read ahead, grouped with one buffer and
           with two, over nodes of the modelled parallel file system
  buffers  003, figures 9 and 10: the last two over the samples of a buffer
  memory   004, figures 9 and 10: samples of 1 KB to 1 MB in random order, out of storage, and out of
           the memory of all ranks in the order of a list and in one that it chooses
  ratios   004, figures 11 to 13: the part of the data set that is in memory, against the time that
           computing takes
"""

import math
from dataclasses import dataclass, field

from measuring import PFS

LOCAL = "local disk"
SECTIONS = ("async", "buffers", "memory", "ratios")

# One request after the other, of one sample each: what a reader of one sample a call does.
ONE = "order=shuffled+window=1+gap-bytes=0+depth=1+buffers=1"
AHEAD = "order=shuffled+window=1+gap-bytes=0+depth=1+buffers=4"


@dataclass(frozen=True)
class DataSet:
    """Samples of `shape` numbers of 4 bytes, in a file of its own."""
    name: str
    count: int
    shape: tuple
    suffix: str = ".npy"

    @property
    def file(self):
        return self.name + self.suffix

    @property
    def sample_bytes(self):
        return 4 * math.prod(self.shape)


@dataclass(frozen=True)
class Cell:
    """One run of `forebay bench load`: its variants are measured side by side."""
    section: str
    data: DataSet
    storage: str
    nodes: int
    ranks_per_node: int
    batch: int
    variants: dict = field(hash=False)  # what the table calls it: options
    compute_ms: float = 0
    x: object = None                    # where it stands in its table
    options: tuple = ()

    def text(self):
        return (f"{self.section:8} {self.data.name:14} {self.storage:12} {self.nodes} x "
                f"{self.ranks_per_node} computing {self.compute_ms:g} ms, {self.x}")


# The papers' samples, with a smaller cube: 12 channels of 32^3, and 3 series of 1,600.
COSMOFLOW = DataSet("cosmoflow-32", 256, (12, 32, 32, 32), ".h5")
NEURON = DataSet("neuron-1600", 8192, (1600, 3), ".h5")
NODES = (1, 2, 4, 8)


def _grouped(group, buffers):
    return f"order=grouped+group={group}+buffers={buffers}"


def _async():
    for data, group, batch, compute_ms in ((COSMOFLOW, 16, 16, 400), (NEURON, 512, 256, 120)):
        for nodes in NODES:
            yield Cell("async", data, PFS, nodes, 1, batch,
                       {"one sample a read": ONE, "read ahead": AHEAD,
                        "grouped, 1 buffer": _grouped(group, 1),
                        "grouped, 2 buffers": _grouped(group, 2)},
                       compute_ms=compute_ms / nodes, x=nodes)


def _buffers():
    for data, groups, batch, compute_ms in ((COSMOFLOW, (2, 4, 8, 16, 32), 8, 100),
                                            (NEURON, (8, 32, 128, 512, 2048), 256, 60)):
        for group in groups:
            yield Cell("buffers", data, PFS, 4, 1, batch,
                       {"1 buffer": _grouped(group, 1), "2 buffers": _grouped(group, 2)},
                       compute_ms=compute_ms, x=group)


def _memory(folder):
    for kilobytes in (1, 4, 16, 64, 256, 1024):
        count = max(256, 128 * 1024 // kilobytes)
        data = DataSet(f"random-{kilobytes}KB", count, (kilobytes * 256,))
        for ranks in (1, 2, 4):
            batch = max(ranks, min(256, count // 8))
            yield Cell("memory", data, LOCAL, ranks, 1, batch,
                       {"shuffled from storage": "order=shuffled",
                        "listed in memory": f"order=listed+hold=memory+list={folder}/{data.name}.ids",
                        "in_memory": f"order=in_memory+group={max(1, count // 64)}"},
                       x=(kilobytes, ranks), options=("--epochs", "4"))


def _ratios():
    data = DataSet("ratios-64KB", 4096, (16 * 1024,))
    variants = {"0": "order=shuffled+window=4"}
    variants.update({str(ratio): f"order=in_memory+group=64+memory-ratio={ratio}"
                     for ratio in (0.25, 0.5, 1)})
    for compute_ms in (0, 5, 10, 20, 50, 100):
        yield Cell("ratios", data, PFS, 4, 1, 128, variants, compute_ms=compute_ms, x=compute_ms,
                   options=("--epochs", "3"))


def cells(sections, folder):
    makers = {"async": _async, "buffers": _buffers, "memory": lambda: _memory(folder),
              "ratios": _ratios}
    return [cell for section in sections for cell in makers[section]()]
