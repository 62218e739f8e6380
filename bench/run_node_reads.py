#!/usr/bin/python3
"""Measures orders that are new in every epoch where the roots of a node read for its ranks, beside
one reader a rank, on the modelled parallel file system.

  bench/run_node_reads.py --build build/release
  bench/run_node_reads.py --regime streams-4 --only "grouped by 160"    servers of few streams

8 nodes of 4 ranks; regimes are those of run_turns.py. Runs of one cell are interleaved; each is one
epoch, cold, of 100,000 records of 3 KB. Counted are what the loader has asked for, and what the
servers did for the whole command, opening (twice) included. Needs root. A cell that fails is
listed, the others go on, and the exit status is 1.
"""

import json
import os
import statistics
import sys
import time

import measuring
import nodes

DATA, COUNT, BATCH = "cifar-100k", 100_000, 640
NODES, RANKS = 8, 4
CELLS = {  # name: options of the order
    "shuffled, windows of 8 iterations": ("--order", "shuffled", "--window", "8"),
    "shuffled, windows of 64 iterations": ("--order", "shuffled", "--window", "64"),
    "shuffled, 16 neighbours kept": ("--order", "shuffled", "--keep", "16"),
    "grouped by 160": ("--order", "grouped", "--group", "160"),
    "grouped by 500": ("--order", "grouped", "--group", "500"),
}
WAYS = {"one reader a rank": ("--roots", "each"), "roots": ("--roots", "1"),
        "roots, 2 at once": ("--roots", "1", "--stagger", "2"),
        "roots, 1 at once": ("--roots", "1", "--stagger", "1"),
        "roots, no turns": ("--roots", "1", "--stagger", "off")}


class NodeReads(measuring.Measuring):

    bench = "orders read by the roots of a node"

    def identity(self, cell):
        return f"{self.options.regime}: {cell}"

    def pack(self):
        path = os.path.join(self.data, DATA)
        if not os.path.exists(os.path.join(path, "data.mdb")):
            os.makedirs(self.data, exist_ok=True)
            self.launch(1, [self.command, "pack", "-", path, "--from", "synthetic", "--preset",
                            "cifar10-large", "--count", COUNT])

    def measure(self, cell):
        ways = self.options.ways
        runs = {way: [] for way in ways}
        servers = (*measuring.PFS_OPTIONS, *measuring.PFS_REGIMES[self.options.regime])
        with nodes.Nodes(self.data, NODES, mpi=self.options.mpi, pfs_options=servers,
                         pfs=self.pfs) as cluster:
            for _ in range(self.options.repetitions):
                for way in ways:
                    runs[way].append(self.one_run(cluster, [*CELLS[cell], *WAYS[way]]))
        seconds = {way: statistics.median(run["seconds"] for run in runs[way]) for way in ways}
        return {"options": " ".join(CELLS[cell]), "nodes": NODES, "ranks_per_node": RANKS,
                "batch": BATCH, "records": COUNT, "servers": " ".join(servers),
                "times_faster": {way: seconds[ways[0]] / seconds[way] for way in ways[1:]},
                "runs": runs}

    def one_run(self, cluster, words):
        output = os.path.join(self.data, "node_reads.json")
        cluster.drop_caches()
        cluster.reset()
        begun = time.monotonic()
        done = cluster.run(
            [self.command, "bench", "load", f"{{mount}}/{DATA}", "--batch", BATCH, "--epochs", "1",
             "--repetitions", "1", "--cold", *words, "--json", output],
            ranks_per_node=RANKS, timeout=self.options.timeout)
        measuring.check(done)
        wall = time.monotonic() - begun
        with open(output, encoding="utf-8") as file:
            figures = json.load(file)
        os.remove(output)
        return {"wall_seconds": wall, **self.of_load(figures), **self.of_servers(cluster.stats())}

    def of_load(self, figures):
        (cell,) = figures["summary"]
        one = {name: cell[name]["median"] for name in
               ("seconds", "first_seconds", "requests", "read_amplification", "mb_per_second")}
        one["asked_bytes"] = (one["read_amplification"] * one.pop("mb_per_second") * 1e6 *
                              one["seconds"])
        return {**one, "explain": cell["explain"]}

    def of_servers(self, counted):
        clients = counted["clients"]
        return {"server_bytes": sum(client["bytes"] for client in clients),
                "server_requests": sum(client["requests"] for client in clients),
                "server_seeks": sum(client["seeks"] for client in clients)}

    def table(self):
        rows = []
        for cell in self.results:
            for way, runs in cell["runs"].items():
                spread = {name: measuring.spread_of([run[name] for run in runs]) for name in
                          ("seconds", "asked_bytes", "server_bytes", "server_seeks")}
                rows.append((cell["cell"], way, measuring.spread_text(spread["seconds"], 1, " s"),
                             f"{spread['asked_bytes']['median'] / 1e6:,.0f} MB",
                             f"{spread['server_bytes']['median'] / 1e6:,.0f} MB",
                             f"{spread['server_seeks']['median']:,.0f}",
                             f"{cell['times_faster'].get(way, 1):.2f}"))
        head = ("order", "who reads", "an epoch", "asked for", "from the servers", "seeks",
                "times faster")
        return measuring.markdown(head, rows)


def main():
    nodes.end_by_exception()
    parser = measuring.parser(__doc__, "node-reads", timeout=600)
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--ways", nargs="+", default=list(WAYS)[:2], choices=list(WAYS),
                        help="which are compared with the first of them (default: the first two)")
    parser.add_argument("--regime", choices=measuring.PFS_REGIMES, default="plain")
    parser.add_argument("--only", nargs="+", default=list(CELLS), choices=list(CELLS))
    bench = NodeReads(parser.parse_args())
    bench.pack()
    bench.run(bench.options.only)
    print(bench.table())
    return 1 if bench.failures else 0


if __name__ == "__main__":
    sys.exit(main())
