"""Why strategies differ: times, seeks, switches, redundant bytes, speculation, block sizes."""

import statistics

import charts
from results import BASELINE, by_place, in_order, largest

_SPECULATED = {"missed": "#d55e00", "redundant": "#0072b2"}
_PARTS = ("open", "seek", "read", "turn", "wait", "skew")


def _largest_measured(results):
    """{a title with place and size: the largest cell there}"""
    return {f"{place}\n{cell.size}": cell
            for place, cell in largest(results.read("strong", "single")).items()
            if cell.result["summary"]}


def time_breakdown(results):
    return charts.draw(
        "time-breakdown", "Where the reading ranks' time goes",
        "LMM spends nearly 60 % of its read time in the sequential seek, DM less than 1 %, DIO "
        "nearly 20 %; PROV removes the seek, COAL leaves about 25 % of skew, and STAG shows "
        "more skew on purpose, since groups wait for their turn (TOPC figures 15c, 17b to "
        "22b; D 4.3.1, figure 4.6b).", _largest_measured(results), _times, width=4.6)


def _times(axis, cell):
    names = in_order(cell.strategies())
    charts.parts_as_bars(axis, cell, names, _PARTS)
    axis.plot([cell.figure(name, "seconds") for name in names], range(len(names)), "k|",
              markersize=9, label="run, open to end")
    shares = []
    for name in names:
        parts = [cell.figure(name, f"{part}_seconds") or 0.0 for part in ("seek", "read", "skew")]
        if sum(parts) > 0:
            shares.append(name + " " + "/".join(f"{100 * part / sum(parts):.0f}" for part in parts))
    return (f"{cell.place}, {cell.size}: seek/read/skew in per cent of their sum: "
            + ", ".join(shares) + ".")


def seek_by_rank(results):
    cells = [cell for cell in results.read() if cell.result.get("seek_only")]
    return charts.draw(
        "seek-by-rank", "Seek time by rank of the reader",
        "When nothing but the seek is done, it takes longer the higher the rank of the root "
        "process: everyone walks over the shares of those before it, and those who finish "
        "early prefetch for their next turn (TOPC 5.1.1, figure 16a; D 3.4.1, figure 3.7a).",
        {place: found[-1] for place, found in by_place(cells).items()}, _seeks)


def _seeks(axis, cell):
    axis.set(xlabel="rank", ylabel="milliseconds")
    for engine, color in (("liblmdb", "#000000"), ("mmap", "#e69f00")):
        seconds = _seek_seconds(cell, engine)
        axis.plot(list(seconds), [1e3 * value for value in seconds.values()], "o-", markersize=3,
                  color=color, label=f"seek only, {engine}")
    axis.set_ylim(0, None)
    seconds = _seek_seconds(cell, "liblmdb")
    if len(seconds) < 2:
        return f"{cell.place}: measured on one rank only."
    (low, first), *_, (high, last) = seconds.items()
    return (f"{cell.place}, {cell.size}: with liblmdb rank {high} seeks {1e3 * last:.1f} ms, "
            f"{last / first:.2f} times as long as rank {low} ({1e3 * first:.1f} ms).")


def _seek_seconds(cell, engine):
    values = {}
    for run in cell.result["seek_only"]:
        if run["engine"] == engine:
            values.setdefault(run["rank"], []).append(run["seconds"])
    return {rank: statistics.median(found) for rank, found in sorted(values.items())}


def context_switches(results):
    return charts.draw(
        "context-switches", "Context switches",
        "One reading process a node brings more than 83 times fewer context switches than LMDB "
        "in some cases (TOPC 5.1.1, figure 15b; D 3.4.1, figure 3.8).",
        by_place([cell for cell in results.read("strong", "single") if cell.result["summary"]]),
        _switches_by_ranks)


def _switches_by_ranks(axis, cells):
    strategies = in_order({name for cell in cells for name in cell.strategies()})
    for name in strategies:
        points = [(cell.ranks, _switches(cell, name)) for cell in cells if cell.row(name)]
        axis.plot(*zip(*points), label=name, **charts.style(name, strategies))
    charts.count_axis(axis, [cell.ranks for cell in cells])
    axis.set_yscale("log")
    axis.set_ylabel("switches, all ranks")
    return _fewest(cells[-1])


def _switches(cell, name):
    return cell.figure(name, "voluntary_switches") + cell.figure(name, "involuntary_switches")


