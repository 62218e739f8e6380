#!/usr/bin/python3
"""How much of reading a consumer notices that computes longer than reading takes.

  run_exposed_io.py EXPOSED_IO DATASET RESULTS.json [--repeats N] [--launcher SCRIPT]

DATASET is made by `exposed_io make DATASET 60000`. Each case first iterates an epoch without
computing, which tells how long reading takes, and then one with a computing time (a sleep) of twice
that. Cases take turns, so that a noisy minute touches all of them. Tables (Markdown) on standard
output: medians of the rounds, and their extremes, of the rank that is worst.
"""

import argparse
import itertools
import json
import statistics
import subprocess
import sys

import machine

ORDERS = {"shuffled": ("order=shuffled", "window=8"), "grouped": ("order=grouped", "group=2048")}
RANKS = (1, 4)
SHARE = 256  # samples of a rank in a batch
LONGER = 2   # computing takes so much longer than reading
FORMS = {"2 buffers": ("buffers=2",), "1 buffer": ("buffers=1",),
         "2 buffers, decoded": ("buffers=2", "decode=on")}


def run(options, ranks, compute, words):
    command = (options.launcher, "openmpi", str(ranks), options.program, "run", options.dataset,
               f"compute={compute}", f"batch={SHARE * ranks}", f"seed={options.seed}", *words)
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return json.loads(output)["ranks"]


def measure(options, ranks, words):
    """One case once: figures of the worst rank."""
    plain = run(options, ranks, 0, words)
    read_a_batch = max(rank["read"] / rank["batches"] for rank in plain)
    compute = round(LONGER * read_a_batch * 1e6)
    result = run(options, ranks, compute, words)
    return {
        "compute_us": compute,
        "read_over_computed": max(rank["read"] / rank["computed"] for rank in result),
        "exposed_share": max((rank["exposed"] - rank["first"]) / rank["elapsed"]
                             for rank in result),
        "exposed_over_read": [rank["exposed"] / rank["read"] for rank in result],
        "exposed_decode_share": max(rank["exposed_decode"] / rank["elapsed"] for rank in result),
        "decode_over_computed": max(rank["decode"] / rank["computed"] for rank in result),
        "ranks": result,
    }


def spread(values, digits=2, unit="%"):
    values = [100 * value for value in values]
    return (f"{statistics.median(values):.{digits}f} {unit} "
            f"({min(values):.{digits}f}-{max(values):.{digits}f})")


def table(head, rows):
    print(f"\n| {' | '.join(head)} |\n|{'---|' * len(head)}")
    for row in rows:
        print(f"| {' | '.join(row)} |")


def cell(measured, key):
    return spread([one[key] for one in measured])


def print_tables(results):
    hidden = [(key, measured) for key, measured in results.items() if "1 buffer" not in key[2]]
    table(("order", "ranks", "form", "reading, of computing", "exposed I/O, of the epoch",
           "waiting for decoding", "below 1 %"),
          ((order, str(ranks), form, cell(measured, "read_over_computed"),
            cell(measured, "exposed_share"), cell(measured, "exposed_decode_share"),
            f"{sum(one['exposed_share'] < 0.01 for one in measured)} of {len(measured)}")
           for (order, ranks, form), measured in hidden))
    shown = [(key, measured) for key, measured in results.items() if "1 buffer" in key[2]]
    table(("order", "ranks", "exposed I/O, of reading (all ranks)", "within 10 %"),
          ((order, str(ranks), spread(ratios, 1),
            f"{sum(abs(ratio - 1) <= 0.1 for ratio in ratios)} of {len(ratios)}")
           for (order, ranks, _), ratios in
           ((key, [ratio for one in measured for ratio in one["exposed_over_read"]])
            for key, measured in shown)))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("dataset")
    parser.add_argument("results")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--launcher", default="scripts/mpirun.sh")
    options = parser.parse_args()
    before = machine.load_average()
    cases = list(itertools.product(ORDERS, RANKS, FORMS))
    results = {case: [] for case in cases}
    for options.seed in range(options.repeats):
        for order, ranks, form in cases:
            words = (*ORDERS[order], *FORMS[form])
            results[order, ranks, form].append(measure(options, ranks, words))
    about = machine.describe(options.dataset, "mpirun.openmpi") | {
        "read_ahead_kb": machine.read_ahead_kb(options.dataset), "load_before": before,
        "load_after": machine.load_average()}
    with open(options.results, "w", encoding="utf-8") as out:
        json.dump({"machine": about,
                   "cases": [{"order": order, "ranks": ranks, "form": form, "rounds": rounds}
                             for (order, ranks, form), rounds in results.items()]}, out, indent=1)
    print(json.dumps(about), file=sys.stderr)
    print_tables(results)


if __name__ == "__main__":
    main()
