#!/usr/bin/python3
"""Measures whether it pays that only some roots read at once (staggering), and when.

  bench/run_turns.py --build build/release                 all cells of two regimes
  bench/run_turns.py --regime streams-4 --baselines-once   one, and what takes no turns only once
  bench/run_turns.py --quick                               a few cells, two minutes

16 nodes with one root each on the modelled parallel file system (docs/pfs.md): 4 servers of
40 MB/s, 100,000 records of 3 KB, batches of 640, C = 8, 20 windows a run. With --large they are
400,000 records, and C is the automatic one, 26: 24 windows of 4 MiB a root, for those strategies
that have a C. With --weak they are two samples a root and iteration, for all strategies. `auto` and
`lmm-dio-prov-coal-stag` measure how many roots read at once. Regimes are servers:

  plain       they seek, and read nothing ahead
  streams-16  they read 1 MiB ahead, and keep it for 16 streams, which is as many as there are roots
  streams-4   they keep it for 4; in streams-2, for 2

Each cell is one start of `forebay bench read`, cold, with counts of the servers of its own; the
cells of a repetition come in an order drawn from its number. Plain readers of 8 MiB read the first
quarter of what the others read. Results go into one JSON file, which is whole after each cell; a
cell that is already in it is not measured again. Needs root and forebay-pfs. One that fails is
listed, the others go on, and the exit status is 1.
"""

import os
import random
import statistics
import subprocess
import sys
from dataclasses import dataclass

import machine
import measuring
from measuring import PFS
from measuring import PFS_REGIMES as REGIMES
from nodes import end_by_exception

NODES = 16


@dataclass(frozen=True)
class Size:
    """What is read. `coalesce` is a word of the command line."""

    name: str
    records: int
    coalesce: str
    batch: int
    iterations: int


SMALL = Size("cifar-100k", 100_000, "8", 640, 160)
LARGE = Size("cifar-400k", 400_000, "auto", 640, 624)
WEAK = Size("cifar-400k", 400_000, "auto", 32, 400)
BLOCK = 1 << 20  # of which the servers' limit is told: a seek for each
ROOTS_AT_ONCE = (1, 2, 4, 8, 16)

CLIENT_READ_AHEAD_KB = (128, 1024)

BASELINES = ("lmdb", "lmm", "lmm-dm", "lmm-dio", "lmm-dio-prov")
PLAIN = "plain readers"

# What the table calls it: the strategy with its knobs.
VARIANTS = {
    **{name: name for name in (*BASELINES, "lmm-dio-prov-coal", "lmm-dio-prov-coal-stag", "auto")},
    **{f"auto, {n} at once": f"auto+stagger={n}" for n in ROOTS_AT_ONCE},
    PLAIN: "auto",
}
QUICK = ("auto, 2 at once", "auto, 16 at once", "auto", PLAIN)

LEFT_OUT = (
    "computing and training: ranks only wait for samples",
    "more than one rank a node, other numbers of nodes, large records, warm caches",
    "other C: without --large and --weak all strategies have the same order, also those below "
    "lmm-dio-prov-coal, whose C is 1 otherwise",
    "--stagger-by: turns are taken as the strategy takes them",
    "comparing the data with liblmdb (the tests do)",
    "MPICH: Open MPI starts all cells unless --mpi says otherwise",
    "plain readers beyond the first quarter of the data",
    "counts of the servers without opening: they are of the whole command",
)

SERVER_FIGURES = ("requests", "bytes", "seeks", "ahead_bytes", "memory_bytes", "busy_seconds",
                  "queued_seconds")
RUN_FIGURES = ("roots_at_once", "redundant_pages", "missed_pages")


@dataclass(frozen=True)
class Cell:
    regime: str
    read_ahead_kb: int
    variant: str
    repetition: int
    storage: str = PFS
    nodes: int = NODES
    ranks_per_node: int = 1

    @property
    def pfs_options(self):
        return (*REGIMES[self.regime], "--read-ahead-kb", str(self.read_ahead_kb))

    def text(self):
        return (f"{self.regime:10} read-ahead {self.read_ahead_kb:4} KiB, "
                f"repetition {self.repetition}, {self.variant}")


def wanted(options, variant, repetition):
    if variant not in BASELINES:
        return True
    return not options.large and (repetition == 0 or not options.baselines_once)


