"""What programs here share that measure cell after cell: options, ranks, results, and tables.

A cell is one run under the launcher. Results go into one JSON file, which is whole after each cell; a
cell that is already in it is not measured again. One that fails is listed, the others go on.
"""

import argparse
import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

import machine

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "bench", "pfs"))

import nodes  # noqa: E402

# 4 servers of 40 MB/s: what the model's daemon can honestly do on a small machine (docs/pfs.md).
PFS_OPTIONS = ("--servers", "4", "--stripe", "1MiB", "--bandwidth", "40MB/s", "--latency", "1ms",
               "--seek-penalty", "2ms")
# Servers that read 1 MiB ahead, and keep it for so many streams; plain ones read nothing ahead.
_READING_AHEAD = ("--server-read-ahead", "1MiB", "--server-streams")
PFS_REGIMES = {"plain": (), **{f"streams-{n}": (*_READING_AHEAD, str(n)) for n in (16, 4, 2)}}
PFS = "modelled pfs"  # the storage of a cell that runs there


class Failed(RuntimeError):
    """A run ended with an error."""


def plain_parser(doc, *places):
    """For `doc` as it is written; `places` are what must be given, in this order."""
    made = argparse.ArgumentParser(description=doc,
                                   formatter_class=argparse.RawDescriptionHelpFormatter)
    for place in places:
        made.add_argument(place)
    return made


def parser(doc, name, timeout):
    """With the options that all of them have; `name` is that of the results."""
    made = plain_parser(doc)
    made.add_argument("--build", default="build/release", help="build tree with the programs")
    made.add_argument("--mpi", default="openmpi", choices=("openmpi", "mpich"))
    made.add_argument("--data", help="folder of the data sets (default: BUILD/bench/data)")
    made.add_argument("--output", help=f"results (default: BUILD/bench/{name}.json)")
    made.add_argument("--timeout", type=float, default=timeout, help="seconds a run")
    made.set_defaults(results=name)
    return made


class Measuring:
    """For classes that say how a cell is measured: measure(cell) returns what the file then has of
    it. A cell is known by its text(), or is a text."""

    bench = ""  # what the file says of itself
    kept, key = "cells", "cell"  # where it has results, and where each says of what it is

    def __init__(self, options, go_on=True):
        self.options = options
        self.build = os.path.abspath(options.build)
        self.command = os.path.join(self.build, "src", "forebay")
        self.bench_command = os.path.join(self.build, "bench", "forebay-bench")
        self.pfs = os.path.join(self.build, "bench", "pfs", "forebay-pfs")
        self.data = os.path.abspath(options.data or os.path.join(self.build, "bench", "data"))
        self.output = options.output or os.path.join(self.build, "bench", f"{options.results}.json")
        self.results, self.failures = [], []
        if go_on and os.path.exists(self.output):
            with open(self.output, encoding="utf-8") as file:
                self.results = json.load(file)[self.kept]

    def identity(self, cell):
        return _text_of(cell)

    def run(self, cells):
        known = {result[self.key] for result in self.results}
        wanted = [cell for cell in cells if self.identity(cell) not in known]
        for number, cell in enumerate(wanted, 1):
            print(f"[{number}/{len(wanted)}] {_text_of(cell)}", file=sys.stderr, flush=True)
            if getattr(self.options, "dry_run", False):
                continue
            try:
                self.results.append({self.key: self.identity(cell), **self.measure(cell)})
            except (Failed, nodes.NodesError, subprocess.SubprocessError, OSError,
                    ValueError) as error:
                self.failures.append(f"{_text_of(cell)}: {error}")
                print(f"  failed: {error}", file=sys.stderr)
            self.write()

    def launch(self, ranks, words, environment=None):
        """What the program printed."""
        done = subprocess.run(
            [os.path.join(ROOT, "scripts", "mpirun.sh"), self.options.mpi, str(ranks),
             *map(str, words)], env={**os.environ, **(environment or {})}, capture_output=True,
            text=True, check=False, timeout=self.options.timeout)
        check(done)
        return done.stdout

    def json_of(self, cell, name, words, environment=None):
        """What the command `words(data set, output)` has written into its output, and what the
        modelled file system has counted, where the cell is of that storage; its `pfs_options`, where
        it has such, go beside those of all. The data set is `name` in the folder of data sets."""
        with tempfile.TemporaryDirectory(prefix="forebay-bench-") as folder:
            output = os.path.join(folder, "result.json")
            counted = {}
            if cell.storage == PFS:
                options = (*PFS_OPTIONS, *getattr(cell, "pfs_options", ()))
                with nodes.Nodes(self.data, cell.nodes, mpi=self.options.mpi,
                                 pfs_options=options, pfs=self.pfs) as cluster:
                    check(cluster.run(words(f"{{mount}}/{name}", output),
                                      ranks_per_node=cell.ranks_per_node,
                                      timeout=self.options.timeout))
                    counted = {"options": " ".join(options), **cluster.stats()}
            else:
                self.launch(cell.nodes * cell.ranks_per_node,
                            words(os.path.join(self.data, name), output), environment)
            with open(output, encoding="utf-8") as file:
                return json.load(file), counted

    def facts(self):
        """What the results say beside cells."""
        return {}

    def write(self):
        place = self.data if os.path.exists(self.data) else self.build
        results = {"bench": self.bench or self.options.results, "date": time.strftime("%Y-%m-%d"),
                   "machine": machine.describe(place, f"mpiexec.{self.options.mpi}"),
                   **self.facts(), "failures": self.failures, self.kept: self.results}
        write_json(self.output, results)
        return results


def _text_of(cell):
    return cell if isinstance(cell, str) else cell.text()


def check(done):
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines() or ["no message"]
        told = [line for line in lines if line.startswith("forebay: ")] or lines[-1:]
        raise Failed(f"exit status {done.returncode}: {told[0]}")


def write_json(path, results):
    """Whole or not at all."""
    os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
    with open(path + ".part", "w", encoding="utf-8") as file:
        json.dump(results, file, indent=1)
        file.write("\n")
    os.replace(path + ".part", path)


@contextlib.contextmanager
def described(path, place):
    """Gives an object to fill while measuring; with the machine, and its load before and after, it
    becomes the file. `place` is what was read."""
    results = {}
    before = machine.load_average()
    yield results
    about = machine.describe(place, "mpiexec.openmpi") | {
        "read_ahead_kb": machine.read_ahead_kb(place), "load_before": before,
        "load_after": machine.load_average()}
    write_json(path, {"machine": about, **results})
    print(json.dumps(about), file=sys.stderr)


def markdown(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join(lines + ["| " + " | ".join(map(str, row)) + " |" for row in rows]) + "\n"


def spread_of(values):
    return {"median": statistics.median(values), "least": min(values), "most": max(values)}


def spread_text(figure, decimals=1, unit=""):
    """Median, with least and most."""
    return "{2:,.{0}f}{1} ({3:,.{0}f}-{4:,.{0}f})".format(
        decimals, unit, *(figure[which] for which in ("median", "least", "most")))
