#!/usr/bin/python3
"""How much of reading a consumer notices that computes longer than reading takes.

  run_exposed_io.py EXPOSED_IO DATASET RESULTS.json [--repeats N] [--samples N] [--launcher SCRIPT]

DATASET is packed as the head of exposed_io.cc says, of 400,000 samples. Each case first iterates over the first N
samples of an epoch without computing, which tells how long reading takes, and then with a computing
time (a sleep) of twice that. N stays well below the data set's size: once so much of a file is in
the page cache that the kernel reads ahead around it, reading takes no time any more.

On a disk that others use, buffers take very different times. A consumer must not notice the reading
of a buffer (the first one aside) that takes less than 80 % of the computing with the buffer before.
This is counted apart from buffers that take longer, of which it cannot but notice some: what it
waits for them beyond (reading - computing) is "beyond need".

Cases take turns, so that a noisy minute touches all of them. Tables (Markdown) on standard output:
medians of the rounds, and their extremes, of the rank that is worst.
"""

import itertools
import json
import subprocess

import measuring

ORDERS = {"shuffled": ("order=shuffled", "window=8"), "grouped": ("order=grouped", "group=2048")}
RANKS = (1, 4)
SHARE = 256  # samples of a rank in a batch
BATCHES = 8  # in a buffer
CLEARLY = 0.8  # of the computing time: reading that must not be noticed
LONGER = 2   # computing takes so much longer than reading
FORMS = {"2 buffers": ("buffers=2",), "1 buffer": ("buffers=1",),
         "2 buffers, decoded": ("buffers=2", "decode=on")}


def run(options, ranks, compute, words):
    command = (options.launcher, "openmpi", str(ranks), options.program, options.dataset,
               f"compute={compute}", f"batch={SHARE * ranks}", f"seed={options.seed}",
               f"iterations={options.samples // (SHARE * ranks)}", *words)
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return json.loads(output)["ranks"]


def at_buffers(rank):
    """Of one rank: [(read, computed with the buffer before, waited)], seconds; the first aside."""
    computed = BATCHES * rank["computed"] / rank["batches"]
    waits = [sum(rank["waits"][first:first + BATCHES])
             for first in range(0, len(rank["waits"]), BATCHES)]
    return [(read, computed, waited)
            for read, waited in itertools.islice(zip(rank["reads"], waits), 1, None)]


def judged(rank):
    buffers = at_buffers(rank)
    clear = [waited for read, computed, waited in buffers if read < CLEARLY * computed]
    needless = sum(max(0, waited - max(0, read - computed)) for read, computed, waited in buffers)
    return {"buffers": len(buffers), "clear_buffers": len(clear),
            "exposed_share_of_clear": sum(clear) / rank["elapsed"],
            "needless_share": needless / rank["elapsed"]}


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
        "judged": [judged(rank) for rank in result],
        "ranks": result,
    }


def spread(values, digits=2):
    """In per cent."""
    return measuring.spread_text(measuring.spread_of([100 * value for value in values]), digits,
                                 " %")


def table(head, rows):
    print("\n" + measuring.markdown(head, rows), end="")


def cell(measured, key):
    return spread([one[key] for one in measured])


def row_of_hidden(key, measured):
    order, ranks, form = key
    ranks_judged = [rank for one in measured for rank in one["judged"]]
    clear = sum(rank["clear_buffers"] for rank in ranks_judged)
    worst = [max(rank["exposed_share_of_clear"] for rank in one["judged"]) for one in measured]
    needless = [max(rank["needless_share"] for rank in one["judged"]) for one in measured]
    return (order, str(ranks), form, cell(measured, "read_over_computed"),
            cell(measured, "exposed_share"),
            f"{clear} of {sum(rank['buffers'] for rank in ranks_judged)}", spread(worst),
            f"{sum(share < 0.01 for share in worst)} of {len(worst)}", spread(needless),
            cell(measured, "exposed_decode_share"))


def print_tables(results):
    hidden = [(key, measured) for key, measured in results.items() if "1 buffer" not in key[2]]
    table(("order", "ranks", "form", "reading, of computing", "exposed, of the epoch",
           "buffers below 80 %", "exposed at those", "below 1 %", "exposed beyond need",
           "waiting for decoding"), (row_of_hidden(key, measured) for key, measured in hidden))
    shown = [(key, measured) for key, measured in results.items() if "1 buffer" in key[2]]
    table(("order", "ranks", "exposed I/O, of reading (all ranks)", "within 10 %"),
          ((order, str(ranks), spread(ratios, 1),
            f"{sum(abs(ratio - 1) <= 0.1 for ratio in ratios)} of {len(ratios)}")
           for (order, ranks, _), ratios in
           ((key, [ratio for one in measured for ratio in one["exposed_over_read"]])
            for key, measured in shown)))


def main():
    parser = measuring.plain_parser(__doc__, "program", "dataset", "results")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--samples", type=int, default=61_440)
    parser.add_argument("--launcher", default="scripts/mpirun.sh")
    options = parser.parse_args()
    measured = {case: [] for case in itertools.product(ORDERS, RANKS, FORMS)}
    with measuring.described(options.results, options.dataset) as results:
        for options.seed in range(options.repeats):
            for (order, ranks, form), rounds in measured.items():
                rounds.append(measure(options, ranks, (*ORDERS[order], *FORMS[form])))
        results["samples"] = options.samples
        results["cases"] = [{"order": order, "ranks": ranks, "form": form, "rounds": rounds}
                            for (order, ranks, form), rounds in measured.items()]
    print_tables(measured)


if __name__ == "__main__":
    main()
