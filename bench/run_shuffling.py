#!/usr/bin/python3
"""Measures orders that are new in every epoch: the tables of papers 003 and 004.

  bench/run_shuffling.py --build build/release                      all of it: an hour
  bench/run_shuffling.py --sections async --output results.json     003, tables II to V

Every cell is one run of `forebay bench load` under the launcher, its variants
interleaved, caches dropped before each. Results go into one JSON file, which is whole after each
cell; tables (Markdown) go to standard output at the end, medians with least and most. A cell that is
already in the file is not measured again. A cell that fails is listed, the others go on, and the
exit status is 1. Needs root for cold caches and the modelled file system, and NumPy and h5py.

  async    003, tables II to V: one sample a read, the same read ahead, grouped with one buffer and
           with two, over nodes of the modelled parallel file system
  buffers  003, figures 9 and 10: the last two over the samples of a buffer
  memory   004, figures 9 and 10: samples of 1 KB to 1 MB in random order, out of storage, and out of
           the memory of all ranks in the order of a list and in one that it chooses
  ratios   004, figures 11 to 13: the part of the data set that is in memory, against the time that
           computing takes
"""

import math
import os
import sys
from dataclasses import dataclass, field

import machine
import measuring
from measuring import PFS
from nodes import end_by_exception

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


def parse_arguments():
    parser = measuring.parser(__doc__, "shuffling", timeout=1800)
    parser.add_argument("--sections", nargs="+", choices=SECTIONS,
                        default=SECTIONS)
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--dry-run", action="store_true", help="print what would be measured")
    return parser.parse_args()


def make_data(data, folder):
    """Writes the data set, and a list of its samples in random order, unless they are there."""
    import numpy  # only who measures needs it
    path = os.path.join(folder, data.file)
    if os.path.exists(path) and os.path.exists(os.path.join(folder, f"{data.name}.ids")):
        return
    os.makedirs(folder, exist_ok=True)
    random = numpy.random.default_rng(1)
    with open(os.path.join(folder, f"{data.name}.ids"), "w", encoding="ascii") as file:
        file.write("\n".join(map(str, random.permutation(data.count))) + "\n")
    shape = (data.count, *data.shape)
    if data.suffix == ".npy":
        array = numpy.lib.format.open_memmap(path + ".part", "w+", "<f4", shape)
        _fill(array, random)
        array.flush()
    else:
        import h5py
        with h5py.File(path + ".part", "w") as file:
            _fill(file.create_dataset("x", shape, "<f4"), random)
    os.replace(path + ".part", path)


def _fill(array, random):
    for row in range(len(array)):
        array[row] = random.random(array.shape[1:], "f4")


class Shuffling(measuring.Measuring):

    def words(self, cell, dataset, output):
        return [self.command, "bench", "load", dataset, "--variants",
                *cell.variants.values(), "--batch", str(cell.batch), "--compute",
                f"{round(cell.compute_ms * 1000)}us", "--repetitions",
                str(self.options.repetitions), "--cold", "--json", output, *cell.options]

    def measure(self, cell):
        make_data(cell.data, self.data)
        result, _ = self.json_of(cell, cell.data.file, lambda *places: self.words(cell, *places),
                                 {"FOREBAY_RANKS_PER_NODE": str(cell.ranks_per_node)})
        for row, name in zip(result["summary"], cell.variants):
            row["name"] = name
        return {"section": cell.section, "data": cell.data.name, "x": cell.x,
                "sample_bytes": cell.data.sample_bytes, "storage": cell.storage,
                "compute_ms": cell.compute_ms, "batch": cell.batch,
                "load": machine.load_average(), "summary": result["summary"]}

    def facts(self):
        return {"pfs": " ".join(measuring.PFS_OPTIONS)}


def _x(result):
    x = result["x"]
    return f"{x[0]} KB, {x[1]} ranks" if isinstance(x, list) else x


_X = {"async": "nodes", "buffers": "samples of a buffer", "memory": "sample, ranks",
      "ratios": "computing, ms a batch"}
_FIGURES = {"async": (("epoch, s", "seconds", 2), ("exposed, s", "exposed_seconds", 2)),
            "buffers": (("epoch, s", "seconds", 2), ("exposed, s", "exposed_seconds", 2)),
            "memory": (("MB/s", "mb_per_second", 0),),
            "ratios": (("3 epochs, s", "seconds", 2), ("exposed, s", "exposed_seconds", 2))}


def tables(results):
    """Markdown, a table for each section and data set; for `memory` one for all sizes."""
    text = ""
    for section in SECTIONS:
        groups = {}
        for one in results:
            if one["section"] == section:
                groups.setdefault("" if section == "memory" else one["data"], []).append(one)
        for data, group in groups.items():
            names = [row["name"] for row in group[0]["summary"]]
            figures = _FIGURES[section]
            head = [_X[section]] + [f"{name}: {title}" for name in names for title, _, _ in figures]
            rows = [[_x(one)] + [measuring.spread_text(row[figure], decimals)
                                 for row in one["summary"] for _, figure, decimals in figures]
                    for one in group]
            text += f"### {section} {data}\n\n{measuring.markdown(head, rows)}\n"
    return text


def main():
    end_by_exception()
    options = parse_arguments()
    shuffling_run = Shuffling(options)
    shuffling_run.run(cells(options.sections, shuffling_run.data))
    if not options.dry_run:
        print(tables(shuffling_run.results))
    sys.exit(1 if shuffling_run.failures else 0)


if __name__ == "__main__":
    main()
