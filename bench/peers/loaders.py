#!/usr/bin/python3
"""Forebay beside other loaders: the same samples, the same batches, one machine, one run.

  bench/peers/loaders.py --build build/release

Makes a virtual environment for each library (from PyPI; what does not install is listed with its
reason), the data in each library's form, and runs every loader on every case
(bench/peers/loader_cases.py) in a process of its own: round after round, in each round all loaders
in an order of its own. The first round also checks that each sample came once and with its bytes,
and how well they were shuffled. Results are written after each run; what is there is not run again,
so an interrupted run goes on. At most 12 minutes with the defaults once environments and data are
there (--prepare makes them alone); a call more does what was left.

The table (Markdown), all runs (JSON) and the plot (SVG) go to RESULTS.md, .json and .svg. Needs
Debian's python3-torch, python3-torchvision, python3-h5py, python3-lmdb, python3-pil and, for the
plot, python3-matplotlib.
"""

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time

_HERE = os.path.dirname(os.path.abspath(__file__))
_ROOT = os.path.dirname(os.path.dirname(_HERE))
sys.path.insert(0, os.path.join(_ROOT, "bench"))

import loader_cases  # noqa: E402
import loader_memory  # noqa: E402
import loader_report  # noqa: E402
import loader_setup  # noqa: E402
import loader_worker  # noqa: E402
import machine  # noqa: E402
import measuring  # noqa: E402

_TIMEOUT = 300


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    names = [case.name for case in loader_cases.CASES]
    parser.add_argument("--build", default="build/release", help="build tree with the package")
    parser.add_argument("--work", help="environments and data (default: BUILD/bench/peers)")
    parser.add_argument("--results", default="docs/results/peers", help="without a suffix")
    parser.add_argument("--cases", nargs="+", choices=names, default=names)
    parser.add_argument("--peers", nargs="+", choices=list(loader_cases.PEERS),
                        default=list(loader_cases.PEERS))
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=1.0,
                        help="of a run, which has two epochs at least")
    parser.add_argument("--minutes", type=float, default=11,
                        help="no run begins later: what is left is for the next call")
    parser.add_argument("--prepare", action="store_true", help="only environments and data")
    parser.add_argument("--quick", action="store_true", help="few samples: to see that all works")
    options = parser.parse_args()
    options.work = os.path.abspath(options.work or os.path.join(options.build, "bench", "peers"))
    return options


def say(text):
    print(text, file=sys.stderr, flush=True)


def environment_of(options, peer):
    """Ours is found through the build tree."""
    variables = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "OMP_NUM_THREADS": "1",
                 "TF_CPP_MIN_LOG_LEVEL": "3", "TF_ENABLE_ONEDNN_OPTS": "0"}
    if peer.startswith("forebay"):
        variables["PYTHONPATH"] = os.path.join(os.path.abspath(options.build), "python")
    return variables


def measure_limit(options, case):
    """What plain copies or reads of the file come to: the best of the case's ways, in samples/s.
    """
    program = os.path.join(options.build, "bench", "bulk_read")
    path = os.path.join(loader_setup.folder_of(options, case.data), "lmdb", "data.mdb")
    if not case.cold:
        loader_worker.warm([path])
    best, how = 0, ""
    for words in case.limits * 3:
        try:
            output = subprocess.run([program, path, *words], check=True, capture_output=True,
                                    text=True, timeout=_TIMEOUT).stdout
        except (OSError, subprocess.SubprocessError) as error:
            return {"error": f"{error}; build the target bulk_read"}
        figures = json.loads(output)
        rate = figures["bytes"] / loader_cases.bytes_of(case.data) / figures["seconds"]
        if rate > best:
            best, how = rate, " ".join(words)
    return {"samples_per_second": best, "how": how}


def run(options, case, peer, checked):
    """Figures of one process; {"error": ...} where it fails."""
    if peer == "limit":
        return measure_limit(options, case)
    folder = loader_setup.folder_of(options, case.data)
    pinned = ["taskset", "-c", "0"] if peer == "forebay one core" else []
    words = [*pinned, loader_setup.python_of(options, loader_cases.PEERS[peer][0]),
             os.path.join(_HERE, "loader_worker.py"), "run", peer, case.name, folder,
             str(options.seconds), *(["check"] if checked else [])]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               env=environment_of(options, peer), start_new_session=True)
    memory = loader_memory.Watch(process)
    timer = threading.Timer(_TIMEOUT, memory.kill)
    timer.start()
    try:
        output = process.stdout.read()
    except BaseException:
        memory.kill()
        raise
    finally:
        process.wait()
        timer.cancel()
        memory.join()
    if process.returncode != 0:
        lines = [line for line in memory.errors if line.strip()] or ["it took too long"]
        return {"error": lines[-1].strip()}
    figures = json.loads(output.strip().splitlines()[-1])
    return {**figures, **memory.peaks(figures.pop("memory_at_end"))}


def load_results(options):
    """What a run with the same options has left behind."""
    path = options.results + ".json"
    asked = {"quick": options.quick, "seconds": options.seconds}
    if os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            found = json.load(file)
        if found.get("asked") == asked:
            return found
        say(f"{path} is of a run with other options, and replaced")
    return {"bench": "loaders", "asked": asked, "batch": loader_cases.BATCH,
            "machine": machine.describe(_ROOT, "mpiexec.openmpi"), "missing": {}, "runs": []}


def planned(options, missing, results):
    """(round, case, peer) of all runs that are not there."""
    done = {(r["round"], r["case"], r["peer"]) for r in results["runs"]}
    for number in range(options.repetitions):
        for case in loader_cases.CASES:
            if case.name not in options.cases:
                continue
            peers = [peer for peer in loader_cases.peers_of(case)
                     if peer in options.peers and loader_cases.PEERS[peer][0] not in missing]
            random.Random(f"{number} {case.name}").shuffle(peers)
            yield from ((number, case, peer) for peer in peers
                        if (number, case.name, peer) not in done)


def main():
    options = parse_arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # the worker must not stay behind
    results = load_results(options)
    results["missing"], results["versions"] = loader_setup.prepare(options, say)
    if options.prepare:
        return
    begin = time.monotonic()
    results.setdefault("load_before", machine.load_average())
    left = list(planned(options, results["missing"], results))
    for place, (number, case, peer) in enumerate(left):
        if time.monotonic() - begin > 60 * options.minutes:
            say(f"{len(left) - place} runs are left: call again to go on")
            break
        figures = run(options, case, peer, checked=number == 0)
        told = figures.get("error") or f"{figures['samples_per_second']:,.0f} samples/s"
        say(f"[{place + 1}/{len(left)}] round {number}, {case.name}, {peer}: {told}")
        results["runs"].append({"round": number, "case": case.name, "peer": peer, **figures})
        measuring.write_json(options.results + ".json", results)
    results["load_after"] = machine.load_average()
    measuring.write_json(options.results + ".json", results)
    text = loader_report.page(results)
    with open(options.results + ".md", "w", encoding="utf-8") as file:
        file.write(text)
    loader_report.plot(results, options.results + ".svg")
    print(text)


if __name__ == "__main__":
    main()