def cells(options):
    found = []
    for regime in options.regime:
        for repetition in range(options.repetitions):
            of_repetition = [
                Cell(regime, kilobytes, variant, repetition)
                for kilobytes in options.read_ahead_kb for variant in options.only
                if wanted(options, variant, repetition)]
            random.Random(repetition).shuffle(of_repetition)
            found += of_repetition
    return found


def parse_arguments():
    parser = measuring.parser(__doc__, "turns", timeout=600)
    parser.add_argument("--regime", nargs="+", choices=REGIMES, default=["plain", "streams-4"])
    parser.add_argument("--read-ahead-kb", nargs="+", type=int, default=CLIENT_READ_AHEAD_KB,
                        help="of a client (default: 128 1024)")
    parser.add_argument("--only", nargs="+", choices=VARIANTS, default=list(VARIANTS),
                        metavar="VARIANT", help=f"of {'; '.join(VARIANTS)}")
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--baselines-once", action="store_true",
                        help=f"only one repetition of {', '.join(BASELINES)}")
    parser.add_argument("--large", action="store_true",
                        help=f"{LARGE.records:,} records, automatic C, none of the former")
    parser.add_argument("--weak", action="store_true",
                        help="two samples a root and iteration, each strategy with its own C")
    parser.add_argument("--quick", action="store_true",
                        help="a few cells, once, at a client read-ahead of 128 KiB")
    parser.add_argument("--dry-run", action="store_true", help="print what would be measured")
    options = parser.parse_args()
    if options.quick:
        options.only, options.repetitions, options.read_ahead_kb = QUICK, 1, (128,)
    return options


class Turns(measuring.Measuring):

    bench = "turns"

    def __init__(self, options):
        super().__init__(options)
        self.size = WEAK if options.weak else LARGE if options.large else SMALL

    def make_data(self):
        path = os.path.join(self.data, self.size.name)
        if os.path.exists(os.path.join(path, "data.mdb")):
            return
        os.makedirs(self.data, exist_ok=True)
        subprocess.run([self.command, "pack", "-", path, "--from", "synthetic", "--preset",
                        "cifar10-large", "--count", str(self.size.records)], check=True,
                       stdout=sys.stderr)

    def words(self, cell, dataset, output):
        plain = cell.variant == PLAIN
        iterations = self.size.iterations // (4 if plain else 1)
        return [self.command, "bench", "read", dataset, "--strategies", VARIANTS[cell.variant],
                "--batch", str(self.size.batch), "--coalesce", self.size.coalesce, "--iterations",
                str(iterations), "--cold", "--no-verify", "--plain" if plain else "--no-plain",
                "--repetitions", "1", "--json", output]

    def measure(self, cell):
        load = machine.load_average()
        result, counted = self.json_of(cell, self.size.name,
                                       lambda *places: self.words(cell, *places))
        figures = (plain_figures(result) if cell.variant == PLAIN
                   else run_figures(result, counted, self.size))
        return {"regime": cell.regime, "client_read_ahead_kb": cell.read_ahead_kb,
                "variant": cell.variant, "repetition": cell.repetition, "load": load,
                "void": counted["void"], "late_ms": counted["late_seconds"]["mean"] * 1e3,
                "servers_limit_mb_per_second": servers_limit(counted["model"]), **figures}

    def facts(self):
        regimes = {name: " ".join((*measuring.PFS_OPTIONS, *REGIMES[name]))
                   for name in {one["regime"] for one in self.results}}
        return {"nodes": NODES, "records": self.size.records, "batch": self.size.batch,
                "coalesce": self.size.coalesce, "iterations": self.size.iterations,
                "regimes": regimes,
                "left_out": [*LEFT_OUT, *self.not_measured()], "summary": summary(self.results)}

    def not_measured(self):
        """Cells of the regimes here that the command line has left out."""
        known = {(one["regime"], one["client_read_ahead_kb"], one["variant"])
                 for one in self.results}
        regimes = {regime for regime, _, _ in known}
        return [f"{regime}, client read-ahead {kilobytes} KiB: {variant}"
                for regime in REGIMES if regime in regimes
                for kilobytes in CLIENT_READ_AHEAD_KB for variant in VARIANTS
                if (regime, kilobytes, variant) not in known]


def servers_limit(model):
    """MB/s of servers that seek before each MiB."""
    seconds = BLOCK / model["bandwidth"] + model["seek_penalty_seconds"]
    return model["servers"] * BLOCK / seconds / 1e6


def plain_figures(result):
    return {"file_mb_per_second": result["plain_mb_per_second"]["median"]}


