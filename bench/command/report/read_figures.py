"""Why strategies differ: times, seeks, switches, redundant bytes, speculation, block sizes."""

import statistics

import charts
from page import Figure
from results import BASELINE, by_place, in_order, largest

_SPECULATED = {"missed": "#d55e00", "redundant": "#0072b2"}
_PARTS = ("open", "seek", "read", "turn", "wait", "skew")


def _largest_measured(results):
    return {place: cell for place, cell in largest(results.read("strong", "single")).items()
            if cell.result["summary"]}


def time_breakdown(results):
    cells = _largest_measured(results)
    title = "Where the reading ranks' time goes"
    paper = ("LMM spends nearly 60 % of its read time in the sequential seek, DM less than 1 %, DIO "
             "nearly 20 %; PROV removes the seek, COAL leaves about 25 % of skew, and STAG shows "
             "more skew on purpose, since groups wait for their turn (TOPC figures 15c, 17b to "
             "22b; D 4.3.1, figure 4.6b).")
    if not cells:
        return Figure("time-breakdown", title, "", paper, "Not measured.")
    titles = {f"{place}\n{cell.size}": cell for place, cell in cells.items()}
    figure, axes = charts.panels(list(titles), width=4.6)
    for panel, cell in titles.items():
        _stack(axes[panel], cell)
    charts.legend_below(figure, axes.values())
    return Figure("time-breakdown", title, charts.to_svg(figure, "time-breakdown"), paper,
                  " ".join(_seek_shares(place, cell) for place, cell in cells.items()))


def _stack(axis, cell):
    names = in_order(cell.strategies())
    left = [0.0] * len(names)
    for part in _PARTS:
        values = [cell.figure(name, f"{part}_seconds") or 0.0 for name in names]
        axis.barh(range(len(names)), values, left=left, color=charts.PARTS[part],
                  label="wait for buffer" if part == "wait" else part)
        left = [a + b for a, b in zip(left, values)]
    axis.plot([cell.figure(name, "seconds") for name in names], range(len(names)), "k|",
              markersize=9, label="run, open to end")
    axis.set_yticks(range(len(names)))
    axis.set_yticklabels(names)
    axis.invert_yaxis()
    axis.set_xlabel("seconds, mean of the ranks")


def _seek_shares(place, cell):
    shares = []
    for name in in_order(cell.strategies()):
        parts = [cell.figure(name, f"{part}_seconds") or 0.0 for part in ("seek", "read", "skew")]
        if sum(parts) > 0:
            shares.append(f"{name} {100 * parts[0] / sum(parts):.0f}/{100 * parts[1] / sum(parts):.0f}"
                          f"/{100 * parts[2] / sum(parts):.0f}")
    return (f"{place}, {cell.size}: seek/read/skew in per cent of their sum: "
            + ", ".join(shares) + ".")


def seek_by_rank(results):
    title = "Seek time by rank of the reader"
    paper = ("When nothing but the seek is done, it takes longer the higher the rank of the root "
             "process: everyone walks over the shares of those before it, and those who finish "
             "early prefetch for their next turn (TOPC 5.1.1, figure 16a; D 3.4.1, figure 3.7a).")
    cells = [cell for cell in results.read() if cell.result.get("seek_only")]
    if not cells:
        return Figure("seek-by-rank", title, "", paper, "Not measured.")
    places = {place: found[-1] for place, found in by_place(cells).items()}
    figure, axes = charts.panels(list(places))
    sentences = []
    for place, cell in places.items():
        for engine, color in (("liblmdb", "#000000"), ("mmap", "#e69f00")):
            seconds = _seek_seconds(cell, engine)
            axes[place].plot(list(seconds), [1e3 * value for value in seconds.values()],
                             "o-", markersize=3, color=color, label=f"seek only, {engine}")
            if engine == "liblmdb" and len(seconds) > 1:
                sentences.append(_rise(place, cell, seconds))
        axes[place].set(xlabel="rank", ylabel="milliseconds", ylim=(0, None))
    charts.legend_below(figure, axes.values())
    return Figure("seek-by-rank", title, charts.to_svg(figure, "seek-by-rank"), paper,
                  " ".join(sentences) or "Measured on one rank only.")


