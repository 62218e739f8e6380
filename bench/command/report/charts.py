"""What the figures share: colours, panels, and SVG that can stand in a page beside other SVG."""

import io
import logging
import re

# Where it keeps its cache is of no interest to readers of a report.
logging.getLogger("matplotlib").setLevel(logging.ERROR)

import matplotlib  # noqa: E402

matplotlib.use("svg")
import matplotlib.pyplot as plot  # noqa: E402  (the backend must be chosen first)

from page import Figure  # noqa: E402
from results import BASELINE, LADDER, in_order  # noqa: E402

plot.rcParams.update({
    "svg.fonttype": "none",  # text stays text: small, and it can be searched
    "font.size": 9, "axes.spines.top": False, "axes.spines.right": False,
    "axes.grid": True, "grid.alpha": 0.25, "legend.frameon": False,
})

# Distinguishable without colour vision (Okabe and Ito's palette).
_PALETTE = ("#000000", "#e69f00", "#56b4e9", "#009e73", "#f0e442", "#0072b2", "#d55e00", "#cc79a7")
_MARKERS = "osv^D<>p"
PARTS = {"open": "#999933", "seek": "#cc79a7", "read": "#0072b2", "turn": "#f0e442",
         "wait": "#bbbbbb", "skew": "#d55e00", "compute": "#009e73",
         "sync": "#e69f00", "other": "#dddddd"}


def style(strategy, strategies=()):
    """Colour and marker of a strategy: the same in every figure."""
    names = list(LADDER) + [name for name in in_order(strategies) if name not in LADDER]
    index = names.index(strategy) if strategy in names else len(names)
    return {"color": _PALETTE[index % len(_PALETTE)], "marker": _MARKERS[index % len(_MARKERS)],
            "markersize": 4, "linewidth": 1.2}


def panels(titles, height=3.0, width=4.2, columns=3):
    """A figure with one axis a title; yields (figure, {title: axis})."""
    columns = min(columns, len(titles))
    rows = -(-len(titles) // columns)
    figure, grid = plot.subplots(rows, columns, figsize=(width * columns, height * rows),
                                 squeeze=False)
    axes = [axis for row in grid for axis in row]
    for unused in axes[len(titles):]:
        unused.set_visible(False)
    for title, axis in zip(titles, axes):
        axis.set_title(title, fontsize=9)
    return figure, dict(zip(titles, axes))


def draw(name, title, paper, shown, panel, joined=" ", **shape):
    """The figure with a panel for each of `shown`, {its title: what it shows}. panel(axis, what) draws
    one, and returns what there is to say of it."""
    if not shown:
        return Figure(name, title, "", paper, "Not measured.")
    figure, axes = panels(list(shown), **shape)
    sentences = [panel(axes[title], what) for title, what in shown.items()]
    legend_below(figure, axes.values())
    return Figure(name, title, to_svg(figure, name), paper, joined.join(filter(None, sentences)))


def bars_of(axis, names):
    """Horizontal bars, one a name, the first at the top."""
    axis.set_yticks(range(len(names)))
    axis.set_yticklabels(names)
    axis.invert_yaxis()


def values_as_bars(axis, values, form):
    """{strategy: number} with the numbers beside the bars."""
    names = list(values)
    bars = axis.barh(range(len(names)), values.values(),
                     color=[style(name, names)["color"] for name in names])
    axis.bar_label(bars, fmt=form, padding=2, fontsize=8)
    axis.margins(x=0.18)
    bars_of(axis, names)


def parts_as_bars(axis, cell, names, parts):
    """Seconds of each part, one behind the other; returns their sums, by name."""
    left = [0.0] * len(names)
    for part in parts:
        values = [cell.figure(name, f"{part}_seconds") or 0.0 for name in names]
        axis.barh(range(len(names)), values, left=left, color=PARTS[part],
                  label="wait for buffer" if part == "wait" else part)
        left = [a + b for a, b in zip(left, values)]
    axis.set_xlabel("seconds, mean of the ranks")
    bars_of(axis, names)
    return left


def times_the_baseline(best, values):
    """", 2.00 times lmdb", where both are there."""
    if not values.get(BASELINE) or best == BASELINE:
        return ""
    return f", {values[best] / values[BASELINE]:.2f} times {BASELINE}"


def legend_below(figure, axes):
    """One legend for all panels, each name once."""
    found = {}
    for axis in axes:
        for handle, label in zip(*axis.get_legend_handles_labels()):
            found.setdefault(label, handle)
    if found:
        names = in_order(list(found))
        figure.legend([found[name] for name in names], names, loc="upper center",
                      bbox_to_anchor=(0.5, 0.0), ncol=min(5, len(names)))


def count_axis(axis, values):
    """A logarithmic axis that shows the measured numbers of ranks."""
    axis.set_xscale("log", base=2)
    axis.set_xticks(sorted(set(values)))
    axis.set_xticklabels([str(value) for value in sorted(set(values))])
    axis.minorticks_off()
    axis.set_xlabel("ranks")


def to_svg(figure, name):
    """The figure as an SVG element whose identifiers begin with `name`."""
    text = io.StringIO()
    figure.tight_layout()
    with plot.rc_context({"svg.hashsalt": name}):
        figure.savefig(text, format="svg", bbox_inches="tight", metadata={"Date": None})
    plot.close(figure)
    svg = text.getvalue()
    svg = svg[svg.index("<svg"):]
    svg = re.sub(r'\bid="', f'id="{name}-', svg)
    svg = svg.replace("url(#", f"url(#{name}-").replace('href="#', f'href="#{name}-')
    return re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
