#!/usr/bin/python3
"""A soak: random data sets, orders, engines, ranks and launchers meet random faults at random times.

  tests/chaos/chaos.py [--minutes 20 | --hours H | --runs N] [--seed S] [--only NAME,...] [--log FILE]

Whatever happens, each sample that was delivered is right, or an error names the fault in time on every
rank, and nothing is left behind. A run is drawn from one number: `--seed N --runs 1` repeats run N. With
`--only`, only these faults, formats and launchers are drawn from. The log has one JSON line a run.

Runs of Python loops and of torchrun need FOREBAY_PYTHON, an interpreter that can import forebay; the
other settings are those of tests/acceptance (launch.py). Needs root and /dev/fuse. Exit status: 0 when no
run was a finding, 1 otherwise, 77 where nothing can be mounted.
"""

import argparse
import collections
import json
import os
import random
import sys
import tempfile
import time

_HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(_HERE, "..", "acceptance"))

import data_sets  # noqa: E402
import faults  # noqa: E402
import launch  # noqa: E402
import launches  # noqa: E402
import run as runs  # noqa: E402


def options():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    length = parser.add_mutually_exclusive_group()
    length.add_argument("--minutes", type=float, default=20, help="how long to go on (default 20)")
    length.add_argument("--hours", type=float, help="the same in hours")
    length.add_argument("--runs", type=int, help="how many runs")
    parser.add_argument(
        "--seed",
        type=int,
        default=random.SystemRandom().randrange(1 << 40),
        help="number of the first run (default: random)",
    )
    parser.add_argument("--only", default="", help="faults, formats and launchers to draw from")
    parser.add_argument(
        "--log", help="file for one JSON line a run, in addition to what is printed"
    )
    chosen = parser.parse_args()
    chosen.only = [name for name in chosen.only.split(",") if name]
    names = (
        [fault.name for fault in faults.FAULTS] + list(data_sets.MAKERS) + list(launches.known())
    )
    for name in chosen.only:
        if name not in names:
            parser.error(f"--only {name}: there are {', '.join(names)}")
    return chosen


def numbers(chosen):
    """Numbers of runs, until it is enough."""
    end = time.monotonic() + (chosen.hours * 3600 if chosen.hours else chosen.minutes * 60)
    number = chosen.seed
    while number - chosen.seed < chosen.runs if chosen.runs else time.monotonic() < end:
        yield number
        number += 1


def main():
    chosen = options()
    if os.geteuid() != 0 or not os.path.exists("/dev/fuse"):
        print("skipped: mounting needs root and /dev/fuse")
        return 77
    launch.use_private_shared_memory("256m")
    launch.signal.signal(launch.signal.SIGINT, launch.signal.default_int_handler)
    starters = launches.known()
    print(
        f"seed {chosen.seed}; launchers: {', '.join(starters)}"
        + ("" if len(starters) == 3 else "; FOREBAY_PYTHON has what the others need"),
        flush=True,
    )
    ends, findings = collections.Counter(), []
    log = open(chosen.log, "a", encoding="utf-8") if chosen.log else None
    with tempfile.TemporaryDirectory(prefix="forebay-chaos-") as scratch:
        os.mkdir(os.path.join(scratch, "small-disk"))
        for number in numbers(chosen):
            begin, finding = time.monotonic(), None
            one = runs.Run(number, scratch, starters, chosen.only)
            try:
                end = one.perform()
            except runs.Finding as error:
                end = finding = str(error)
                findings.append(number)
            except OSError as error:
                end = finding = f"the soak itself: {error}"
                findings.append(number)
            ends[
                one.fault.name, "finding" if finding else "whole" if end == "whole" else "error"
            ] += 1
            seconds = time.monotonic() - begin
            print(
                f"{'FINDING ' if finding else ''}{number} ({seconds:.1f} s) {one}\n    {end}",
                flush=True,
            )
            if log:
                log.write(
                    json.dumps(
                        {
                            "run": number,
                            "seconds": round(seconds, 1),
                            "what": str(one),
                            "end": end,
                            "finding": bool(finding),
                        }
                    )
                    + "\n"
                )
                log.flush()
    for fault in faults.FAULTS:
        told = ", ".join(
            f"{count} {end}" for (name, end), count in sorted(ends.items()) if name == fault.name
        )
        if told:
            print(f"{fault.name}: {told}")
    if findings:
        print(f"findings: {', '.join(str(number) for number in findings)}")
    count = sum(ends.values())
    print(
        f"seed {chosen.seed}: {100 * (count - len(findings)) // max(1, count)}% tests passed, "
        f"{len(findings)} tests failed out of {count}"
    )
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
