#!/usr/bin/python3
"""Two builds of the command on the same data, turn by turn: did a change cost speed?

  bench/run_versions.py OLD/forebay NEW/forebay --names b3a3c40 main

A case is a format, an order, warm or cold. Each round runs both builds, the first of them changing
from round to round; a case's ratio is the median of the rounds' (above 1: the later build is
faster), of the loop's time and, since others may use the machine, of the CPU time of the whole run.
Needs NumPy, h5py and lmdb, and root for cold cases.
"""

import itertools
import json
import os
import resource
import subprocess
import tempfile

import machine
import measuring

ORDERS = {"strided": (), "grouped": ("--order", "grouped", "--group", "256"),
          "shuffled": ("--order", "shuffled"), "in_memory": ("--order", "in_memory"),
          "listed": ("--order", "listed", "--list", "ids")}


def make_data(samples):
    """The same 3,000 bytes a sample as LMDB, HDF5 and .npy, and a list of all in random order."""
    import h5py
    import lmdb
    import numpy
    random = numpy.random.default_rng(1)
    rows = random.integers(0, 256, (samples, 3000), "u1")
    numpy.save("x.npy", rows)
    with h5py.File("x.h5", "w") as file:
        file["x"] = rows
    with lmdb.open("x.lmdb", map_size=rows.nbytes * 2) as data, data.begin(write=True) as records:
        for number, row in enumerate(rows):
            records.put(b"%08d" % number, row.tobytes(), append=True)
    numpy.savetxt("ids", random.permutation(samples), "%d")


def cpu_of_children():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def seconds(command, file, order, cold, epochs):
    """Of the loop, opening not counted; and CPU seconds of the whole run."""
    words = [command, "bench", "load", file, *ORDERS[order], "--batch", "256", "--repetitions", "1",
             "--epochs", "1" if cold else str(epochs), "--json", "-", *(["--cold"] if cold else [])]
    cpu = cpu_of_children()
    run = subprocess.run(words, capture_output=True, text=True, check=False)
    measuring.check(run)
    return json.loads(run.stdout)["runs"][0]["seconds"], cpu_of_children() - cpu


def spread_of_ratios(before, after):
    return measuring.spread_of([old / new for old, new in zip(before, after)])


def case_name(file, order, cold):
    return f"{file} {order} {'cold' if cold else 'warm'}"


def compare(commands, options, *case):
    times = {command: [] for command in commands}
    for turn in range(options.rounds + 1):  # the first fills caches
        for command in commands if turn % 2 else commands[::-1]:
            times[command].append(seconds(command, *case, options.epochs))
    (before, cpu_before), (after, cpu_after) = (zip(*times[command][1:]) for command in commands)
    ratio, cpu = spread_of_ratios(before, after), spread_of_ratios(cpu_before, cpu_after)
    print(*case, measuring.spread_text(ratio, 3), "CPU", measuring.spread_text(cpu, 3), flush=True)
    return {"case": case_name(*case), "seconds_before": before,
            "seconds_after": after, "ratio": ratio, "cpu_before": cpu_before,
            "cpu_after": cpu_after, "cpu_ratio": cpu, "load": machine.load_average()}


def main():
    parser = measuring.plain_parser(__doc__, "before", "after")
    parser.add_argument("--names", nargs=2, default=("before", "after"))
    parser.add_argument("--output", default="versions.json")
    parser.add_argument("--samples", type=int, default=60_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--epochs", type=int, default=16, help="of a warm run; a cold one has one")
    parser.add_argument("--cases", nargs="+", metavar="CASE",
                        help="only these, like 'x.npy strided cold'")
    options = parser.parse_args()
    commands = [os.path.abspath(path) for path in (options.before, options.after)]
    output = os.path.abspath(options.output)
    with tempfile.TemporaryDirectory(prefix="forebay-versions-", dir="/var/tmp") as folder:
        os.chdir(folder)
        os.environ["XDG_CACHE_HOME"] = folder
        make_data(options.samples)
        with measuring.described(output, folder) as results:
            results |= {"bench": "versions", "builds": options.names, "samples": options.samples,
                        "sample_bytes": 3000, "batch": 256, "epochs_warm": options.epochs}
            cases = itertools.product(("x.lmdb", "x.h5", "x.npy"), ORDERS, (False, True))
            results["cases"] = [compare(commands, options, *case) for case in cases
                                if not options.cases or case_name(*case) in options.cases]
        os.chdir("/")


if __name__ == "__main__":
    main()
