"""Trainings that are compared, one after the other, in a results file that can be continued.

A run is whole in the file as soon as it is over; a run that is already there is not repeated. One
that fails is listed, the others go on. Losses by epoch come from the log of `forebay train`.
"""

import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass

import machine

_ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


@dataclass(frozen=True)
class Run:
    """One training; `group` is its table, `name` its row, over all seeds."""
    group: str
    name: str
    seed: int
    words: tuple  # for forebay train, without seed
    program: tuple = ()  # instead of forebay train: it prints "test accuracy X"
    ranks: int = 0  # 0: as the command line says

    def text(self):
        return f"{self.group}: {self.name}, seed {self.seed}"


def add_arguments(parser, results):
    parser.add_argument("--build", default="build/release", help="build tree with the programs")
    parser.add_argument("--mpi", default="openmpi", choices=("openmpi", "mpich"))
    parser.add_argument("--ranks", type=int, default=1)
    parser.add_argument("--threads", type=int, default=1, help="that compute, a rank")
    parser.add_argument("--data", help="folder of the data sets (default: BUILD/bench/data)")
    parser.add_argument("--output", help=f"results (default: BUILD/bench/{results}.json)")
    parser.add_argument("--seeds", type=int, default=3, help="trainings of each kind (default 3)")
    parser.add_argument("--timeout", type=float, default=7200, help="seconds a training")
    parser.add_argument("--quick", action="store_true", help="a minute, to see that it works")
    parser.set_defaults(results=results)


class Trainings:

    def __init__(self, options, facts):
        """`facts`: what the results should say beside the runs."""
        self.options = options
        self.build = os.path.abspath(options.build)
        self.command = os.path.join(self.build, "src", "forebay")
        self.data = os.path.abspath(options.data or os.path.join(self.build, "bench", "data"))
        self.output = options.output or os.path.join(self.build, "bench", f"{options.results}.json")
        self.facts = facts
        self.results = []
        self.failures = []
        if os.path.exists(self.output):
            with open(self.output, encoding="utf-8") as file:
                self.results = json.load(file)["runs"]

    def forebay(self, *words):
        """Makes a data set."""
        self._make(self.command, *words)

    def generate(self, *words):
        """Likewise, with something to learn in it."""
        self._make(os.path.join(self.build, "bench", "forebay-bench"), "generate", *words)

    def _make(self, *words):
        os.makedirs(self.data, exist_ok=True)
        subprocess.run([*map(str, words)], check=True, stdout=sys.stderr)

    def run(self, runs):
        known = {result["run"] for result in self.results}
        wanted = [run for run in runs if self._identity(run) not in known]
        for number, run in enumerate(wanted, 1):
            print(f"[{number}/{len(wanted)}] {run.text()}", file=sys.stderr, flush=True)
            try:
                self.results.append(self._train(run))
            except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
                last = (error.stderr or "no message").strip().splitlines()[-1:]
                self.failures.append(f"{run.text()}: {' '.join(last)}")
                print(f"  failed: {self.failures[-1]}", file=sys.stderr)
            self._write()

    def _identity(self, run):
        words = [word.replace(self.data + os.sep, "") for word in run.words]
        return f"{run.text()}: {' '.join(words)} on {run.ranks or self.options.ranks}"

    def _train(self, run):
        start = time.monotonic()
        epochs = self._train_by_program(run) if run.program else self._train_by_forebay(run)
        return {"run": self._identity(run), "group": run.group, "name": run.name, "seed": run.seed,
                "seconds": round(time.monotonic() - start, 1), "load": machine.load_average(),
                "epochs": epochs}

    def _launch(self, run, *words):
        """What the program printed."""
        ranks = str(run.ranks or self.options.ranks)
        launcher = [os.path.join(_ROOT, "scripts", "mpirun.sh"), self.options.mpi, ranks]
        package = os.path.join(self.build, "python")
        return subprocess.run([*launcher, *words, *run.words, "--seed", str(run.seed)], check=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8",
                              timeout=self.options.timeout,
                              env={**os.environ, "PYTHONPATH": package}).stdout

    def _train_by_forebay(self, run):
        with tempfile.TemporaryDirectory(prefix="forebay-train-") as folder:
            log = os.path.join(folder, "log")
            self._launch(run, self.command, "train", "--threads", str(self.options.threads),
                         "--log", log, "--log-every", "1000000000", "--json")
            with open(log, encoding="utf-8") as file:
                epochs = [json.loads(line) for line in file]
        return [epoch for epoch in epochs if epoch["event"] == "epoch"]

    def _train_by_program(self, run):
        told = re.search(r"test accuracy ([0-9.]+)", self._launch(run, *run.program))
        return [{"test_accuracy": float(told[1])}]

    def _write(self):
        results = {"bench": self.options.results, "date": time.strftime("%Y-%m-%d"),
                   "machine": machine.describe(self.data, f"mpiexec.{self.options.mpi}"),
                   "ranks": self.options.ranks, **self.facts, "failures": self.failures,
                   "runs": self.results}
        os.makedirs(os.path.dirname(os.path.abspath(self.output)), exist_ok=True)
        with open(self.output + ".part", "w", encoding="utf-8") as file:
            json.dump(results, file, indent=1)
            file.write("\n")
        os.replace(self.output + ".part", self.output)

    def last(self, runs, figure):
        """{(group, name): [value of each seed]} after the last epoch, in the order of `runs`."""
        found = {}
        by_identity = {result["run"]: result for result in self.results}
        for run in runs:
            result = by_identity.get(self._identity(run))
            if result and result["epochs"]:
                found.setdefault((run.group, run.name), []).append(result["epochs"][-1][figure])
        return found

    def epochs(self, runs, figure):
        """{(group, name): [mean over seeds after each epoch]}."""
        found = {}
        by_identity = {result["run"]: result for result in self.results}
        for run in runs:
            result = by_identity.get(self._identity(run))
            if result:
                found.setdefault((run.group, run.name), []).append(
                    [epoch[figure] for epoch in result["epochs"]])
        return {key: [statistics.mean(values) for values in zip(*seeds)]
                for key, seeds in found.items()}

    def write_beside(self, suffix, text):
        """A file beside the results: tables, figures."""
        path = os.path.splitext(self.output)[0] + suffix
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        print(f"wrote {path}", file=sys.stderr)


def spread(values, digits=4):
    """'mean (least-most)'"""
    mean = f"{statistics.mean(values):.{digits}f}"
    if len(values) == 1:
        return mean
    return f"{mean} ({min(values):.{digits}f}-{max(values):.{digits}f})"


def curves_svg(curves, label, name):
    """One line a (group, name), epochs against `label`, one panel a group."""
    sys.path.insert(0, os.path.join(_ROOT, "bench", "command", "report"))
    import charts  # matplotlib: only who draws needs it
    groups = list(dict.fromkeys(group for group, _ in curves))
    names = list(dict.fromkeys(run for _, run in curves))
    figure, axes = charts.panels(groups)
    for (group, run), values in curves.items():
        axes[group].plot(range(1, len(values) + 1), values, label=run, **charts.style(run, names))
    for axis in axes.values():
        axis.set_xlabel("epochs")
        axis.set_ylabel(label)
    charts.legend_below(figure, list(axes.values()))
    return charts.to_svg(figure, name)