def _fewest(cell):
    counts = {name: _switches(cell, name) for name in cell.strategies()}
    best = min(counts, key=counts.get)
    text = f"{cell.place}, {cell.size}: fewest with {best} ({counts[best]:,.0f})"
    if BASELINE in counts and best != BASELINE:
        text += f", {BASELINE} has {counts[BASELINE] / max(1, counts[best]):.1f} times as many"
    return text + "."


def extra_bytes(results):
    return charts.draw(
        "extra-bytes", "Bytes read and not needed, by rank",
        "LMM reads pages again that other processes have read, because it has to seek over "
        "them: up to 4 GB in all, nearly in proportion to the number of processes, and more "
        "for 3 KB records than for 192 KB ones (TOPC 3.3.2, figure 7; D 4.1.1, figure 4.2).",
        _largest_measured(results), _extra)


def _extra(axis, cell):
    strategies = in_order(cell.strategies())
    totals = []
    for name in strategies:
        extra = cell.by_rank(name, "extra_bytes")
        totals.append(f"{name} {sum(extra.values()) / 1e6:.1f}")
        if extra:
            axis.plot(list(extra), [value / 1e6 for value in extra.values()], label=name,
                      **charts.style(name, strategies))
    axis.set(xlabel="reading rank", ylabel="MB asked for beyond its share")
    return (f"{cell.place}, {cell.size}, MB over all ranks, page padding included: "
            + ", ".join(totals) + ".")


def speculation(results):
    cells = [cell for cell in results.read("strong", "weak", "single")
             if cell.figure("lmm-dm", "missed_pages") is not None]
    places = by_place([cell for cell in cells if cell.scaling != "weak"] or cells)
    courses = {f"{place}\n{cell.size}": course for place, cell in largest(cells).items()
               if (course := _course(cell))}
    return charts.draw(
        "speculation", "Pages that speculation missed, and pages it read in vain",
        "DM misses fewer than 700 pages on 512 processes for CIFAR10-Large and fewer than 200 "
        "for ImageNet, all in the first iterations, and its redundant pages grow until the "
        "guess covers what comes (D 4.3.3, figures 4.10 and 4.11).", {**places, **courses},
        lambda axis, what: _pages(axis, what) if isinstance(what, list) else _growth(axis, what))


def _pages(axis, cells):
    for name, color in _SPECULATED.items():
        axis.plot([cell.ranks for cell in cells],
                  [cell.figure("lmm-dm", f"{name}_pages") for cell in cells], "o-", color=color,
                  label=f"{name} pages")
    charts.count_axis(axis, [cell.ranks for cell in cells])
    axis.set(ylabel="pages, all readers", ylim=(0, None))
    last = cells[-1]
    return (f"{last.place}, {last.size}: {last.figure('lmm-dm', 'missed_pages'):,.0f} missed, "
            f"{last.figure('lmm-dm', 'redundant_pages'):,.0f} in vain.")


def _growth(axis, course):
    for name, color in _SPECULATED.items():
        axis.plot(range(1, 1 + len(course[name])), course[name], color=color,
                  label=f"{name} pages")
    axis.set(xlabel="iteration", ylabel="pages so far", ylim=(0, None))


def _course(cell):
    """Pages missed and in vain by iteration, or None."""
    return next((one.get("speculation") for one in cell.result.get("verified", [])
                 if one["strategy"] == "lmm-dm"), None)


def block_sizes(results):
    cells = [cell for cell in results.read() if cell.result.get("block_sizes")]
    return charts.draw(
        "block-sizes", "mmap against pread over the block size",
        "pread gets faster with larger blocks while mmap stays where it is, about 2.5 times "
        "below pread already at 4 KB (TOPC 3.3.3 and 3.3.4, figure 8; D 5.1.2, figure 5.1).",
        {place: found[-1] for place, found in by_place(cells).items()}, _blocks)


def _blocks(axis, cell):
    rates = {engine: _block_rates(cell, engine) for engine in ("mmap", "pread")}
    for engine, color in (("mmap", "#e69f00"), ("pread", "#0072b2")):
        axis.plot(list(rates[engine]), list(rates[engine].values()), "o-", markersize=3,
                  color=color, label=engine)
    axis.set_xscale("log", base=2)
    axis.set(xlabel="bytes of a block", ylabel="MB/s", ylim=(0, None))
    return _block_sentence(cell.place, rates)


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
