#!/usr/bin/python3
"""Measures what ranks gain from being connected, whoever has started them.

  bench/run_launchers.py --build build/release --python venv/bin/python
  bench/run_launchers.py --only "torchrun: strided" "sums of 4 MiB, 4 ranks"

  torchrun ...   two nodes of four processes each on the modelled parallel file system, cold, 3 KB
                 samples: each process for itself (ranks="env", what torchrun had before) against
                 connected ones. Counted are the processes that read, and what the servers
                 did, over what the nodes have to read.
  loads, sums    one node, warm: the same loaders, and the same sums, under torchrun over TCP and
                 under mpirun over MPI.

Both sides are interleaved. Needs torch in that Python, and root for the nodes. A cell that fails is
listed, the others go on, and the exit status is 1.
"""

import json
import os
import random
import socket
import statistics
import subprocess
import sys

import measuring
import nodes

DATA, COUNT, BATCH = "cifar-100k", 100_000, 640
NODES, RANKS = 2, 4
WORK = os.path.join(os.path.dirname(os.path.abspath(__file__)), "ranks_work.py")

ON_NODES = {  # name: words of ranks_work.py behind the data set
    "torchrun: strided": ("--order", "strided"),
    "torchrun: shuffled": ("--order", "shuffled", "--option", "window=64"),
}
EACH, CONNECTED = "each for itself", "connected"
SIDES = {EACH: ("--ranks", "env"), CONNECTED: ()}

