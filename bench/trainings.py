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
import measuring


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


def parser(doc, name):
    made = measuring.parser(doc, name, timeout=7200)
    made.add_argument("--ranks", type=int, default=1)
    made.add_argument("--threads", type=int, default=1, help="that compute, a rank")
    made.add_argument("--seeds", type=int, default=3, help="trainings of each kind (default 3)")
    made.add_argument("--quick", action="store_true", help="a minute, to see that it works")
    return made


class Trainings(measuring.Measuring):

    kept, key = "runs", "run"

    def __init__(self, options, facts):
        """`facts`: what the results should say beside the runs."""
        super().__init__(options)
        self._facts = facts

    def facts(self):
        return {"ranks": self.options.ranks, **self._facts}

    def forebay(self, *words):
        """Makes a data set."""
        self._make(self.command, *words)

    def generate(self, *words):
        """Likewise, with something to learn in it."""
        self._make(self.bench_command, "generate", *words)

    def _make(self, *words):
        os.makedirs(self.data, exist_ok=True)
        subprocess.run([*map(str, words)], check=True, stdout=sys.stderr)

    def identity(self, run):
        words = [word.replace(self.data + os.sep, "") for word in run.words]
        return f"{run.text()}: {' '.join(words)} on {run.ranks or self.options.ranks}"

    def measure(self, run):
        start = time.monotonic()
        epochs = self._train_by_program(run) if run.program else self._train_by_forebay(run)
        return {"group": run.group, "name": run.name, "seed": run.seed,
                "seconds": round(time.monotonic() - start, 1), "load": machine.load_average(),
                "epochs": epochs}

    def _launch(self, run, *words):
        return self.launch(run.ranks or self.options.ranks,
                           [*words, *run.words, "--seed", run.seed],
                           {"PYTHONPATH": os.path.join(self.build, "python")})

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

    def last(self, runs, figure):
        """{(group, name): [value of each seed]} after the last epoch, in the order of `runs`."""
        return {key: [epochs[-1] for epochs in seeds if epochs]
                for key, seeds in self._by_epoch(runs, figure).items() if any(seeds)}

    def epochs(self, runs, figure):
        """{(group, name): [mean over seeds after each epoch]}."""
        return {key: [statistics.mean(values) for values in zip(*seeds)]
                for key, seeds in self._by_epoch(runs, figure).items()}

    def _by_epoch(self, runs, figure):
        """{(group, name): [[value after each epoch] of each seed]}."""
        found = {}
        by_identity = {result["run"]: result for result in self.results}
        for run in runs:
            if result := by_identity.get(self.identity(run)):
                found.setdefault((run.group, run.name), []).append(
                    [epoch[figure] for epoch in result["epochs"]])
        return found

    def write_beside(self, suffix, text):
        """A file beside the results: figures."""
        path = os.path.splitext(self.output)[0] + suffix
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        print(f"wrote {path}", file=sys.stderr)

    def tell(self, text):
        """The tables, on standard output and beside the results."""
        print(text)
        self.write_beside(".md", text)


def spread(values, digits=4):
    """'mean (least-most)'"""
    mean = f"{statistics.mean(values):.{digits}f}"
    if len(values) == 1:
        return mean
    return f"{mean} ({min(values):.{digits}f}-{max(values):.{digits}f})"


def curves_svg(curves, label, name):
    """One line a (group, name), epochs against `label`, one panel a group."""
    sys.path.insert(0, os.path.join(measuring.ROOT, "bench", "command", "report"))
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
