"""The tables of docs/results/sync.md, from what run_sync.py has measured."""

from measuring import markdown, spread_text

# In the order of table 6.1, with what the paper gives: nodes, edges, milliseconds of its traversal,
# share of the susceptible window, and the gain of topo over Horovod (6.4.2; for ResNet-50 the best
# of all strategies).
_PAPER = {
    "resnet18": (1714, 2565, 32, 46, "5-21"),
    "resnet34": (2866, 4325, 86, 55, "5-21"),
    "resnet50": (3988, 6042, 159, 48, "up to 23"),
    "resnet101": (7558, 11499, 594, 30, "5-21"),
    "resnet152": (11128, 16956, 1274, 23, "5-21"),
    "alexnet": (655, 893, 6, None, "-6"),
    "googlenet": (3499, 4970, 182, 56, "25, up to 35"),
    "inception3": (6146, 9211, 382, 42, "10-18"),
    "vgg16": (1091, 1479, 17, 32, "2-6"),
}
NETS = list(_PAPER)

# The best gain over Horovod on ResNet-50, weak scaling (figure 6.16); topo on GoogLeNet: 35.
_PAPER_GAINS = {"gs": 10, "nbcs": 16, "scp": 18, "topo": 21, "scp-topo": 23}

_X = {"weak": "ranks, a batch each", "strong": "ranks, one batch for all",
      "contention": "input threads of a rank", "cycles": "cycle, ms", "input": "input",
      "nets": "network"}
_TITLES = {"weak": "Weak scaling (figure 6.16)", "strong": "Strong scaling (figure 6.19)",
           "contention": "Contention: input threads", "cycles": "Cycle times",
           "input": "Real and synthetic input (6.2.5)", "nets": "Networks (figure 6.20)",
           "peers": "Other libraries", "training": "Real trainings"}


def _median(row, name, factor=1.0, decimals=1):
    return f"{factor * row[name]['median']:.{decimals}f}"


def _gain_rows(cells):
    """Images a second of the first strategy, and what the others gain over it."""
    for cell in cells:
        summary = cell["result"]["summary"]
        yield [cell["x"], spread_text(summary[0]["images_per_second"])] + [
            f"{100 * row['gain']:+.1f} %" for row in summary[1:]]


def _gains(section, cells):
    names = [row["strategy"] for row in cells[0]["result"]["summary"]]
    head = [_X[section], f"{names[0]}, images/s"] + names[1:]
    rows = list(_gain_rows(cells))
    if section == "weak":
        rows.append(["paper, at best", ""] + [
            f"+{_PAPER_GAINS[name]} %" if name in _PAPER_GAINS else "" for name in names[1:]])
    return markdown(head, rows)


def _threads(cells):
    """What the threads cost in each cell and strategy, and where the time of a step went."""
    head = ["", "strategy", "progress thread, % of a core", "its evictions/s", "scheduler's",
            "input's", "messages a step", "exposed, ms", "waiting / copying / summing, ms",
            "device idle, ms", "step, ms"]
    rows = []
    for cell in cells:
        for row in cell["result"]["summary"]:
            rows.append([cell["x"], row["strategy"], _median(row, "progress_share", 100),
                         _median(row, "progress_evictions"), _median(row, "scheduler_evictions"),
                         _median(row, "input_evictions"), _median(row, "messages"),
                         _median(row, "exposed_ms"),
                         " / ".join(_median(row, name) for name in
                                    ("waiting_ms", "copying_ms", "summing_ms")),
                         _median(row, "idle_ms"), _median(row, "step_ms")])
    return markdown(head, rows)


def _networks(cells):
    head = ["network", "nodes", "edges", "planned in, ms", "window, % of a step",
            "topo over negotiate", "paper: nodes, edges", "paper: ms", "paper: window", "paper: topo"]
    rows = []
    for cell in cells:
        net = cell["result"]["nets"][0]
        summary = {row["strategy"]: row for row in cell["result"]["summary"]}
        nodes, edges, plan, window, gain = _PAPER[cell["net"]]
        topo = summary.get("topo")
        rows.append([cell["net"], net["nodes"], net["edges"], f"{net['plan_ms']:.2f}",
                     _median(next(iter(summary.values())), "window_share", 100, 0),
                     f"{100 * topo['gain']:+.1f} %" if topo else "-", f"{nodes}, {edges}", plan,
                     f"{window} %" if window else "-", f"{gain} %"])
    return markdown(head, rows)


def _peers(cells):
    head = ["", "who", "images/s"]
    rows = []
    for cell in cells:
        if cell["peer"]:
            result = cell["result"]
            rows.append([cell["x"], f"{result['how']} {result['version']}",
                         spread_text(result["images_per_second"])])
            continue
        rows += [[cell["x"], f"Forebay {row['strategy']}", spread_text(row["images_per_second"])]
                 for row in cell["result"]["summary"]]
    return markdown(head, rows)


def _trainings(cells):
    head = ["network", "--sync", "images/s", "over blocking", "exposed, % of the time",
            "bytes that overlap, %", "progress thread, % of a core"]
    return markdown(head, [
        [cell["x"], row["strategy"], spread_text(row["images_per_second"]), f"{100 * row['gain']:+.1f} %",
         _median(row, "exposed_share", 100), _median(row, "overlap", 100, 0),
         _median(row, "progress_share", 100)]
        for cell in cells for row in cell["result"]["summary"]])


def _section(section, cells):
    text = f"## {_TITLES[section]}\n\n"
    if section in ("peers", "training"):
        return text + (_peers if section == "peers" else _trainings)(cells) + "\n"
    text += _gains(section, cells) + "\n"
    if section == "nets":
        text += _networks(cells) + "\n"
    return text + _threads(cells) + "\n"


def page(results):
    """Markdown."""
    of, options = results["machine"], results["options"]
    text = f"""# Gradient synchronization

What `bench/run_sync.py` has measured; all figures are in [sync.json](sync.json). But for the last
section, which has real trainings on made-up images, every rank runs the emulated training of `forebay-bench sync`: a scheduler that dispatches the operations of a real
network, a virtual device that keeps the time of its kernels and takes no core, threads that decode
JPEGs, and the engine that sums real gradients.

Measured {results['date']}: {of['cpu']}, {of['cores']} cores, {of['memory_gib']} GiB, Linux
{of['kernel']}; {of['mpi']}; {options['batch']} images a rank and step unless said otherwise, device
times x{options['time_scale']:g} of a V100's, one of {options['shrink']} numbers of every gradient,
{options['steps']} steps after {options['warmup']}; medians (least-most) of {options['repetitions']}
runs in turns, gains over the medians of `negotiate`.

"""
    for section in _TITLES:
        cells = [cell for cell in results["cells"] if cell["section"] == section]
        if cells:
            text += _section(section, cells)
    if results["failures"]:
        text += "## Failed\n\n" + "".join(f"- {failure}\n" for failure in results["failures"])
    return text