def _seek_seconds(cell, engine):
    values = {}
    for run in cell.result["seek_only"]:
        if run["engine"] == engine:
            values.setdefault(run["rank"], []).append(run["seconds"])
    return {rank: statistics.median(found) for rank, found in sorted(values.items())}


def _rise(place, cell, seconds):
    ranks = list(seconds)
    first, last = seconds[ranks[0]], seconds[ranks[-1]]
    return (f"{place}, {cell.size}: with liblmdb rank {ranks[-1]} seeks {1e3 * last:.1f} ms, "
            f"{last / first:.2f} times as long as rank {ranks[0]} ({1e3 * first:.1f} ms).")


def context_switches(results):
    title = "Context switches"
    paper = ("One reading process a node brings more than 83 times fewer context switches than LMDB "
             "in some cases (TOPC 5.1.1, figure 15b; D 3.4.1, figure 3.8).")
    places = by_place([cell for cell in results.read("strong", "single")
                       if cell.result["summary"]])
    if not places:
        return Figure("context-switches", title, "", paper, "Not measured.")
    figure, axes = charts.panels(list(places))
    sentences = []
    for place, cells in places.items():
        strategies = in_order({name for cell in cells for name in cell.strategies()})
        for name in strategies:
            points = [(cell.ranks, _switches(cell, name)) for cell in cells if cell.row(name)]
            axes[place].plot(*zip(*points), label=name, **charts.style(name, strategies))
        charts.count_axis(axes[place], [cell.ranks for cell in cells])
        axes[place].set_yscale("log")
        axes[place].set_ylabel("switches, all ranks")
        sentences.append(_fewest(place, cells[-1]))
    charts.legend_below(figure, axes.values())
    return Figure("context-switches", title, charts.to_svg(figure, "context-switches"), paper,
                  " ".join(sentences))


def _switches(cell, name):
    return cell.figure(name, "voluntary_switches") + cell.figure(name, "involuntary_switches")


def _fewest(place, cell):
    counts = {name: _switches(cell, name) for name in cell.strategies()}
    best = min(counts, key=counts.get)
    text = f"{place}, {cell.size}: fewest with {best} ({counts[best]:,.0f})"
    if BASELINE in counts and best != BASELINE:
        text += f", {BASELINE} has {counts[BASELINE] / max(1, counts[best]):.1f} times as many"
    return text + "."


def extra_bytes(results):
    title = "Bytes read and not needed, by rank"
    paper = ("LMM reads pages again that other processes have read, because it has to seek over "
             "them: up to 4 GB in all, nearly in proportion to the number of processes, and more "
             "for 3 KB records than for 192 KB ones (TOPC 3.3.2, figure 7; D 4.1.1, figure 4.2).")
    cells = _largest_measured(results)
    if not cells:
        return Figure("extra-bytes", title, "", paper, "Not measured.")
    titles = {f"{place}\n{cell.size}": cell for place, cell in cells.items()}
    figure, axes = charts.panels(list(titles))
    for panel, cell in titles.items():
        strategies = in_order(cell.strategies())
        for name in strategies:
            extra = cell.by_rank(name, "extra_bytes")
            if extra:
                axes[panel].plot(list(extra), [value / 1e6 for value in extra.values()], label=name,
                                 **charts.style(name, strategies))
        axes[panel].set(xlabel="reading rank", ylabel="MB asked for beyond its share")
    charts.legend_below(figure, axes.values())
    return Figure("extra-bytes", title, charts.to_svg(figure, "extra-bytes"), paper,
                  " ".join(_extra_sentence(place, cell) for place, cell in cells.items()))


def _extra_sentence(place, cell):
    totals = {name: sum(cell.by_rank(name, "extra_bytes").values())
              for name in in_order(cell.strategies())}
    return (f"{place}, {cell.size}, MB over all ranks, page padding included: "
            + ", ".join(f"{name} {total / 1e6:.1f}" for name, total in totals.items()) + ".")


