#!/usr/bin/python3
"""Random order over small LMDB records, cold: the loader beside what the device gives, and peers.

  run_random_lmdb.py BUILD DATASET RESULTS.json [--repetitions N] [--samples N] [--whole N]

  loader      order shuffled, by pread and by io_uring
  raw         the same pages in the same order by the same engine, nothing unpacked
  liblmdb     mdb_get of the same samples, one process
  DataLoader  torch's, shuffled, over py-lmdb with 0, 2 and 4 workers

Everything runs over the first samples of an epoch (65,536 if not told otherwise) and, those that
do not take minutes, over the first N of `--whole`: the samples of the data set. Everything runs
once a round, in an order of its own, each cold; a loader and its raw reading follow each other,
in turns. The tables on standard output (Markdown) show medians with least and most, ratios within
a round. Needs root, torch and py-lmdb.
"""

import argparse
import itertools
import json
import os
import random
import statistics
import subprocess
import sys

import machine
import measuring

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
    parser.add_argument("--samples", type=int, default=65_536)
    parser.add_argument("--whole", type=int, default=0)
    return parser.parse_args()


def groups(options, samples):
    """[{name: words}]: what is compared with each other runs in one go."""
    program = os.path.join(options.build, "bench", "shuffled_read")
    numbers = (str(BATCH), str(samples))
    found = [{"liblmdb": [program, options.dataset, "liblmdb", "mmap", "0", *numbers, "cold"]}]
    for engine, depth in ENGINES:
        if depth > 1 or samples == options.samples:
            found.append({f"{how} {engine} {depth}": [program, options.dataset, how, engine,
                                                      str(depth), *numbers, "cold"]
                          for how in ("loader", "raw")})
    for workers in WORKERS if samples == options.samples else ():
        found.append({f"DataLoader {workers}": ["/usr/bin/python3", "-B",
                                                os.path.join(_HERE, "lmdb_dataloader.py"),
                                                options.dataset, str(workers), *numbers]})
    return found


def in_turns(options, samples, number):
    """[(name, words)] of a round."""
    order = groups(options, samples)
    random.Random(number).shuffle(order)
    step = 1 if number % 2 == 0 else -1
    return [pair for group in order for pair in list(group.items())[::step]]


def measure(options):
    """[{read_ahead_kb, asked, round, name, ...}]"""
    runs = []
    for read_ahead, samples in itertools.product(
            READ_AHEADS, filter(None, (options.samples, options.whole))):
        kilobytes = read_ahead or machine.read_ahead_kb(options.dataset)
        with machine.read_ahead_set_to(options.dataset, kilobytes):
            for number in range(options.repetitions):
                for name, words in in_turns(options, samples, number):
                    print(f"read-ahead {kilobytes} KiB, {samples} samples, round {number}: {name}",
                          file=sys.stderr)
                    output = subprocess.run(words, check=True, capture_output=True).stdout
                    runs.append({"read_ahead_kb": kilobytes, "asked": samples, "round": number,
                                 "name": name, **json.loads(output)})
    return runs


def row(name, chosen):
    """Of the runs of one read-ahead and length."""
    rate = {(run["name"], run["round"]): run["samples_per_second"] for run in chosen}
    mine = [run for run in chosen if run["name"] == name]
    raw = name.replace("loader", "raw")
    ratios = [run["samples_per_second"] / rate[raw, run["round"]] for run in mine
              if raw != name and (raw, run["round"]) in rate]
    amplification = [run["bytes"] / run["delivered"] for run in mine if name.startswith("loader")]
    return (name, spread([run["samples_per_second"] for run in mine], 0),
            spread(ratios, 2) if ratios else "",
            f"{statistics.median(amplification):.2f}" if amplification else "")


def spread(values, decimals):
    return measuring.spread_text(measuring.spread_of(values), decimals)


def tables(runs):
    text = ""
    for samples, read_ahead in dict.fromkeys((run["asked"], run["read_ahead_kb"]) for run in runs):
        chosen = [run for run in runs
                  if (run["asked"], run["read_ahead_kb"]) == (samples, read_ahead)]
        text += f"\n{samples:,} samples, read-ahead {read_ahead} KiB:\n\n"
        text += measuring.markdown(
            ("who", "samples/s", "of raw", "amplification"),
            (row(name, chosen) for name in sorted({run["name"] for run in chosen})))
    return text


def main():
    options = parse_arguments()
    before = machine.load_average()
    runs = measure(options)
    measuring.write_json(options.results, {
        "bench": "random lmdb", "batch": BATCH,
        "machine": machine.describe(options.dataset, "mpiexec.openmpi"), "load_before": before,
        "load_after": machine.load_average(), "runs": runs})
    print(tables(runs))


if __name__ == "__main__":
    main()
