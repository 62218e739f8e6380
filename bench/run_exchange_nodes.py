#!/usr/bin/python3
"""Measures the exchange between two nodes with a network between them: exchange_bench over TCP.

  bench/run_exchange_nodes.py --mpi openmpi --build build/release
  bench/run_exchange_nodes.py --mpi mpich --build build/release-mpich --rates 10gbit -- --parts latency
  bench/run_exchange_nodes.py --mpi openmpi --windows no       Open MPI as it comes: messages alone

Nodes are name spaces of this machine, connected by links as fast as it goes (none) or as slow as
--rates says; bench/network_nodes.py has the details. Needs root. Gives one JSON object with a cell
for each rate: what exchange_bench printed, and the load of the machine before and after. Words after
-- go to exchange_bench, whose head explains the figures. Leaves nothing behind, also on Ctrl-C.

A run that has printed its figures and then does not end is killed after a while; its cell says so.
The exit status is 1 when a run fails.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import threading
import time

import machine
import measuring
import network_nodes
import nodes

_LAST_WORDS = 3  # seconds to end after the figures are out


class Failed(Exception):
    pass


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mpi", default="openmpi", choices=("openmpi", "mpich"))
    parser.add_argument("--build", default="build/release", help="build tree of that MPI")
    parser.add_argument("--rates", nargs="+", default=["none", "10gbit", "1gbit"],
                        help=f"of a node's link: {network_nodes.RATES}")
    parser.add_argument("--windows", default="yes", choices=("yes", "no"), help="of Open MPI")
    parser.add_argument("--output", help="file for the JSON (default: standard output)")
    parser.add_argument("--timeout", type=float, default=600, help="seconds a rate")
    parser.add_argument("bench", nargs="*", help="after --: options of exchange_bench")
    return parser.parse_args()


class Figures(threading.Thread):
    """Reads the one JSON object that a job prints, at whatever moment it is whole."""

    def __init__(self, stream):
        super().__init__(daemon=True)
        self._stream, self.text = stream, ""
        self.whole, self.result = threading.Event(), None

    def run(self):
        for line in self._stream:
            self.text += line
            if line.rstrip() == "}":  # of the outermost: all others are indented
                self.result = json.loads(self.text)
                self.whole.set()
        self.whole.set()


def measure(options, rate):
    """The cell of one rate."""
    program = os.path.join(os.path.abspath(options.build), "bench", "exchange_bench")
    before = machine.load_average()
    job = network_nodes.start([program, *options.bench], capture=True, mpi=options.mpi, rate=rate,
                              windows=options.windows == "yes")
    try:
        errors = Collected(job.stderr)
        figures = Figures(job.stdout)
        for reader in (errors, figures):
            reader.start()
        figures.whole.wait(options.timeout)
        try:
            status = job.wait(_LAST_WORDS)
        except subprocess.TimeoutExpired:
            status = None
    finally:
        job.kill()
        job.wait()
    if figures.result is None:
        raise Failed(errors.last_line() if status is not None else "no figures in time")
    return {"rate": rate, "load": [before, machine.load_average()],
            "ended": status == 0, "result": figures.result}


class Collected(threading.Thread):
    """Reads a stream to its end."""

    def __init__(self, stream):
        super().__init__(daemon=True)
        self._stream, self._lines = stream, []

    def run(self):
        self._lines.extend(self._stream)

    def last_line(self):
        self.join(1)
        return ([line.strip() for line in self._lines if line.strip()] or ["no message"])[-1]


def main():
    options = parse_arguments()
    for number in (signal.SIGTERM, signal.SIGHUP):
        nodes.end_by_exception(number)
    cells, failures = [], []
    try:
        for rate in options.rates:
            print(f"{options.mpi}, {rate}", file=sys.stderr)
            try:
                cells.append(measure(options, rate))
            except Failed as error:
                failures.append(f"{rate}: {error}")
                print(f"  failed: {error}", file=sys.stderr)
    except nodes.NodesError as error:
        sys.exit(f"run_exchange_nodes.py: {error}")
    except KeyboardInterrupt:
        sys.exit(130)
    results = {
        "bench": "exchange between nodes with a network", "date": time.strftime("%Y-%m-%d"),
        "machine": machine.describe(options.build, f"mpiexec.{options.mpi}"),
        "mpi": options.mpi, "windows": options.windows == "yes", "options": options.bench,
        "failures": failures, "cells": cells}
    if options.output:
        measuring.write_json(options.output, results)
    else:
        print(json.dumps(results, indent=1))
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
