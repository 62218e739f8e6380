#!/usr/bin/python3
"""What the order of samples does to accuracy: LeNet on Fashion-MNIST, everything else the same.

  bench/accuracy_by_order.py --build build/release                   an hour and a half on one core
  bench/accuracy_by_order.py --build build/release --quick           to see that it works
  bench/accuracy_by_order.py --build build/release --loaders --seeds 8 --epochs 2     ten minutes

With --loaders: examples/python/fashion_mnist.py with torch's DataLoader and with Forebay, on one rank
and on four at the same global batch, and Welch's test of the difference (needs scipy, and a build
with -DFOREBAY_PYTHON=ON).

Orders: shuffled, also with 4, 16 and 256 neighbours kept together; grouped with several group
sizes; in_memory with R = 1, 0.5, 0.25 of the data set in memory; strided, the same in every epoch.
`stored` is the data set as published, whose classes are mixed; `sorted` has them one after the
other, as data sets that were collected class by class do, and shows what too little mixing costs.

The table (Markdown) and the curves (SVG) go beside the results, means with least and most of the
seeds. Results can be continued: what is in the file is not trained again.
"""

import gzip
import os
import statistics
import sys

import trainings
from measuring import ROOT, markdown

SOURCE = "/usr/share/datasets/fashion-mnist"  # Debian: dataset-fashion-mnist
DATA = ("stored", "sorted")
_IMAGE_BYTES = 28 * 28


