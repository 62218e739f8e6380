#!/usr/bin/python3
"""Measures how fast strategies deliver a data set, beside plain preads of the same file.

  bench/run_read_bench.py DATASET --build build/release --name read-one-node

Variants are interleaved: each repetition runs all of them once, in an order of its own, so that a
drift of the machine meets all alike, and every ratio compares runs of one repetition. Writes NAME.json (every run),
NAME.md (tables; text outside of the marks stays) and NAME.svg into --output.
"""

import argparse
import itertools
import json
import os
import random
import subprocess
import sys
import time

import machine
import report

READERS = (1, 2, 4, 8, 16)


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dataset", help="an LMDB directory")
    parser.add_argument("--build", default="build/release", help="build tree with the programs")
    parser.add_argument("--mpi", default="openmpi", choices=("openmpi", "mpich"))
    parser.add_argument("--name", default="read-one-node", help="base name of the results")
    parser.add_argument("--output", default="docs/results")
    parser.add_argument("--ranks", type=int, nargs="+", default=[1, 2, 4, 8, 16])
    parser.add_argument("--strategies", nargs="+", default=["lmdb", "lmm"],
                        help="strategy, or strategy:option=value,... as read_bench takes it")
    parser.add_argument("--batch", type=int, default=640)
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--read-ahead", type=int, nargs="*", default=None,
                        help="KiB; default: 128 (Linux's own default) and the machine's value")
    return parser.parse_args()


class Bench:

    def __init__(self, options):
        self.options = options
        self.root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
        self.data = os.path.join(options.dataset, "data.mdb")
        self.sums = set()
        self.runs = []

    def program(self, name):
        return os.path.join(self.options.build, "bench", name)

    def read_ahead_values(self):
        if self.options.read_ahead is not None:
            return self.options.read_ahead
        current = machine.read_ahead_kb(self.data)
        return sorted({128, current}) if current else []

    def measure(self, command, cold):
        """One JSON line of `command`, after the cache was brought into the wanted state."""
        if cold:
            machine.drop_caches()
        load = machine.load_average()
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
        if done.returncode != 0:
            sys.exit(f"{' '.join(command)}\nended with {done.returncode}: {done.stderr.strip()}")
        return {**json.loads(done.stdout.strip().splitlines()[-1]), "load": load}

    def measure_plain(self, readers, cold):
        return self.measure([self.program("plain_read"), self.data, str(readers)], cold)

    def measure_strategy(self, strategy, ranks, iterations, cold):
        name, _, more = strategy.partition(":")
        text = f"strategy={name},batch={self.options.batch},iterations={iterations}"
        text += f",{more}" if more else ""
        result = self.measure([os.path.join(self.root, "scripts/mpirun.sh"), self.options.mpi,
                               str(ranks), self.program("read_bench"), self.options.dataset, text],
                              cold)
        self.sums.add(result["sum"])
        if len(self.sums) > 1:
            sys.exit(f"{strategy} on {ranks} ranks delivered other bytes than the runs before")
        return result

    def variants(self, number):
        """(kind, readers or ranks) of everything to measure, shuffled anew for each repetition."""
        plain = [("plain", readers) for readers in READERS]
        strategies = itertools.product(self.options.strategies, self.options.ranks)
        shuffled = [*plain, *strategies]
        random.Random(number).shuffle(shuffled)
        return shuffled

    def repetition(self, number, iterations, state):
        """All variants once in one state: {"cold": bool, "read_ahead_kb": int}."""
        if not state["cold"]:
            self.measure_plain(2, cold=False)  # fills the cache
        for kind, count in self.variants(number):
            result = (self.measure_plain(count, state["cold"]) if kind == "plain" else
                      self.measure_strategy(kind, count, iterations, state["cold"]))
            self.runs.append({"kind": kind, "count": count, "repetition": number, **state,
                              **result})
            print(f"  {kind:12} x{count:<3} {result['seconds']:8.3f} s", file=sys.stderr)

    def states(self):
        """Warm once with the machine's own read-ahead, cold with each read-ahead."""
        current = machine.read_ahead_kb(self.data)
        yield {"cold": False, "read_ahead_kb": current}
        if not machine.can_drop_caches():
            print("not root: the cold cases are left out", file=sys.stderr)
            return
        for kilobytes in self.read_ahead_values() or [current]:
            yield {"cold": True, "read_ahead_kb": kilobytes}

    def run(self):
        facts = json.loads(subprocess.run(
            [os.path.join(self.options.build, "src/forebay"), "inspect", self.options.dataset,
             "--json"], capture_output=True, text=True, check=True).stdout)
        iterations = facts["entries"] // self.options.batch
        if iterations * self.options.batch != facts["entries"]:
            sys.exit(f"--batch {self.options.batch} does not divide {facts['entries']} samples: "
                     "an exact epoch makes the byte sums comparable")
        for number in range(self.options.repetitions):
            for state in self.states():
                print(f"repetition {number + 1}: {state}", file=sys.stderr)
                if state["cold"] and state["read_ahead_kb"]:
                    with machine.read_ahead_set_to(self.data, state["read_ahead_kb"]):
                        self.repetition(number, iterations, state)
                else:
                    self.repetition(number, iterations, state)
        return {
            "date": time.strftime("%Y-%m-%d"),
            "machine": {**machine.describe(self.options.dataset, f"mpiexec.{self.options.mpi}"),
                        "read_ahead_kb": machine.read_ahead_kb(self.data)},
            "data_set": {"entries": facts["entries"], "file_bytes": os.stat(self.data).st_size},
            "batch": self.options.batch,
            "repetitions": self.options.repetitions,
            "runs": self.runs,
        }


def main():
    options = parse_arguments()
    results = Bench(options).run()
    report.write(results, options.output, options.name)


if __name__ == "__main__":
    main()
