#!/usr/bin/python3
"""Random order over small LMDB records, cold: the loader beside what the device gives, and peers.

  run_random_lmdb.py BUILD DATASET RESULTS.json [--repetitions N] [--samples N]

  loader      order shuffled, by pread and by io_uring
  raw         the same pages in the same order by the same engine, nothing unpacked
  liblmdb     mdb_get of the same samples, one process
  DataLoader  torch's, shuffled, over py-lmdb with 0, 2 and 4 workers

Everything runs once a round, in an order of its own, each cold; the table on standard output
(Markdown) shows medians with least and most, ratios within a round. Needs root, torch and py-lmdb.
"""

import argparse
import json
import os
import random
import statistics
import subprocess
import sys

import machine

_HERE = os.path.dirname(os.path.abspath(__file__))
ENGINES = (("pread", 1), ("pread", 16), ("uring", 32))
WORKERS = (0, 2, 4)
READ_AHEADS = (128, None)
BATCH = 256


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("dataset")
    parser.add_argument("results")
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--samples", type=int, default=50_000)
    return parser.parse_args()


def commands(options):
    """{name: words}"""
    program = os.path.join(options.build, "bench", "shuffled_read")
    numbers = (str(BATCH), str(options.samples))
    found = {"liblmdb": [program, options.dataset, "liblmdb", "mmap", "0", *numbers, "cold"]}
    for engine, depth in ENGINES:
        for how in ("loader", "raw"):
            found[f"{how} {engine} {depth}"] = [program, options.dataset, how, engine, str(depth),
                                                *numbers, "cold"]
    for workers in WORKERS:
        found[f"DataLoader {workers}"] = ["/usr/bin/python3", "-B",
                                          os.path.join(_HERE, "lmdb_dataloader.py"),
                                          options.dataset, str(workers), *numbers]
    return found


def measure(options):
    """[{read_ahead, round, name, ...}]"""
    runs = []
    for read_ahead in READ_AHEADS:
        kilobytes = read_ahead or machine.read_ahead_kb(options.dataset)
        with machine.read_ahead_set_to(options.dataset, kilobytes):
            for number in range(options.repetitions):
                order = list(commands(options).items())
                random.Random(number).shuffle(order)
                for name, words in order:
                    print(f"read-ahead {kilobytes} KiB, round {number}: {name}", file=sys.stderr)
                    output = subprocess.run(words, check=True, capture_output=True).stdout
                    runs.append({"read_ahead_kb": kilobytes, "round": number, "name": name,
                                 **json.loads(output)})
    return runs


def spread(values, decimals):
    values = sorted(values)
    return "{1:,.{0}f} ({2:,.{0}f}-{3:,.{0}f})".format(decimals, statistics.median(values),
                                                       values[0], values[-1])


def table(runs):
    text = "| read-ahead, KiB | who | samples/s | of raw | amplification |\n|---|---|---|---|---|\n"
    for read_ahead in dict.fromkeys(run["read_ahead_kb"] for run in runs):
        chosen = [run for run in runs if run["read_ahead_kb"] == read_ahead]
        rate = {(run["name"], run["round"]): run["samples_per_second"] for run in chosen}
        for name in sorted({run["name"] for run in chosen}):
            mine = [run for run in chosen if run["name"] == name]
            raw = name.replace("loader", "raw")
            ratios = [run["samples_per_second"] / rate[raw, run["round"]] for run in mine
                      if raw != name and (raw, run["round"]) in rate]
            amplification = [run["bytes"] / run["delivered"] for run in mine
                             if name.startswith("loader")]
            text += "| {} | {} | {} | {} | {} |\n".format(
                read_ahead, name, spread([run["samples_per_second"] for run in mine], 0),
                spread(ratios, 2) if ratios else "",
                f"{statistics.median(amplification):.2f}" if amplification else "")
    return text


def main():
    options = parse_arguments()
    runs = measure(options)
    with open(options.results, "w", encoding="utf-8") as file:
        json.dump({"bench": "random lmdb", "batch": BATCH,
                   "machine": machine.describe(options.dataset, "mpiexec.openmpi"),
                   "runs": runs}, file, indent=1)
        file.write("\n")
    print(table(runs))


if __name__ == "__main__":
    main()
