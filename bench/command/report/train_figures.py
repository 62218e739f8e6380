"""Training over the same ladder: images a second, and where the time goes."""

import charts
from results import in_order

_PARTS = ("read", "skew", "compute", "sync", "other")


def _title(cell):
    shape = f"{cell.ranks} x {cell.result['threads']} threads"
    return f"{cell.result['net']}, {cell.data}\n{cell.nodes} nodes, {shape}"


def _draw(results, name, title, paper, panel, **shape):
    return charts.draw(name, title, paper, {_title(cell): cell for cell in results.train()}, panel,
                       **shape)


def throughput(results):
    return _draw(results, "train-throughput", "Training: images a second",
                 "Caffe with all steps trains nearly 65 times as fast as Caffe/LMDB on 9,216 "
                 "processes with CIFAR10-Large, about 1.6 times with ImageNet-Large; one "
                 "multithreaded process a node wastes cores outside of the matrix library (TOPC "
                 "5.2, figures 24 and 25).", _rates, width=3.8)


def _rates(axis, cell):
    rates = {name: cell.figure(name, "images_per_second") for name in in_order(cell.strategies())}
    charts.values_as_bars(axis, rates, "%.0f")
    axis.set_xlabel("images/s")
    best = max(rates, key=rates.get)
    return (f"{_title(cell).replace(chr(10), ', ')}: {best} trains {rates[best]:.0f} images/s"
            f"{charts.times_the_baseline(best, rates)}.")


def time_breakdown(results):
    return _draw(results, "train-breakdown", "Training: where the time goes",
                 "Reading takes 90 % of Caffe/LMDB's time on 9,216 processes and 56 % with LMM "
                 "(D 3.4.2, figures 3.1b and 3.10b).", _times, width=4.2)


def _times(axis, cell):
    names = in_order(cell.strategies())
    totals = charts.parts_as_bars(axis, cell, names, _PARTS)
    shares = [f"{name} {100 * (cell.figure(name, 'read_seconds') or 0) / max(total, 1e-9):.1f} %"
              for name, total in zip(names, totals)]
    return (f"{_title(cell).replace(chr(10), ', ')}: time spent reading: " + ", ".join(shares)
            + ".")