def speculation(results):
    title = "Pages that speculation missed, and pages it read in vain"
    paper = ("DM misses fewer than 700 pages on 512 processes for CIFAR10-Large and fewer than 200 "
             "for ImageNet, all in the first iterations, and its redundant pages grow until the "
             "guess covers what comes (D 4.3.3, figures 4.10 and 4.11).")
    cells = [cell for cell in results.read("strong", "weak", "single")
             if cell.figure("lmm-dm", "missed_pages") is not None]
    if not cells:
        return Figure("speculation", title, "", paper, "Not measured.")
    places = by_place([cell for cell in cells if cell.scaling != "weak"] or cells)
    courses = {f"{place}\n{cell.size}": course for place, cell in largest(cells).items()
               if (course := _course(cell))}
    figure, axes = charts.panels([*places, *courses])
    sentences = []
    for place, found in places.items():
        for name, color in _SPECULATED.items():
            axes[place].plot([cell.ranks for cell in found],
                             [cell.figure("lmm-dm", f"{name}_pages") for cell in found], "o-",
                             color=color, label=f"{name} pages")
        charts.count_axis(axes[place], [cell.ranks for cell in found])
        axes[place].set(ylabel="pages, all readers", ylim=(0, None))
        last = found[-1]
        sentences.append(f"{place}, {last.size}: {last.figure('lmm-dm', 'missed_pages'):,.0f} "
                         f"missed, {last.figure('lmm-dm', 'redundant_pages'):,.0f} in vain.")
    for panel, course in courses.items():
        for name, color in _SPECULATED.items():
            axes[panel].plot(range(1, 1 + len(course[name])), course[name], color=color,
                             label=f"{name} pages")
        axes[panel].set(xlabel="iteration", ylabel="pages so far", ylim=(0, None))
    charts.legend_below(figure, axes.values())
    return Figure("speculation", title, charts.to_svg(figure, "speculation"), paper,
                  " ".join(sentences))


def _course(cell):
    """Pages missed and in vain by iteration, or None."""
    return next((one.get("speculation") for one in cell.result.get("verified", [])
                 if one["strategy"] == "lmm-dm"), None)


def block_sizes(results):
    title = "mmap against pread over the block size"
    paper = ("pread gets faster with larger blocks while mmap stays where it is, about 2.5 times "
             "below pread already at 4 KB (TOPC 3.3.3 and 3.3.4, figure 8; D 5.1.2, figure 5.1).")
    cells = [cell for cell in results.read() if cell.result.get("block_sizes")]
    if not cells:
        return Figure("block-sizes", title, "", paper, "Not measured.")
    places = {place: found[-1] for place, found in by_place(cells).items()}
    figure, axes = charts.panels(list(places))
    sentences = []
    for place, cell in places.items():
        rates = {engine: _block_rates(cell, engine) for engine in ("mmap", "pread")}
        for engine, color in (("mmap", "#e69f00"), ("pread", "#0072b2")):
            axes[place].plot(list(rates[engine]), list(rates[engine].values()), "o-", markersize=3,
                             color=color, label=engine)
        axes[place].set_xscale("log", base=2)
        axes[place].set(xlabel="bytes of a block", ylabel="MB/s", ylim=(0, None))
        sentences.append(_block_sentence(place, rates))
    charts.legend_below(figure, axes.values())
    return Figure("block-sizes", title, charts.to_svg(figure, "block-sizes"), paper,
                  " ".join(sentences))


def _block_rates(cell, engine):
    return {run["block"]: run["bytes"] / run["seconds"] / 1e6
            for run in cell.result["block_sizes"] if run["engine"] == engine}


def _block_sentence(place, rates):
    smallest = min(rates["pread"])
    best = max(rates["pread"], key=rates["pread"].get)
    flat = max(rates["mmap"].values()) / min(rates["mmap"].values())
    return (f"{place}: at {smallest >> 10} KiB pread reads "
            f"{rates['pread'][smallest] / rates['mmap'][smallest]:.2f} times as fast as mmap, at its "
            f"best block of {best >> 10} KiB {rates['pread'][best] / rates['mmap'][best]:.2f} times; "
            f"mmap's fastest and slowest block differ {flat:.2f} times.")
