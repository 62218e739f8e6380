"""How strategies compare as ranks and nodes are added: figures 15a, 17a ... 22a and 23 to 27."""

import charts
from page import Figure
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
    places = by_place(_measured(results.read("strong", "single")))
    paper = ("With one reading process a node the paper reads up to 43.77 times as fast as LMDB's "
             "own mapping, up to 1,152 processes (TOPC 5.1.1, figure 15a; D 3.4.1, figure 3.6a), "
             "and each later step stays ahead of the one before on most scales (figures 17a to "
             "22a).")
    if not places:
        return Figure("read-performance", "Read performance by strategy", "", paper,
                      "Not measured.")
    figure, axes = charts.panels(list(places))
    for place, cells in places.items():
        axis = axes[place]
        _lines(axis, cells, "delivered_mb_per_second")
        limits = [(cell.ranks, cell.result["plain_mb_per_second"]["median"]) for cell in cells
                  if cell.result.get("plain_mb_per_second")]
        if limits:
            axis.plot(*zip(*limits), color="gray", linestyle="--", label="plain preads (of file)")
        axis.set_ylabel("delivered MB/s")
        axis.set_ylim(bottom=0)
    charts.legend_below(figure, axes.values())
    return Figure("read-performance", "Read performance by strategy",
                  charts.to_svg(figure, "read-performance"), paper, _best_by_place(places))


def _best_by_place(places):
    sentences = []
    for place, cells in places.items():
        cell = cells[-1]
        rates = {name: cell.figure(name, "delivered_mb_per_second") for name in cell.strategies()}
        best = max(rates, key=rates.get)
        text = f"{place}, {cell.size}: {best} is fastest with {rates[best]:.0f} MB/s"
        if rates.get(BASELINE) and best != BASELINE:
            text += f", {rates[best] / rates[BASELINE]:.2f} times {BASELINE}"
        share = cell.figure(best, "file_bytes_over_plain")
        if share:
            text += f" and {share:.2f} of the plain limit in bytes of the file"
        sentences.append(text)
    return "; ".join(sentences) + "."


def ladder(results):
    cells = largest(_measured(results.read("strong", "single")))
    cells = {place: cell for place, cell in cells.items()
             if cell.row(BASELINE) and len(cell.strategies()) > 1}
    paper = ("On 4,608 processes the steps reach 6.7 (DM), 17.2 (DIO), 19.4 (PROV), 21.9 (COAL) and "
             "81.1 (STAG) times the speed of LMDB (TOPC 5.1.2 to 5.1.6).")
    if not cells:
        return Figure("ladder", "Speed-up over the baseline, step by step", "", paper,
                      "Not measured.")
    titles = [f"{place}\n{cell.size}" for place, cell in cells.items()]
    figure, axes = charts.panels([*titles, "paper: Bebop, 4,608 processes"], width=3.6)
    sentences = []
    for title, (place, cell) in zip(titles, cells.items()):
        speedups = _speedups(cell)
        _bars(axes[title], speedups)
        best = max(speedups, key=speedups.get)
        hindered = [name for name, value in speedups.items() if value < 0.95]
        text = f"{place}, {cell.size}: at most {speedups[best]:.2f} times {BASELINE} ({best})"
        if hindered:
            text += "; slower than it: " + ", ".join(
                f"{name} ({speedups[name]:.2f})" for name in hindered)
        sentences.append(text)
    _bars(axes["paper: Bebop, 4,608 processes"], {BASELINE: 1.0, **_PAPER_SPEEDUPS})
    return Figure("ladder", "Speed-up over the baseline, step by step",
                  charts.to_svg(figure, "ladder"), paper, ". ".join(sentences) + ".")


def _speedups(cell):
    base = cell.figure(BASELINE, "delivered_mb_per_second")
    return {name: cell.figure(name, "delivered_mb_per_second") / base
            for name in in_order(cell.strategies())}


def _bars(axis, speedups):
    names = list(speedups)
    bars = axis.barh(range(len(names)), speedups.values(),
                     color=[charts.style(name, names)["color"] for name in names])
    axis.bar_label(bars, fmt="%.2f", padding=2, fontsize=8)
    axis.set_yticks(range(len(names)))
    axis.set_yticklabels(names)
    axis.invert_yaxis()
    axis.margins(x=0.18)
    axis.axvline(1, color="gray", linewidth=0.8)
    axis.set_xlabel(f"times {BASELINE}")


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
    places = by_place(_measured(results.read(*kinds)))
    if not places:
        return Figure(name, title, "", paper, "Not measured.")
    figure, axes = charts.panels(list(places))
    sentences = []
    for place, cells in places.items():
        _lines(axes[place], cells, "seconds")
        axes[place].set_ylabel("seconds for all samples")
        axes[place].set_ylim(bottom=0)
        sentences.append(_change(place, cells))
    charts.legend_below(figure, axes.values())
    return Figure(name, title, charts.to_svg(figure, name), paper,
                  " ".join(sentence for sentence in sentences if sentence))


def _change(place, cells):
    first, last = cells[0], cells[-1]
    changes = []
    for name in in_order(last.strategies()):
        before, after = first.figure(name, "seconds"), last.figure(name, "seconds")
        if before and after:
            changes.append(f"{name} {after / before:.2f}")
    if not changes or first is last:
        return f"{place}: measured on {last.size} only."
    return (f"{place}: time on {last.size} as a multiple of that on {first.size}: "
            + ", ".join(changes) + ".")
