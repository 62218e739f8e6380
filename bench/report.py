"""Turns the runs of run_read_bench.py into a JSON file, tables and a plot."""

import json
import os
import statistics

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plot  # noqa: E402  (the backend must be chosen first)

BEGIN = "<!-- figures: written by bench/run_read_bench.py, text outside of the marks stays -->"
END = "<!-- end of figures -->"


class Spread:
    """Smallest, middle and largest of a few numbers."""

    def __init__(self, values):
        self.values = sorted(values)
        self.median = statistics.median(self.values)

    def text(self, form):
        low, high = self.values[0], self.values[-1]
        return f"{self.median:{form}} ({low:{form}}-{high:{form}})"


def states_of(results):
    """(cold, read_ahead_kb) in the order in which they were measured."""
    return list(dict.fromkeys((run["cold"], run["read_ahead_kb"]) for run in results["runs"]))


def state_title(state):
    cold, read_ahead = state
    return f"{'Cold' if cold else 'Warm'} cache, device read-ahead {read_ahead} KiB"


def select(results, state, kind=None, count=None):
    return [run for run in results["runs"]
            if (run["cold"], run["read_ahead_kb"]) == state
            and kind in (None, run["kind"]) and count in (None, run["count"])]


def kinds_of(results):
    return sorted({run["kind"] for run in results["runs"]} - {"plain"})


def plain_rates(results, state):
    """Best MB/s over the numbers of readers, for each repetition."""
    best = {}
    for run in select(results, state, "plain"):
        rate = run["bytes"] / run["seconds"] / 1e6
        best[run["repetition"]] = max(rate, best.get(run["repetition"], 0))
    return best


def delivered_rate(run):
    return run["statistics"]["bytes_delivered"] / run["seconds"] / 1e6


def table(results, state):
    plain = plain_rates(results, state)
    yield f"### {state_title(state)}"
    yield ""
    yield ("Plain 8 MiB preads, best of 1 to 16 readers: "
           f"**{Spread(plain.values()).text('.0f')} MB/s** of file.")
    yield ""
    yield ("| strategy | ranks | delivered MB/s | ratio to plain | switches vol. | invol. | asleep "
           "| major faults | amplification | open to first batch, ms |")
    yield "|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|"
    for kind in kinds_of(results):
        for count in sorted({run["count"] for run in select(results, state, kind)}):
            yield table_row(kind, count, select(results, state, kind, count), plain)
    yield ""


def table_row(kind, count, runs, plain):
    def middle(value):
        return statistics.median(value(run) for run in runs)

    def figure(name):
        return middle(lambda run: run["statistics"][name])

    amplification = figure("bytes_requested") / figure("bytes_delivered")
    ratio = Spread(delivered_rate(run) / plain[run["repetition"]] for run in runs)
    return (f"| {kind} | {count} | {Spread(map(delivered_rate, runs)).text('.0f')} "
            f"| {ratio.text('.2f')} | {figure('voluntary_switches'):.0f} "
            f"| {figure('involuntary_switches'):.0f} "
            f"| {100 * middle(lambda run: run['asleep']):.0f} % | {figure('major_faults'):.0f} "
            f"| {f'{amplification:.2f}' if amplification else '-'} "
            f"| {1000 * figure('first_batch_seconds'):.1f} |")


def heading(results, name):
    host, data = results["machine"], results["data_set"]
    useful = next(run for run in results["runs"] if run["kind"] != "plain")["statistics"]
    delivered = useful["bytes_delivered"]
    loads = Spread(run["load"] for run in results["runs"])
    yield (f"Measured {results['date']} on {host['cpu']}, {host['cores']} cores, "
           f"{host['memory_gib']} GiB, Linux {host['kernel']}, {host['file_system']} on a device "
           f"with read-ahead {host['read_ahead_kb']} KiB; {host['mpi']}.")
    yield (f"Data set: {data['entries']:,} records, {delivered / 1e6:.0f} MB of values in a file of "
           f"{data['file_bytes'] / 1e6:.0f} MB ({100 * delivered / data['file_bytes']:.0f} % "
           f"useful). One epoch a run, global batch {results['batch']}, every byte summed by the "
           "consumer.")
    yield ("The ratio compares delivered bytes with the file bytes of plain preads, so the useful "
           "share is the most it can be where the whole file has to be read.")
    yield ("Asleep: share of the wall time in which a rank had no core, by its own wish or because "
           "others had it.")
    yield (f"Medians (smallest-largest) over {results['repetitions']} repetitions, variants "
           f"interleaved; load average before a run {loads.text('.1f')}.")
    yield ""
    yield f"![rates]({name}.svg)"
    yield ""


def draw(results, path):
    states = states_of(results)
    figure, axes = plot.subplots(1, len(states), figsize=(5 * len(states), 4), squeeze=False)
    for axis, state in zip(axes[0], states):
        for kind in kinds_of(results):
            counts = sorted({run["count"] for run in select(results, state, kind)})
            spreads = [Spread(map(delivered_rate, select(results, state, kind, count)))
                       for count in counts]
            middle = [spread.median for spread in spreads]
            below = [spread.median - spread.values[0] for spread in spreads]
            above = [spread.values[-1] - spread.median for spread in spreads]
            axis.errorbar(counts, middle, [below, above], marker="o", capsize=3, label=kind)
        plain = Spread(plain_rates(results, state).values())
        axis.axhline(plain.median, color="gray", linestyle="--", label="plain preads (file bytes)")
        axis.set(title=state_title(state), xlabel="ranks", ylabel="delivered MB/s", xscale="log",
                 xticks=(1, 2, 4, 8, 16), ylim=(0, None))
        axis.set_xticklabels(["1", "2", "4", "8", "16"])
        axis.minorticks_off()
        axis.legend(loc="lower left")
    figure.tight_layout()
    figure.savefig(path)


def write(results, directory, name):
    os.makedirs(directory, exist_ok=True)
    base = os.path.join(directory, name)
    with open(base + ".json", "w", encoding="utf-8") as file:
        json.dump(results, file, indent=1)
        file.write("\n")
    lines = [BEGIN, "", *heading(results, name)]
    for state in states_of(results):
        lines += table(results, state)
    replace_figures(base + ".md", "\n".join([*lines, END]))
    draw(results, base + ".svg")


def replace_figures(path, figures):
    """Puts `figures` where the marks are, or at the end of a new page."""
    before, after = f"# {os.path.basename(path)[:-3]}\n\n", "\n"
    if os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            text = file.read()
        before, mark, rest = text.partition(BEGIN)
        after = rest.partition(END)[2] if mark else "\n"
    with open(path, "w", encoding="utf-8") as file:
        file.write(before + figures + after)
