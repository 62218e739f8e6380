#!/usr/bin/python3
"""Measures orders that are new in every epoch: the tables of papers 003 and 004.

  bench/run_shuffling.py --build build/release                      all of it: an hour
  bench/run_shuffling.py --sections async --output results.json     003, tables II to V

Every cell (bench/shuffling.py) is one run of `forebay bench load` under the launcher, its variants
interleaved, caches dropped before each. Results go into one JSON file, which is whole after each
cell; tables (Markdown) go to standard output at the end, medians with least and most. A cell that is
already in the file is not measured again. A cell that fails is listed, the others go on, and the
exit status is 1. Needs root for cold caches and the modelled file system, and NumPy and h5py.
"""

import os
import sys

import machine
import measuring
import nodes
import shuffling


def parse_arguments():
    parser = measuring.parser(__doc__, "shuffling", timeout=1800)
    parser.add_argument("--sections", nargs="+", choices=shuffling.SECTIONS,
                        default=shuffling.SECTIONS)
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
    for section in shuffling.SECTIONS:
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
    nodes.end_by_exception()
    options = parse_arguments()
    shuffling_run = Shuffling(options)
    shuffling_run.run(shuffling.cells(options.sections, shuffling_run.data))
    if not options.dry_run:
        print(tables(shuffling_run.results))
    sys.exit(1 if shuffling_run.failures else 0)


if __name__ == "__main__":
    main()
