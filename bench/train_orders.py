#!/usr/bin/python3
"""Trains the two applications of paper 003 in order grouped and in order shuffled.

  bench/train_orders.py --build build/release            minutes; figures 3 and 4 of the paper
  bench/train_orders.py --build build/release --quick    to see that it works

Data come from `forebay-bench generate`, into HDF5 files. The table (Markdown, on standard output and
beside the results) shows losses after the last epoch, means with least and most of the seeds.
`ok` is what must hold: a validation loss below half of what predicting the mean gives, and grouped
within 5 % of shuffled. The exit status is 1 where it does not, or where a training fails. Needs
NumPy and h5py. Results can be continued: what is in the file is not trained again.
"""

import os
import statistics
import sys
from dataclasses import dataclass

import trainings
from measuring import markdown

LARGEST_PART = 0.5       # of the loss of predicting the mean
LARGEST_DIFFERENCE = 0.05


@dataclass(frozen=True)
class Application:
    name: str
    generate: tuple
    samples: int
    tests: int
    batch: int
    epochs: int
    rate: float
    drops: str   # epochs after which the rate falls, as in the paper
    group: int   # samples of a group

    def words(self, folder, order):
        words = [path(folder, self, "train"), "--test", path(folder, self, "test"), "--net",
                 self.name, "--batch", self.batch, "--epochs", self.epochs, "--lr", self.rate,
                 "--lr-epochs", self.drops, "--order", order]
        if order == "grouped":
            words += ["--group", self.group]
        return tuple(map(str, words))


def applications(quick):
    """Sizes at which a training takes some minutes on one core."""
    if quick:
        return [Application("cosmoflow", ("--side", 8, "--channels", 4), 64, 16, 16, 2, 0.0005, "1",
                            16),
                Application("neuron", ("--length", 400), 256, 64, 32, 2, 0.0005, "1", 32)]
    return [Application("cosmoflow", ("--side", 32, "--channels", 4), 512, 128, 16, 24, 0.0005,
                        "16,20", 32),
            Application("neuron", (), 3000, 600, 32, 12, 0.0005, "7,10", 100)]


def path(folder, application, part):
    size = application.samples if part == "train" else application.tests
    shape = "-".join(str(word).lstrip("-") for word in application.generate)
    return os.path.join(folder, f"{application.name}-{shape or 'full'}-{size}-{part}.h5")


def make_data(work, application):
    for seed, (part, count) in enumerate((("train", application.samples),
                                          ("test", application.tests)), 1):
        file = path(work.data, application, part)
        if not os.path.exists(file):
            work.generate(application.name, file, "--samples", count, "--seed", seed,
                          *application.generate)


def loss_of_the_mean(work, application):
    """Mean squared error on the test set of always saying the mean of the training set."""
    import h5py  # only who measures needs it
    targets = {}
    for part in ("train", "test"):
        with h5py.File(path(work.data, application, part), "r") as file:
            name = "unitPar" if "unitPar" in file else "y"
            targets[part] = file[name][:]
    return float(((targets["test"] - targets["train"].mean(axis=0)) ** 2).mean())


def table(work, runs, means):
    """(Markdown, whether all that must hold does)"""
    training, validation = work.last(runs, "loss"), work.last(runs, "test_loss")
    rows = []
    everything = not work.failures
    for (group, name), values in validation.items():
        part = statistics.mean(values) / means[group]
        shuffled = validation.get((group, "shuffled"))
        against = statistics.mean(values) / statistics.mean(shuffled) - 1 if shuffled else 0
        ok = part < LARGEST_PART and abs(against) <= LARGEST_DIFFERENCE
        everything = everything and ok
        rows.append((group, name, trainings.spread(training[group, name]),
                     trainings.spread(values), f"{part:.3f}", f"{against:+.1%}",
                     "yes" if ok else "no"))
    head = ("application", "order", "training loss", "validation loss", "of predicting the mean",
            "against shuffled", "ok")
    return markdown(head, rows), everything and bool(validation)


def main():
    parser = trainings.parser(__doc__, "train_orders")
    parser.add_argument("--applications", nargs="+", choices=("cosmoflow", "neuron"),
                        default=["cosmoflow", "neuron"])
    options = parser.parse_args()
    chosen = [application for application in applications(options.quick)
              if application.name in options.applications]
    means = {}
    work = trainings.Trainings(options, {"losses_of_the_mean": means})
    seeds = 1 if options.quick else options.seeds
    runs = []
    for application in chosen:
        make_data(work, application)
        means[application.name] = loss_of_the_mean(work, application)
        runs += [trainings.Run(application.name, order, seed, application.words(work.data, order))
                 for seed in range(1, seeds + 1) for order in ("shuffled", "grouped")]
    work.run(runs)
    text, ok = table(work, runs, means)
    work.tell(text)
    work.write_beside(".svg", trainings.curves_svg(work.epochs(runs, "test_loss"),
                                                   "validation loss", "orders"))
    return 0 if ok or (options.quick and not work.failures) else 1


if __name__ == "__main__":
    sys.exit(main())