def run_figures(result, counted, size):
    run = next(run for run in result["runs"] if run["kind"] == "strategy")
    file_bytes = size.iterations * size.batch * result["data_set"]["stored_bytes_per_sample"]
    return {"seconds": run["seconds"], "file_mb_per_second": file_bytes / run["seconds"] / 1e6,
            **{name: run["all"][name] for name in RUN_FIGURES},
            "turn_seconds": result["summary"][0]["turn_seconds"]["median"],
            "servers": {name: sum(server[name] for server in counted["servers"])
                        for name in SERVER_FIGURES},
            "explain": run["explain"]}


def summary(results):
    """Of each cell the spread over its repetitions; ratios are of a repetition."""
    plain = {place_of(one): one["file_mb_per_second"] for one in results if one["variant"] == PLAIN}
    groups = {}
    for one in results:
        groups.setdefault((one["regime"], one["client_read_ahead_kb"], one["variant"]),
                          []).append(one)
    order = [(regime, kilobytes, variant) for regime in REGIMES
             for kilobytes in sorted({kilobytes for _, kilobytes, _ in groups})
             for variant in VARIANTS]
    return [row_of(key, groups[key], plain) for key in order if key in groups]


def place_of(one):
    """Where cells are comparable."""
    return one["regime"], one["client_read_ahead_kb"], one["repetition"]


def row_of(key, runs, plain):
    regime, kilobytes, variant = key
    spread = {"file_mb_per_second": [run["file_mb_per_second"] for run in runs],
              "over_limit": [run["file_mb_per_second"] / run["servers_limit_mb_per_second"]
                             for run in runs]}
    row = {"regime": regime, "client_read_ahead_kb": kilobytes, "variant": variant,
           "repetitions": len(runs), "void": sum(run["void"] for run in runs)}
    if variant != PLAIN:
        spread["seconds"] = [run["seconds"] for run in runs]
        spread["turn_seconds"] = [run["turn_seconds"] for run in runs]
        spread["over_plain"] = [run["file_mb_per_second"] / plain[place_of(run)]
                                for run in runs if place_of(run) in plain]
        row["roots_at_once"] = sorted(run["roots_at_once"] for run in runs)
        row.update({name: statistics.median(run[name] for run in runs)
                    for name in RUN_FIGURES if name != "roots_at_once"})
        row["servers"] = {name: statistics.median(run["servers"][name] for run in runs)
                          for name in SERVER_FIGURES}
    row.update({name: measuring.spread_of(values) for name, values in spread.items() if values})
    return row


def table_row(row):
    told = [row["variant"], measuring.spread_text(row["seconds"]) if "seconds" in row else "",
            measuring.spread_text(row["file_mb_per_second"], 0),
            measuring.spread_text(row["over_plain"], 2) if "over_plain" in row else "",
            f"{row['over_limit']['median']:.2f}"]
    if "servers" not in row:
        return [*told, *[""] * 6]
    servers = row["servers"]
    asked = servers["bytes"] - servers["memory_bytes"]
    return [*told, ", ".join(map(str, row["roots_at_once"])),
            f"{row['turn_seconds']['median']:.1f}", f"{servers['seeks']:.0f}",
            f"{servers['busy_seconds']:.0f}", f"{servers['queued_seconds']:.0f}",
            f"{(asked + servers['ahead_bytes']) / servers['bytes']:.2f}"]


def tables(rows):
    """Markdown, for each regime and client read-ahead. `disk`: bytes off the servers' disks over
    bytes asked for."""
    head = ["", "s", "file MB/s", "over plain", "over limit", "roots at once",
            "waiting for turns, s", "seeks", "busy, s", "queued, s", "disk"]
    text = ""
    for regime, kilobytes in dict.fromkeys(
            (row["regime"], row["client_read_ahead_kb"]) for row in rows):
        body = [table_row(row) for row in rows
                if (row["regime"], row["client_read_ahead_kb"]) == (regime, kilobytes)]
        text += (f"### {regime}, client read-ahead {kilobytes} KiB\n\n"
                 f"{measuring.markdown(head, body)}\n")
    return text


def main():
    end_by_exception()
    options = parse_arguments()
    turns = Turns(options)
    if not options.dry_run:
        turns.make_data()
    turns.run(cells(options))
    if not options.dry_run:
        facts = turns.write()
        print(tables(facts["summary"]))
        print("Left out:\n" + "\n".join(f"- {text}" for text in facts["left_out"]))
        print(turns.output)
    sys.exit(1 if turns.failures else 0)


if __name__ == "__main__":
    main()
