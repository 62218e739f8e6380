#!/usr/bin/python3
"""Which engine, depth, piece and window fill shared memory fastest: runs bulk_read over all of them.

  run_bulk_read.py BULK_READ FILE RESULTS.json [--repeats N]

FILE should be 1 to 2 GB. Every combination runs once a round, so that a noisy minute touches all of
them; the tables on standard output (Markdown) show the best of the rounds, in MB/s: what else runs
on the machine only takes away.
"""

import itertools
import json
import subprocess

import measuring

KIB, MIB = 1 << 10, 1 << 20
WINDOW = 128 * MIB
DEPTHS = (1, 4, 16, 32)
PIECES = (128 * KIB, 512 * KIB, MIB, 4 * MIB)
READERS = (1, 2, 4, 8, 16)
RANDOM_DEPTHS = (1, 8, 32)
WINDOWS = tuple(size * MIB for size in (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024))
SMALL = "8 MiB each"


def words(engine, depth, piece, window, *more):
    return (engine, str(depth), str(piece), str(window), *more)


def plain(readers, window, *more):
    return words("plain", readers, 8 * MIB, readers * 8 * MIB if window == SMALL else window, *more)


def all_runs():
    """Each combination once, as command-line words of bulk_read."""
    runs = [words("mmap", 1, MIB, WINDOW), words("mmap", 1, MIB, WINDOW, "cold")]
    for temperature in ((), ("cold",)):
        runs += [plain(readers, window, *temperature)
                 for readers, window in itertools.product(READERS, (SMALL, WINDOW, 1024 * MIB))]
        for depth, piece in itertools.product(DEPTHS, PIECES):
            runs += [words(engine, depth, piece, WINDOW, *temperature)
                     for engine in ("pread", "uring")]
            if temperature:
                runs.append(words("uring", depth, piece, WINDOW, "cold", "direct"))
        for depth, engine in itertools.product(RANDOM_DEPTHS, ("pread", "uring")):
            runs.append(words(engine, depth, 4 * KIB, WINDOW, *temperature, "random=20000"))
    runs += [words("uring", depth, 4 * KIB, WINDOW, "cold", "direct", "random=20000")
             for depth in RANDOM_DEPTHS]
    runs += [words(engine, 4, MIB, window) for engine in ("pread", "uring") for window in WINDOWS]
    return list(dict.fromkeys(runs))


def measure(program, path, runs, repeats):
    """{words: [bytes per second]}"""
    rates = {run: [] for run in runs}
    for _ in range(repeats):
        with open(path, "rb", buffering=0) as file:  # warm for those that want it so
            while file.read(8 * MIB):
                pass
        for run in sorted(runs, key=lambda run: "cold" in run):
            output = subprocess.run((program, path, *run), check=True, capture_output=True).stdout
            result = json.loads(output)
            rates[run].append(result["bytes"] / result["seconds"])
    return rates


def size_text(size):
    return f"{size // MIB} MiB" if size % MIB == 0 else f"{size // KIB} KiB"


class Tables:
    def __init__(self, rates):
        self._rates = rates

    def _cell(self, run, unit=1e6):
        return f"{max(self._rates[run]) / unit:,.0f}"

    def _print(self, title, head, rows):
        print(f"\n{title}\n\n{measuring.markdown(head, rows)}", end="")

    def print_all(self):
        for name, more in (("warm", ()), ("cold", ("cold",))):
            self._print(f"Plain 8 MiB preads, {name}, by memory they go to",
                        ("readers", SMALL, "128 MiB", "1 GiB"),
                        ((str(readers), *(self._cell(plain(readers, window, *more))
                                          for window in (SMALL, WINDOW, 1024 * MIB)))
                         for readers in READERS))
            engines = [("pread", ()), ("uring", ())] + ([("uring", ("direct",))] if more else [])
            self._print(f"Engines, {name}, into 128 MiB, by piece "
                        f"(mmap: {self._cell(words('mmap', 1, MIB, WINDOW, *more))})",
                        ("engine", "depth", *map(size_text, PIECES)),
                        ((" ".join((engine, *kind)), str(depth),
                          *(self._cell(words(engine, depth, piece, WINDOW, *more, *kind))
                            for piece in PIECES))
                         for (engine, kind), depth in itertools.product(engines, DEPTHS)))
        kinds = [("pread", ()), ("uring", ()), ("pread", ("cold",)), ("uring", ("cold",)),
                 ("uring", ("cold", "direct"))]
        self._print("Random 4 KiB reads, thousands a second", ("engine", *map(str, RANDOM_DEPTHS)),
                    ((" ".join((engine, *(kind or ("warm",)))),
                      *(self._cell(words(engine, depth, 4 * KIB, WINDOW, *kind, "random=20000"),
                                   4096e3) for depth in RANDOM_DEPTHS))
                     for engine, kind in kinds))
        self._print("Warm, depth 4, pieces of 1 MiB, by size of the window",
                    ("engine", *map(size_text, WINDOWS)),
                    ((engine, *(self._cell(words(engine, 4, MIB, window)) for window in WINDOWS))
                     for engine in ("pread", "uring")))


def main():
    parser = measuring.plain_parser(__doc__, "program", "file", "results")
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    with measuring.described(options.results, options.file) as results:
        rates = measure(options.program, options.file, all_runs(), options.repeats)
        results["runs"] = [{"words": run, "bytes_per_second": [round(rate) for rate in values]}
                           for run, values in rates.items()]
    Tables(rates).print_all()


if __name__ == "__main__":
    main()