def orders(samples):
    """{name: words}; groups are parts of the data set, so that short runs see the same orders."""
    found = {"shuffled": ("--order", "shuffled")}
    for keep in (4, 16, 256):
        found[f"shuffled, keep {keep}"] = ("--order", "shuffled", "--keep", str(keep))
    for part in (1000, 100, 10):
        group = max(1, samples // part)
        found[f"grouped, N/{part}"] = ("--order", "grouped", "--group", str(group))
    for ratio in ("1", "0.5", "0.25"):
        found[f"in memory, R = {ratio}"] = ("--order", "in_memory", "--memory-ratio", ratio)
    found["strided"] = ("--order", "strided", "--coalesce", "1")
    return found


def packed(work, split, count):
    """The data set as published, or its first `count` samples; packed if it is not there."""
    name = os.path.join(work.data, f"fashion-{split}-{count or 'all'}.lmdb")
    if not os.path.exists(name):
        some = ("--count", count) if count else ()
        work.forebay("pack", SOURCE, name, "--from", "idx", "--split", split, *some)
    return name


def packed_by_class(work, count):
    """The training set with its classes one after the other."""
    name = os.path.join(work.data, f"fashion-sorted-{count or 'all'}.lmdb")
    if os.path.exists(name):
        return name
    images, labels = (_read_idx(f"train-{part}-ubyte", header)
                      for part, header in (("images-idx3", 16), ("labels-idx1", 8)))
    chosen = sorted(range(count or len(labels)), key=lambda i: labels[i])
    os.makedirs(work.data, exist_ok=True)
    with open(name + ".images", "wb") as file:
        for i in chosen:
            file.write(images[i * _IMAGE_BYTES:(i + 1) * _IMAGE_BYTES])
    with open(name + ".labels", "w", encoding="ascii") as file:
        file.writelines(f"{labels[i]}\n" for i in chosen)
    work.forebay("pack", name + ".images", name, "--from", "raw", "--shape", "1x28x28", "--labels",
                 name + ".labels")
    os.remove(name + ".images")
    os.remove(name + ".labels")
    return name


def _read_idx(name, header):
    file = os.path.join(SOURCE, name)
    opener, file = (open, file) if os.path.exists(file) else (gzip.open, file + ".gz")
    with opener(file, "rb") as stream:
        return stream.read()[header:]


def table(work, runs):
    accuracy, losses = work.last(runs, "test_accuracy"), work.last(runs, "test_loss")
    rows = []
    for (group, name), values in accuracy.items():
        shuffled = accuracy.get((group, "shuffled"), values)
        against = 100 * (statistics.mean(values) - statistics.mean(shuffled))
        rows.append((group, name, trainings.spread(values), f"{against:+.2f} points",
                     trainings.spread(losses[group, name])))
    return markdown(("data", "order", "test accuracy", "against shuffled", "test loss"), rows)


def by_loader(options):
    """DataLoader and Forebay in the same program."""
    count, epochs, seeds = (6400, 1, 2) if options.quick else (None, options.epochs, options.seeds)
    work = trainings.Trainings(options, {"batch": options.batch, "epochs": epochs})
    program = os.path.join(ROOT, "examples", "python", "fashion_mnist.py")
    dataset, test = packed(work, "train", None), packed(work, "test", None)
    runs = []
    for seed in range(1, seeds + 1):
        for ranks in (1, 4):
            for loader in ("dataloader", "forebay"):
                some = ("--samples", str(count)) if count else ()
                runs.append(trainings.Run(
                    f"{ranks} rank{'s' * (ranks > 1)}", loader, seed,
                    (dataset, test, "--loader", loader, "--epochs", str(epochs), "--batch-size",
                     str(options.batch // ranks), *some),
                    program=("/usr/bin/python3", program), ranks=ranks))
    work.run(runs)
    return work, table_by_loader(work.last(runs, "test_accuracy"))


def table_by_loader(accuracy):
    from scipy import stats
    rows = []
    for (group, name), values in accuracy.items():
        deviation = f"{100 * statistics.stdev(values):.2f} points"
        row = (group, name, trainings.spread(values), deviation)
        if name == "dataloader":
            rows.append((*row, "", ""))
            continue
        base = accuracy[group, "dataloader"]
        test = stats.ttest_ind(values, base, equal_var=False)
        errors = [statistics.variance(each) / len(each) for each in (values, base)]
        freedom = sum(errors) ** 2 / sum(error ** 2 / (len(each) - 1)
                                         for error, each in zip(errors, (values, base)))
        half = 100 * stats.t.ppf(0.975, freedom) * sum(errors) ** 0.5
        difference = 100 * (statistics.mean(values) - statistics.mean(base))
        rows.append((*row, f"{difference:+.2f} ({difference - half:+.2f} to "
                     f"{difference + half:+.2f}) points", f"t = {test.statistic:.2f}, {freedom:.1f} "
                     f"degrees of freedom, p = {test.pvalue:.2f}"))
    return markdown(("", "loader", "test accuracy: mean (least-most)", "standard deviation",
                     "difference of means, 95 % interval", "Welch's test"), rows)


def main():
    parser = trainings.parser(__doc__, "accuracy_by_order")
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--data-sets", nargs="+", choices=DATA, default=list(DATA))
    parser.add_argument("--loaders", action="store_true", help="compare loaders, not orders")
    options = parser.parse_args()
    if options.loaders:
        options.results = "accuracy_by_loader"
        work, text = by_loader(options)
        work.tell(text)
        return 1 if work.failures else 0
    count, epochs, seeds = ((2000, 2, 1) if options.quick
                            else (None, options.epochs, options.seeds))
    work = trainings.Trainings(options, {"net": "lenet", "batch": options.batch, "epochs": epochs})
    test = packed(work, "test", count and count // 4)
    runs = []
    for data in options.data_sets:
        dataset = packed(work, "train", count) if data == "stored" else packed_by_class(work, count)
        for seed in range(1, seeds + 1):
            for name, words in orders(count or 60_000).items():
                runs.append(trainings.Run(data, name, seed, (
                    dataset, "--test", test, "--net", "lenet", "--batch", str(options.batch),
                    "--epochs", str(epochs), "--mean", "73", "--scale", "0.011", "--lr", "0.02",
                    "--lr-policy", "inv", "--gamma", "0.002", *words)))
    work.run(runs)
    work.tell(table(work, runs))
    work.write_beside(".svg", trainings.curves_svg(work.epochs(runs, "test_accuracy"),
                                                   "test accuracy", "accuracy"))
    return 1 if work.failures else 0


if __name__ == "__main__":
    sys.exit(main())
