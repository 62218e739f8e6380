#!/usr/bin/python3
"""Measures the exchange between two nodes with a network between them: exchange_bench over TCP.

  bench/run_exchange_nodes.py --mpi openmpi --build build/release
  bench/run_exchange_nodes.py --mpi mpich --build build/release --rates 10gbit -- --parts latency
  bench/run_exchange_nodes.py --mpi openmpi --windows no       Open MPI as it comes: messages alone

Nodes are name spaces of this machine, connected by links as fast as it goes (none) or as slow as
--rates says; bench/network_nodes.py has the details. Needs root. The results have a cell for each
rate: what exchange_bench printed, and the load of the machine before and after. Words after -- go to
exchange_bench, whose head explains the figures. Leaves nothing behind, also on Ctrl-C.

A run that has printed its figures and then does not end is killed after a while; its cell says so.
The exit status is 1 when a run fails.
"""

import json
import os
import signal
import subprocess
import sys
import threading

import machine
import measuring
import network_nodes
import nodes

_LAST_WORDS = 3  # seconds to end after the figures are out


def parse_arguments():
    parser = measuring.parser(__doc__, "exchange-nodes", timeout=600)
    parser.add_argument("--rates", nargs="+", default=["none", "10gbit", "1gbit"],
                        help=f"of a node's link: {network_nodes.RATES}")
    parser.add_argument("--windows", default="yes", choices=("yes", "no"), help="of Open MPI")
    parser.add_argument("bench", nargs="*", help="after --: options of exchange_bench")
    return parser.parse_args()


class Reader(threading.Thread):
    """Reads a stream to its end; `whole` is set as soon as the one JSON object in it is."""

    def __init__(self, stream):
        super().__init__(daemon=True)
        self._stream, self.lines = stream, []
        self.whole = threading.Event()
        self.start()

    def run(self):
        for line in self._stream:
            self.lines.append(line)
            if line.rstrip() == "}":  # of the outermost: all others are indented
                self.whole.set()
        self.whole.set()


class Exchange(measuring.Measuring):

    bench, key = "exchange between nodes with a network", "rate"

    def measure(self, rate):
        before = machine.load_average()
        job = network_nodes.start(
            [os.path.join(self.build, "bench", f"exchange_bench-{self.options.mpi}"), *self.options.bench],
            capture=True, mpi=self.options.mpi, rate=rate, windows=self.options.windows == "yes")
        status = None
        try:
            errors, figures = Reader(job.stderr), Reader(job.stdout)
            figures.whole.wait(self.options.timeout)
            status = job.wait(_LAST_WORDS)
        except subprocess.TimeoutExpired:
            pass
        finally:
            job.kill()
            job.wait()
        if not figures.lines or figures.lines[-1].rstrip() != "}":
            errors.join(1)
            told = [line.strip() for line in errors.lines if line.strip()] or ["no message"]
            raise measuring.Failed(told[-1] if status is not None else "no figures in time")
        return {"load": [before, machine.load_average()], "ended": status == 0,
                "result": json.loads("".join(figures.lines))}

    def facts(self):
        return {"mpi": self.options.mpi, "windows": self.options.windows == "yes",
                "options": self.options.bench}


def main():
    for number in (signal.SIGTERM, signal.SIGHUP):
        nodes.end_by_exception(number)
    exchange = Exchange(parse_arguments(), go_on=False)
    exchange.run(exchange.options.rates)
    print(exchange.output)
    sys.exit(1 if exchange.failures else 0)


if __name__ == "__main__":
    main()
