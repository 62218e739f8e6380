"""Training over the same ladder: images a second, and where the time goes."""

import charts
from page import Figure
from results import BASELINE, in_order

_PARTS = ("read", "skew", "compute", "sync", "other")


def _title(cell):
    shape = f"{cell.ranks} x {cell.result['threads']} threads"
    return f"{cell.result['net']}, {cell.data}\n{cell.nodes} nodes, {shape}"


def _bars_axis(axis, names):
    axis.set_yticks(range(len(names)))
    axis.set_yticklabels(names)
    axis.invert_yaxis()


def throughput(results):
    title = "Training: images a second"
    paper = ("Caffe with all steps trains nearly 65 times as fast as Caffe/LMDB on 9,216 processes "
             "with CIFAR10-Large, about 1.6 times with ImageNet-Large; one multithreaded process a "
             "node wastes cores outside of the matrix library (TOPC 5.2, figures 24 and 25).")
    cells = results.train()
    if not cells:
        return Figure("train-throughput", title, "", paper, "Not measured.")
    titles = {_title(cell): cell for cell in cells}
    figure, axes = charts.panels(list(titles), width=3.8)
    sentences = []
    for panel, cell in titles.items():
        names = in_order(cell.strategies())
        rates = [cell.figure(name, "images_per_second") for name in names]
        bars = axes[panel].barh(range(len(names)), rates,
                                color=[charts.style(name, names)["color"] for name in names])
        axes[panel].bar_label(bars, fmt="%.0f", padding=2, fontsize=8)
        axes[panel].margins(x=0.18)
        axes[panel].set_xlabel("images/s")
        _bars_axis(axes[panel], names)
        sentences.append(_rates_sentence(panel, dict(zip(names, rates))))
    return Figure("train-throughput", title, charts.to_svg(figure, "train-throughput"), paper,
                  " ".join(sentences))


def _rates_sentence(panel, rates):
    best = max(rates, key=rates.get)
    text = f"{panel.replace(chr(10), ', ')}: {best} trains {rates[best]:.0f} images/s"
    if rates.get(BASELINE) and best != BASELINE:
        text += f", {rates[best] / rates[BASELINE]:.2f} times {BASELINE}"
    return text + "."


def time_breakdown(results):
    title = "Training: where the time goes"
    paper = ("Reading takes 90 % of Caffe/LMDB's time on 9,216 processes and 56 % with LMM "
             "(D 3.4.2, figures 3.1b and 3.10b).")
    cells = results.train()
    if not cells:
        return Figure("train-breakdown", title, "", paper, "Not measured.")
    titles = {_title(cell): cell for cell in cells}
    figure, axes = charts.panels(list(titles), width=4.2)
    sentences = []
    for panel, cell in titles.items():
        names = in_order(cell.strategies())
        left = [0.0] * len(names)
        for part in _PARTS:
            values = [cell.figure(name, f"{part}_seconds") or 0.0 for name in names]
            axes[panel].barh(range(len(names)), values, left=left, color=charts.PARTS[part],
                             label=part)
            left = [a + b for a, b in zip(left, values)]
        axes[panel].set_xlabel("seconds, mean of the ranks")
        _bars_axis(axes[panel], names)
        shares = [f"{name} {100 * (cell.figure(name, 'read_seconds') or 0) / max(total, 1e-9):.1f} %"
                  for name, total in zip(names, left)]
        sentences.append(f"{panel.replace(chr(10), ', ')}: time spent reading: "
                         + ", ".join(shares) + ".")
    charts.legend_below(figure, axes.values())
    return Figure("train-breakdown", title, charts.to_svg(figure, "train-breakdown"), paper,
                  " ".join(sentences))