ONE_NODE = {  # name: ranks, words of ranks_work.py
    **{f"loads {order}, {ranks} ranks":
       (ranks, ("read", "{data}", "--order", order, "--epochs", "3"))
       for order in ("strided", "shuffled", "in_memory") for ranks in (2, 4)},
    **{f"sums of {size}, {ranks} ranks":
       (ranks, ("sum", "--bytes", str(count), "--steps", str(steps)))
       for size, count, steps in (("64 KiB", 1 << 16, 300), ("4 MiB", 4 << 20, 60),
                                  ("64 MiB", 64 << 20, 10))
       for ranks in (2, 4)},
}
TORCHRUN, MPIRUN = "torchrun", "mpirun"


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class Launchers(measuring.Measuring):

    bench = "ranks by launcher"

    def identity(self, cell):
        return cell

    def pack(self):
        path = os.path.join(self.data, DATA)
        if not os.path.exists(os.path.join(path, "data.mdb")):
            os.makedirs(self.data, exist_ok=True)
            self.launch(1, [self.command, "pack", "-", path, "--from", "synthetic", "--preset",
                            "cifar10-large", "--count", COUNT])

    def environment(self):
        package = os.path.join(self.build, "python")
        return {**os.environ, "PYTHONPATH": package, "OMP_NUM_THREADS": "1",
                "PATH": os.path.join(self.build, "src") + os.pathsep + os.environ["PATH"]}

    def torchrun(self, ranks, *words):
        # Without --redirects and --tee torch 1.13 does not start on Python 3.11.
        return [self.options.python, "-m", "torch.distributed.run", "--redirects", "1", "--tee",
                "1", "--nproc_per_node", str(ranks), *words, WORK]

    def measure(self, cell):
        if cell in ON_NODES:
            return self.on_nodes(cell)
        return self.on_one_node(cell)

    def on_nodes(self, cell):
        runs = {side: [] for side in SIDES}
        with nodes.Nodes(self.data, NODES, mpi=self.options.mpi,
                         pfs_options=measuring.PFS_OPTIONS, pfs=self.pfs) as cluster:
            for _ in range(self.options.repetitions):
                for side in SIDES:
                    runs[side].append(self.one_run(cluster, side, ON_NODES[cell]))
        wanted = self.file_bytes()
        for of_side in runs.values():
            for run in of_side:
                run["bytes_over_share"] = run["server_bytes"] / wanted
        return {"nodes": NODES, "ranks_per_node": RANKS, "batch": BATCH, "file_bytes": wanted,
                "servers": " ".join(measuring.PFS_OPTIONS), "runs": runs}

    def file_bytes(self):
        return os.path.getsize(os.path.join(self.data, DATA, "data.mdb"))

    def one_run(self, cluster, side, words):
        cluster.drop_caches()
        cluster.reset()
        port = free_port()
        # mpirun only starts one torchrun on each node.
        start = self.torchrun(RANKS, "--nnodes", str(NODES), "--master_addr", "127.0.0.1",
                              "--master_port", str(port))
        place = start.index("--nnodes")
        shell = ('exec "$0" "${@:1:%d}" --node_rank "${OMPI_COMM_WORLD_RANK:-$PMI_RANK}" '
                 '"${@:%d}"' % (place - 1, place))
        done = cluster.run(["bash", "-c", shell, *start, *SIDES[side], "read",
                            f"{{mount}}/{DATA}", "--batch", str(BATCH), *words],
                           ranks_per_node=1, timeout=self.options.timeout, env=self.environment())
        measuring.check(done)
        ranks = figures_of(done.stdout, NODES * RANKS)
        clients = cluster.stats()["clients"]
        return {"seconds": max(rank["seconds"] for rank in ranks),
                "opened": max(rank["opened"] for rank in ranks),
                "kinds": sorted({rank["kind"] for rank in ranks}),
                "reading_processes_a_node": sum(rank["requests"] > 0 for rank in ranks) / NODES,
                "samples": sum(rank["samples"] for rank in ranks),
                "server_bytes": sum(client["bytes"] for client in clients),
                "server_requests": sum(client["requests"] for client in clients),
                "server_seeks": sum(client["seeks"] for client in clients),
                "explain": ranks[0]["explain"]}

    def on_one_node(self, cell):
        ranks, words = ONE_NODE[cell]
        words = [word.format(data=os.path.join(self.data, DATA)) for word in words]
        runs = {TORCHRUN: [], MPIRUN: []}
        for _ in range(self.options.repetitions):
            sides = list(runs)
            random.shuffle(sides)
            for side in sides:
                runs[side].append(self.on_this_node(side, ranks, words))
        ratio = [mine["rate"] / theirs["rate"]
                 for mine, theirs in zip(runs[TORCHRUN], runs[MPIRUN])]
        return {"ranks": ranks, "words": " ".join(words[:1] + words[2:]), "runs": runs,
                "over_mpi": measuring.spread_of(ratio)}

    def on_this_node(self, side, ranks, words):
        if side == TORCHRUN:
            start = self.torchrun(ranks, "--nnodes", "1", "--rdzv_backend", "c10d",
                                  "--rdzv_endpoint", "localhost:0")
        else:
            start = [os.path.join(measuring.ROOT, "scripts", "mpirun.sh"), self.options.mpi,
                     str(ranks), self.options.python, WORK]
        done = subprocess.run([*start, *words], env=self.environment(), capture_output=True,
                              text=True, check=False, timeout=self.options.timeout)
        measuring.check(done)
        found = figures_of(done.stdout, ranks)
        if not all(one.get("right", True) for one in found):
            raise measuring.Failed("a sum is wrong")
        seconds = max(one["seconds"] for one in found)
        work = sum(one["samples"] for one in found) if "samples" in found[0] else found[0]["steps"]
        return {"rate": work / seconds, "seconds": seconds,
                "opened": max(one.get("opened", 0) for one in found),
                "kinds": sorted({one["kind"] for one in found}), "explain": found[0]["explain"]}

    def table(self):
        rows = []
        for cell in self.results:
            for side, runs in cell["runs"].items():
                seconds = measuring.spread_of([run["seconds"] for run in runs])
                row = [cell["cell"], side, measuring.spread_text(seconds, 2, " s")]
                if "file_bytes" in cell:
                    row += [f"{statistics.median(run[name] for run in runs):,.{digits}f}"
                            for name, digits in (("reading_processes_a_node", 1),
                                                 ("bytes_over_share", 2), ("server_requests", 0))]
                else:
                    over = cell["over_mpi"]
                    row += ["", "", measuring.spread_text(over, 2) if side == TORCHRUN else ""]
                rows.append(row)
        return measuring.markdown(("what", "side", "time", "readers a node", "bytes / share",
                                   "requests, or rate over MPI's"), rows)


def figures_of(output, ranks):
    """Of all ranks, whose lines torchrun puts its own words in front of, or runs together."""
    found, decoder = [], json.JSONDecoder()
    for part in output.split("FIGURES ")[1:]:
        found.append(decoder.raw_decode(part)[0])
    if len(found) != ranks:
        raise measuring.Failed(f"{len(found)} of {ranks} ranks have told figures")
    return sorted(found, key=lambda one: one["rank"])


def main():
    nodes.end_by_exception()
    cells = [*ON_NODES, *ONE_NODE]
    parser = measuring.parser(__doc__, "launchers", timeout=600)
    parser.add_argument("--python", default="/usr/bin/python3", help="a Python with torch")
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--only", nargs="+", default=cells, choices=cells)
    bench = Launchers(parser.parse_args())
    bench.pack()
    bench.run(bench.options.only)
    print(bench.table())
    return 1 if bench.failures else 0


if __name__ == "__main__":
    sys.exit(main())
