"""The results that a report is made of, whichever program wrote them.

A cell is one configuration: one file of `forebay bench read` or `forebay bench train`, with where it
was measured. bench/run_matrix.py writes many cells into one file; a file of the command itself is
taken as a single cell.
"""

import json
import os
import statistics
from dataclasses import dataclass, field

BASELINE = "lmdb"
LADDER = ("lmdb", "lmm", "lmm-dm", "lmm-dio", "lmm-dio-prov", "lmm-dio-prov-coal",
          "lmm-dio-prov-coal-stag", "auto")


class ReportError(Exception):
    """What happened and what to do, in one line."""


@dataclass
class Cell:
    kind: str                # read or train
    data: str                # name of the data set
    storage: str             # where it lies
    scaling: str             # strong, weak, seek, blocks, single
    result: dict
    load: float = None       # of the machine, before the run
    file_system: dict = field(default_factory=dict)  # what bench/pfs counted

    @property
    def ranks(self):
        return self.result["ranks"]

    @property
    def nodes(self):
        return self.result.get("nodes", 1)

    @property
    def place(self):
        return f"{self.data}, {self.storage}"

    @property
    def size(self):
        return f"{_count(self.nodes, 'node')}, {_count(self.ranks, 'rank')}"

    def row(self, strategy):
        """The summary of one strategy, or None."""
        return next((row for row in self.result["summary"] if row["strategy"] == strategy), None)

    def strategies(self):
        return [row["strategy"] for row in self.result["summary"]]

    def figure(self, strategy, name):
        """The median of a figure, or None where it was not measured."""
        value = (self.row(strategy) or {}).get(name)
        return value["median"] if isinstance(value, dict) else value

    def by_rank(self, strategy, name):
        """{rank: median over the runs} for the ranks that read."""
        values = {}
        for run in self.result.get("runs", []):
            if run.get("strategy") != strategy:
                continue
            for rank in run["ranks"]:
                if rank.get("reads") and name in rank:
                    values.setdefault(rank["rank"], []).append(rank[name])
        return {rank: statistics.median(found) for rank, found in sorted(values.items())}


@dataclass
class Results:
    title: str
    facts: list      # lines about the machine
    cells: list

    def read(self, *scalings):
        return [cell for cell in self.cells
                if cell.kind == "read" and (not scalings or cell.scaling in scalings)]

    def train(self):
        return [cell for cell in self.cells if cell.kind == "train"]


def _count(number, word):
    return f"{number} {word}{'' if number == 1 else 's'}"


def in_order(strategies):
    """Rungs of the ladder first, as the papers climb it; then what was named besides."""
    known = [name for name in LADDER if name in strategies]
    return known + sorted(set(strategies) - set(known))


def by_place(cells):
    """{place: cells with growing numbers of ranks}."""
    places = {}
    for cell in sorted(cells, key=lambda cell: (cell.ranks, cell.nodes)):
        places.setdefault(cell.place, []).append(cell)
    return places


def largest(cells):
    """{place: the cell with the most ranks and at least two strategies, if there is one}."""
    return {place: max(found, key=lambda cell: (len(cell.strategies()) > 1, cell.ranks))
            for place, found in by_place(cells).items()}


def load(path):
    """Reads results; raises ReportError for what is none."""
    try:
        with open(path, encoding="utf-8") as file:
            data = json.load(file)
    except OSError as error:
        raise ReportError(f"{path}: {error.strerror}; name a file of results") from error
    except ValueError as error:
        raise ReportError(f"{path}: {error}; it is no JSON, make the results anew") from error
    try:
        return _results(data, path)
    except (KeyError, TypeError, AttributeError) as error:
        raise ReportError(f"{path}: no results of forebay bench or bench/run_matrix.py (missing: "
                          f"{error}); make the results anew") from error


def _results(data, path):
    if data["bench"] != "matrix":
        cells = [_single(data, path)]
        return Results(os.path.basename(path), [f"Measured {data.get('date', 'some day')}."], cells)
    cells = [_cell(entry) for entry in data["cells"]]
    return Results(data["name"], list(_facts(data)), cells)


def _single(data, path):
    if data["bench"] not in ("read", "train"):
        raise ReportError(f"{path}: results of an unknown benchmark '{data['bench']}'; "
                          "this version draws read, train and matrix")
    name = os.path.basename(data["data_set"]["path"].rstrip("/"))
    return _checked(Cell(data["bench"], name, "as found", "single", data))


def _cell(entry):
    return _checked(Cell(entry["kind"], entry["data"], entry["storage"], entry["scaling"],
                         entry["result"], entry.get("load"), entry.get("file_system") or {}))


def _checked(cell):
    """What every figure relies on is there."""
    int(cell.result["ranks"])
    for row in cell.result["summary"]:
        str(row["strategy"])
    return cell


def _facts(data):
    machine = data["machine"]
    yield (f"Measured {data['date']} on {machine['cpu']}, {machine['cores']} cores, "
           f"{machine['memory_gib']} GiB, Linux {machine['kernel']}; {machine['mpi']}.")
    loads = [cell["load"] for cell in data["cells"] if cell.get("load") is not None]
    if loads:
        yield (f"Load average before the runs: {min(loads):.1f} to {max(loads):.1f} on "
               f"{machine['cores']} cores. Numbers are medians over the repetitions.")
    void = [cell for cell in data["cells"] if (cell.get("file_system") or {}).get("void")]
    if void:
        yield (f"{len(void)} configurations are void: the modelled file system itself used more "
               "of the processors than its model allows.")
    for text in data.get("left_out", []):
        yield f"Left out: {text}."
    for text in data.get("failures", []):
        yield f"Failed: {text}"
