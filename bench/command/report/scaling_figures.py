"""How strategies compare as ranks and nodes are added: figures 15a, 17a ... 22a and 23 to 27."""

import charts
from results import BASELINE, by_place, in_order, largest

_PAPER_SPEEDUPS = {"lmm-dm": 6.7, "lmm-dio": 17.18, "lmm-dio-prov": 19.44,
                   "lmm-dio-prov-coal": 21.86, "lmm-dio-prov-coal-stag": 81.05}


def _lines(axis, cells, figure_name, scale=1.0):
    strategies = in_order({name for cell in cells for name in cell.strategies()})
    for strategy in strategies:
        points = [(cell.ranks, cell.figure(strategy, figure_name)) for cell in cells]
        points = [(ranks, value * scale) for ranks, value in points if value is not None]
        if points:
            axis.plot(*zip(*points), label=strategy, **charts.style(strategy, strategies))
    charts.count_axis(axis, [cell.ranks for cell in cells])


def _measured(cells):
    return [cell for cell in cells if cell.result["summary"]]


def read_performance(results):
    return charts.draw(
        "read-performance", "Read performance by strategy",
        "With one reading process a node the paper reads up to 43.77 times as fast as LMDB's own "
        "mapping, up to 1,152 processes (TOPC 5.1.1, figure 15a; D 3.4.1, figure 3.6a), and each "
        "later step stays ahead of the one before on most scales (figures 17a to 22a).",
        by_place(_measured(results.read("strong", "single"))), _rates)


def _rates(axis, cells):
    _lines(axis, cells, "delivered_mb_per_second")
    limits = [(cell.ranks, cell.result["plain_mb_per_second"]["median"]) for cell in cells
              if cell.result.get("plain_mb_per_second")]
    if limits:
        axis.plot(*zip(*limits), color="gray", linestyle="--", label="plain preads (of file)")
    axis.set_ylabel("delivered MB/s")
    axis.set_ylim(bottom=0)
    cell = cells[-1]
    rates = {name: cell.figure(name, "delivered_mb_per_second") for name in cell.strategies()}
    best = max(rates, key=rates.get)
    share = cell.figure(best, "file_bytes_over_plain")
    return (f"{cell.place}, {cell.size}: {best} is fastest with {rates[best]:.0f} MB/s"
            + charts.times_the_baseline(best, rates)
            + (f" and {share:.2f} of the plain limit in bytes of the file" if share else "") + ".")


def ladder(results):
    cells = largest(_measured(results.read("strong", "single")))
    shown = {f"{place}\n{cell.size}": cell for place, cell in cells.items()
             if cell.row(BASELINE) and len(cell.strategies()) > 1}
    return charts.draw(
        "ladder", "Speed-up over the baseline, step by step",
        "On 4,608 processes the steps reach 6.7 (DM), 17.2 (DIO), 19.4 (PROV), 21.9 (COAL) and "
        "81.1 (STAG) times the speed of LMDB (TOPC 5.1.2 to 5.1.6).",
        shown and {**shown, "paper: Bebop, 4,608 processes": None}, _steps, width=3.6)


def _steps(axis, cell):
    """Of a cell, or of the paper."""
    speedups = _speedups(cell) if cell else {BASELINE: 1.0, **_PAPER_SPEEDUPS}
    charts.values_as_bars(axis, speedups, "%.2f")
    axis.axvline(1, color="gray", linewidth=0.8)
    axis.set_xlabel(f"times {BASELINE}")
    if not cell:
        return ""
    best = max(speedups, key=speedups.get)
    hindered = [f"{name} ({value:.2f})" for name, value in speedups.items() if value < 0.95]
    return (f"{cell.place}, {cell.size}: at most {speedups[best]:.2f} times {BASELINE} ({best})"
            + ("; slower than it: " + ", ".join(hindered) if hindered else "") + ".")


def _speedups(cell):
    base = cell.figure(BASELINE, "delivered_mb_per_second")
    return {name: cell.figure(name, "delivered_mb_per_second") / base
            for name in in_order(cell.strategies())}


def strong_scaling(results):
    return _scaling(results, ("strong",), "strong-scaling", "Strong scaling: fixed work, more ranks",
                    "Training time of Caffe/LMDB stops falling while LMDBIO's goes on; with all "
                    "steps it is nearly 65 times shorter on 9,216 processes for CIFAR10-Large and "
                    "about 1.6 times for ImageNet-Large (TOPC 5.2, figures 24 and 25; D 5.3.2).")


def weak_scaling(results):
    return _scaling(results, ("weak",), "weak-scaling",
                    "Weak scaling: two samples a rank, total constant",
                    "With two samples a process and the same samples in all, the gain over LMDB "
                    "reaches 43 times for CIFAR10-Large and 1.9 times for ImageNet-Large (TOPC 5.3, "
                    "figures 26 and 27; D 5.3.3).")


def _scaling(results, kinds, name, title, paper):
    return charts.draw(name, title, paper, by_place(_measured(results.read(*kinds))), _seconds)


def _seconds(axis, cells):
    _lines(axis, cells, "seconds")
    axis.set_ylabel("seconds for all samples")
    axis.set_ylim(bottom=0)
    first, last = cells[0], cells[-1]
    changes = []
    for name in in_order(last.strategies()):
        before, after = first.figure(name, "seconds"), last.figure(name, "seconds")
        if before and after:
            changes.append(f"{name} {after / before:.2f}")
    if not changes or first is last:
        return f"{last.place}: measured on {last.size} only."
    return (f"{last.place}: time on {last.size} as a multiple of that on {first.size}: "
            + ", ".join(changes) + ".")
