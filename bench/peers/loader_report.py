"""Tables and plot of bench/peers/loaders.py."""

import statistics

import loader_cases

_MIB = 1 << 20


def _spread(values, decimals=0):
    text = f"{statistics.median(values):,.{decimals}f}"
    if len(values) > 1:
        text += f" ({min(values):,.{decimals}f}-{max(values):,.{decimals}f})"
    return text


def _chosen(results, case, peer):
    return [run for run in results["runs"]
            if run["case"] == case.name and run["peer"] == peer and "error" not in run]


def ratios(results, case, peer):
    """This peer's speed over ours, round by round."""
    ours = {run["round"]: run["samples_per_second"] for run in _chosen(results, case, "forebay")}
    return [run["samples_per_second"] / ours[run["round"]]
            for run in _chosen(results, case, peer) if run["round"] in ours]


def _row(results, case, peer):
    runs = _chosen(results, case, peer)
    speeds = _spread([run["samples_per_second"] for run in runs])
    relative = ratios(results, case, peer)
    of_ours = _spread(relative, 3) if relative and peer != "forebay" else ""
    if peer == "limit":
        return f"| *{runs[-1]['how']}* | {speeds} | {of_ours} | | | | |\n"

    def median(name):
        return statistics.median(run[name] for run in runs)

    memory = " / ".join(f"{median(f'peak_{kind}_bytes') / _MIB:,.0f}"
                        for kind in ("anon", "file", "shmem"))
    order = next((run["order"] for run in runs if "order" in run), None)
    shuffle = "" if order is None else (f"{100 * order['neighbours_kept']:.2f} % / "
                                        f"{order['correlation']:+.3f} / "
                                        f"{order['neighbour_distance']:.2f}")
    return (f"| {peer} | {speeds} | {of_ours} "
            f"| {_spread([run['cpu_us_a_sample'] for run in runs], 1)} "
            f"| {1e3 * median('first_batch_seconds'):,.0f} | {memory} | {shuffle} |\n")


def table(results, case):
    peers = sorted((peer for peer in loader_cases.peers_of(case) if _chosen(results, case, peer)),
                   key=lambda peer: -statistics.median(
                       run["samples_per_second"] for run in _chosen(results, case, peer)))
    if not peers:
        return ""
    text = f"\n## {case.title}\n\nBatches of {case.batch}.\n\n"
    text += ("| loader | samples/s | of Forebay | CPU us a sample | first batch ms "
             "| peak MiB: anonymous / file / shared | neighbours kept / correlation / distance |\n"
             "|---|--:|--:|--:|--:|--:|--:|\n")
    text += "".join(_row(results, case, peer) for peer in peers)
    for run in results["runs"]:
        if run["case"] == case.name and run["peer"] in loader_cases.PEERS and "error" in run:
            text += f"\n{run['peer']}, round {run['round']}: `{run['error']}`\n"
    return text


def page(results):
    host = results["machine"]
    text = ("# Other loaders\n\n"
            "The same samples in the same batches, each loader in a process of its own, in turns: "
            "`bench/peers/loaders.py`, whose parts say how each is used. Medians, with least and "
            "most, of the rounds; ratios within a round.\n\n"
            f"{host['cpu']}, {host['cores']} cores, {host['memory_gib']} GiB; Linux "
            f"{host['kernel']}, {host['file_system']}. Load before {results['load_before']:.1f}, "
            f"after {results['load_after']:.1f}.\n\n![samples a second](peers.svg)\n")
    if results["asked"]["quick"]:
        text += "\n**A quick run to see that all works: its figures mean nothing.**\n"
    text += "".join(table(results, case) for case in loader_cases.CASES)
    return text + _notes(results)


def _notes(results):
    text = """
## How to read this

- In italics: what the machine gives at most, the best of several plain ways of `bench/bulk_read`
  (ENGINE DEPTH PIECE WINDOW), in samples. Warm: threads that copy the file out of a mapping into
  memory that they use again. Cold: reads of single pages at random places with many in flight, or of
  the whole file from its beginning.
- `forebay one core` is the same loader, bound to one core (`taskset -c 0`).
- A loader's name ends in the number of its worker processes, where it has some. Those of `py-lmdb`
  and `h5py` are torch's DataLoader that fetches a batch by one call (a sampler of batches); values
  are copied once, into the batch; one transaction a process. `py-lmdb-each` is the same reader as a
  data set class that gives one sample, with DataLoader's own sampler and collating, as most
  programs have it.
- Forebay, `py-lmdb` and `spdl` read one LMDB of Datums; the others their own formats: tar shards,
  TFRecord, MDS, ArrayRecord, FFCV's (whose JPEG files it encodes itself), contiguous HDF5.
- samples/s: of whole epochs, the median without the first of a run. Cold: 8,192 samples (192 KiB: all)
  from the beginning of the first epoch, with opening; the files are taken out of the page cache before.
- CPU: of the process and its workers, with opening, over all epochs.
- First batch: from opening to the first batch; imports aside.
- Memory: the most while measuring, of the process and its workers with the interpreter and what the
  library imports; pages that several share are counted once.
- Each loader's samples have been checked in the first round: every one once, with its bytes (JPEG:
  every one once, with shape, type and range). Neighbours kept, correlation and distance of that
  epoch are as `forebay order` measures them: a full shuffle has 0 %, 0 and 1.
- webdataset shuffles shards and a buffer of 1,000, tf.data a buffer of 10,000, at most a quarter of
  the samples; the others shuffle all.
"""
    if results["missing"]:
        text += "\n## Left out\n\n| | why |\n|---|---|\n"
        text += "".join(f"| {name} | `{why}` |\n" for name, why in results["missing"].items())
    text += "\n## Versions\n\n| environment | |\n|---|---|\n"
    for name, versions in results.get("versions", {}).items():
        text += f"| {name} | {', '.join(f'{k} {v}' for k, v in versions.items())} |\n"
    return text


_COLORS = {"forebay": "#c2410c", "limit": "#cbd5e1"}


def plot(results, path):
    """Bars of samples a second with least and most, a picture for each case."""
    import matplotlib
    matplotlib.use("svg")
    from matplotlib import pyplot
    matplotlib.rcParams["svg.hashsalt"] = "forebay"
    cases = [case for case in loader_cases.CASES if _chosen(results, case, "forebay")]
    if not cases:
        return
    figure, axes = pyplot.subplots(len(cases), 1, figsize=(8, 3 * len(cases)), squeeze=False)
    for case, axis in zip(cases, axes[:, 0]):
        peers = [peer for peer in loader_cases.peers_of(case) if _chosen(results, case, peer)]
        rates = [[run["samples_per_second"] for run in _chosen(results, case, peer)]
                 for peer in peers]
        middles = [statistics.median(each) for each in rates]
        errors = [[middle - min(each) for middle, each in zip(middles, rates)],
                  [max(each) - middle for middle, each in zip(middles, rates)]]
        colors = [_COLORS.get(peer.split()[0], "#64748b") for peer in peers]
        axis.barh(peers, middles, xerr=errors, color=colors, ecolor="#111827", capsize=2)
        axis.invert_yaxis()
        axis.set_title(case.title, fontsize=9, loc="left")
        axis.set_xlabel("samples a second", fontsize=8)
        axis.tick_params(labelsize=8)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})
