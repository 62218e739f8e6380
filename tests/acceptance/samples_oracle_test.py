#!/usr/bin/python3
"""`forebay samples` equals liblmdb's own cursor walk, dealt by the strided order, line by line.

Every database that make_test_databases writes meets every way to locate records. All other knobs
(strategy, engine, roots, coalescing, staggering, buffers, sizes, ranks, virtual nodes, sidecar or
none) are drawn so that each pair of values meets at least once. The full product would take days of
process starts: the short run ends once all pairs have met (on MPICH it takes a quarter of that), and
FOREBAY_TEST_SCALE=k runs k whole sets, drawn differently.
"""

import functools
import itertools
import json
import os
import random
import re
import subprocess
import tempfile

import launch
import liblmdb
import order_model

TURNS = launch.some((f"{n} --stagger-by {by}" for by in ("token", "ticket") for n in (1, 2, 3, 4)),
                    every=3)
KNOBS = {
    "strategy": ("auto", "lmdb", "lmm", "lmm-dm", "lmm-dio", "lmm-dio-prov", "lmm-dio-prov-coal",
                 "lmm-dio-prov-coal-stag"),
    "locate": ("auto", "seek", "handoff", "scatter", "scan", "provenance"),
    "engine": ("auto", "mmap", "pread", "uring", "uring --direct on"),
    "sidecar": (True, False),
    "ranks": (1, 2, 3, 4, 5, 8),
    "nodes": (None, 1, 2, 3, 4),
    "roots": (0, 1, 2, 3),
    "batch": ("ranks", "uneven", "prime", "third", "beyond"),
    "coalesce": (1, 2, 5, 16, 64),
    "stagger": ("", "off", "measure", *TURNS),
    "buffers": (1, 2, 3),
    "sizes": ("", "--gap-bytes 0", "--gap-bytes 16MiB", "--request-bytes 4KiB", "--depth 1",
              "--request-bytes 64KiB --depth 3 --stage mpi"),
}
STRATEGY_LOCATES = {"auto": "provenance", "lmdb": "baseline", "lmm": "seek", "lmm-dm": "handoff",
                    "lmm-dio": "scatter"}  # the others: provenance
WAYS = ("baseline", *KNOBS["locate"][1:])
BASELINE_EVERY = 3           # the oldest way meets only every third database in a set
MOST_LINES = 2000            # a case delivers about this many samples ...
MOST_BYTES = 1 << 29         # ... at most about this many bytes, a third of them in a window
MOST_ITERATIONS = 140        # each prints with a gather over all ranks: milliseconds on few cores


def way_of(case):
    """How this case locates records."""
    if case["strategy"] == "lmdb":
        fits = case["locate"] in ("auto", "seek") and case["engine"] in ("auto", "mmap")
        return "baseline" if fits else None
    if case["locate"] != "auto":
        return case["locate"]
    return STRATEGY_LOCATES.get(case["strategy"], "provenance")


def pairs_of(case):
    return set(itertools.combinations(case.items(), 2))


def is_possible(case):
    return way_of(case) and not (case["nodes"] or 1) > case["ranks"]


def draw(generator, way):
    while True:
        case = {knob: generator.choice(values) for knob, values in KNOBS.items()}
        if is_possible(case) and way_of(case) == way:
            return case


@functools.cache
def possible_pairs():
    """Every pair of values that some case can have."""
    generator, pairs = random.Random(0), set()
    for _ in range(3000):
        for way in WAYS:
            pairs |= pairs_of(draw(generator, way))
    return frozenset(pairs)


def shuffled_rows(datasets, seed, generator):
    """Every (data set, way), so that all data sets come by before one comes again."""
    datasets = list(datasets)
    generator.shuffle(datasets)
    others = WAYS[1:]
    # What only the baseline can do would otherwise be met last.
    rows = [(dataset, WAYS[0]) for i, dataset in enumerate(datasets)
            if (i + seed) % BASELINE_EVERY == 0]
    for turn in range(len(others)):
        rows += [(dataset, others[(i + turn) % len(others)]) for i, dataset in enumerate(datasets)]
    return rows


def covering_cases(datasets, seed, short):
    """(data set, case) for every data set and way; the knobs greedily, pairs not yet met first.

    A short list ends once every pair and every data set has been met.
    """
    generator = random.Random(seed)
    left, cases = set(possible_pairs()), []
    for dataset, way in shuffled_rows(datasets, seed, generator):
        if short and not left and len({dataset for dataset, _ in cases}) == len(datasets):
            break
        best = max((draw(generator, way) for _ in range(100)),
                   key=lambda case: len(pairs_of(case) & left))
        left -= pairs_of(best)
        cases.append((dataset, best))
    return cases, left


def smallest_prime_from(number):
    while any(number % divisor == 0 for divisor in range(2, int(number**0.5) + 1)):
        number += 1
    return number


def batch_size(kind, entries, ranks):
    """A batch of at least one sample a rank."""
    sizes = {
        "ranks": ranks,
        "uneven": 3 * ranks + 1,
        "prime": smallest_prime_from(max(ranks, 11)),
        "third": min(entries // 3 + 1, 1000),
        "beyond": entries + 2 if entries <= MOST_LINES else 501,
    }
    return max(ranks, sizes[kind])


def make_databases(directory):
    """{name: path (path#name for a named database)} of all that make_test_databases writes."""
    os.mkdir(directory)
    listing = subprocess.run([os.path.join(launch.TOOLS, "make_test_databases"), directory],
                             check=True, capture_output=True, text=True).stdout
    return dict(line.split("\t") for line in listing.splitlines())


def flags_of(case):
    """The options of a case that change how samples are read, and nothing that is delivered."""
    flags = ["--strategy", case["strategy"], "--locate", case["locate"],
             "--engine", *case["engine"].split(), "--roots", case["roots"],
             "--buffers", case["buffers"], *case["sizes"].split()]
    turns = case["stagger"] if case["strategy"] != "lmdb" else ""  # there each rank reads: it says so
    return flags + (["--stagger", *turns.split()] if turns else [])


class SamplesEqualOracle(launch.AcceptanceCase):

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.paths = {sidecar: make_databases(os.path.join(cls.scratch, f"sidecars-{sidecar}"))
                     for sidecar in (True, False)}
        cls.records = {name: liblmdb.walk(path) for name, path in cls.paths[True].items()}
        cls.filled = [name for name, records in cls.records.items() if records]
        cls.forms = {name: cls.make_sidecar(cls.paths[True][name]) for name in cls.filled}

    @staticmethod
    def make_sidecar(path):
        result = launch.run("provenance", path, "--json")
        assert result.code == 0, result.err
        return json.loads(result.out)["form"]

    def run_case(self, dataset, case):
        records, ranks, coalesce = self.records[dataset], case["ranks"], case["coalesce"]
        batch = batch_size(case["batch"], len(records), ranks)
        mean = sum(record.bytes for record in records) / len(records)
        lines = min(MOST_LINES, max(MOST_BYTES / max(mean, 1), ranks))
        iterations = max(1, min(int(lines / batch), MOST_ITERATIONS,
                                3 * len(records) // batch + 2 * coalesce))
        # A cache of its own: no case finds what another one has left there.
        with tempfile.TemporaryDirectory(dir=self.scratch) as cache:
            env = {"XDG_CACHE_HOME": cache}
            if case["nodes"]:
                env["FOREBAY_RANKS_PER_NODE"] = -(-ranks // case["nodes"])
            # One rank also runs without a launcher: that is how most people try the command.
            result = launch.run("samples", self.paths[case["sidecar"]][dataset], "--batch", batch,
                                "--iterations", iterations, "--coalesce", coalesce,
                                *flags_of(case), env=env,
                                ranks=0 if ranks == 1 and case["nodes"] is None else ranks)
        self.assert_lines(result, order_model.expected_lines(records, ranks, batch, coalesce,
                                                             iterations))
        self.assertNotIn("forebay: warning", result.err)

    def test_there_are_enough_databases_and_both_forms_of_sidecars(self):
        self.assertGreaterEqual(len(self.records), 30)
        self.assertGreaterEqual(list(self.forms.values()).count("recipe"), 8)
        self.assertGreaterEqual(list(self.forms.values()).count("table"), 20)

    def test_pairwise_combinations(self):
        for seed in range(launch.SCALE):
            cases, left = covering_cases(self.filled, seed, launch.SCALE == 1)
            self.assertFalse(left, "some pairs of values never meet: draw more cases")
            for dataset, case in launch.some(cases, every=1, on_mpich=4):
                with self.subTest(dataset=dataset, **case):
                    self.run_case(dataset, case)

    def test_whole_epochs(self):
        for turn, dataset in enumerate(launch.some(self.filled, every=5, on_mpich=9)):
            records = self.records[dataset]
            batch, coalesce, ranks = max(2, min(len(records) - 1, 97)), 1 + turn % 3, 2
            end, epochs = ("exact", "drop", "pad", "wrap")[turn % 4], 1 + turn % 2
            strategy = KNOBS["strategy"][turn % len(KNOBS["strategy"])]
            with self.subTest(dataset=dataset, end=end, epochs=epochs, strategy=strategy):
                result = launch.run("samples", self.paths[False][dataset], "--batch", batch,
                                    "--epochs", epochs, "--coalesce", coalesce, "--end", end,
                                    "--strategy", strategy, ranks=ranks)
                self.assert_lines(result, order_model.expected_lines_of_epochs(
                    records, epochs, ranks, batch, coalesce, end))

    def test_what_is_chosen_is_a_coalescing_like_any_other(self):
        """Shown and delivered alike, whatever the stage has room for."""
        for dataset in ("mixed_sizes", "in_order"):
            path, records = self.paths[True][dataset], self.records[dataset]
            batch = max(2, len(records) // 40)
            arguments = ("samples", path, "--batch", batch, "--strategy", "lmm-dio-prov-coal")
            plan = launch.run(*arguments, "--explain", "--json", ranks=2)
            self.assertEqual(plan.code, 0, plan.err)
            said = json.loads(plan.out)["explain"]
            coalesce = int(re.search(r"C = (\d+)", said)[1])
            self.assertGreater(coalesce, 1, said)
            for stage in ((), ("--stage-bytes", "8MiB"), ("--buffers", 1)):
                with self.subTest(dataset=dataset, stage=stage):
                    result = launch.run(*arguments, *stage, "--iterations", 2 * coalesce + 1,
                                        ranks=2)
                    self.assert_lines(result, order_model.expected_lines(
                        records, 2, batch, coalesce, 2 * coalesce + 1))

    def test_samples_of_two_records_however_they_are_located(self):
        """Whose records are not walked to, roots locate otherwise; all ranks read as they do."""
        path = self.path("pairs")
        pairs = [(b"%s-%09d" % (part, i), b"%d" % i * 30) for part in (b"image", b"label")
                 for i in range(400)]
        liblmdb.write(path, pairs)
        arguments = ("samples", path, "--batch", 6, "--iterations", 50)
        expected = launch.run(*arguments, "--coalesce", 4, "--strategy", "lmm-dio-prov", ranks=3)
        self.assertEqual(expected.code, 0, expected.err)
        for locate in ("auto", "scatter", "scan"):
            with self.subTest(locate=locate):
                result = launch.run(*arguments, "--locate", locate, ranks=3)
                self.assertEqual((result.code, result.out), (0, expected.out), result.err)

    def test_output_file_holds_what_would_be_printed(self):
        dataset = self.paths[True][self.filled[0]]
        arguments = ["samples", dataset, "--batch", "5", "--iterations", "3"]
        printed = launch.run(*arguments, ranks=2)
        written = launch.run(*arguments, "--output", self.path("lines"), ranks=2)
        self.assertEqual((printed.code, written.code), (0, 0), written.err)
        with open(self.path("lines"), encoding="ascii") as lines:
            self.assertEqual(lines.read(), printed.out)

    def test_an_empty_database_is_named_and_never_waited_for(self):
        empty = [self.paths[True][name] for name, records in self.records.items() if not records]
        self.assertTrue(empty)
        for turn, dataset in enumerate(empty):
            for strategy in launch.some(KNOBS["strategy"][turn % 2:], every=2, on_mpich=4):
                with self.subTest(dataset=dataset, strategy=strategy):
                    result = launch.run("samples", dataset, "--batch", "4", "--iterations", "1",
                                        "--strategy", strategy, ranks=2)
                    self.assertIn(result.code, (1, 2), result.err)
                    self.assertIn(os.path.basename(liblmdb.split_name(dataset)[0]), result.err)


if __name__ == "__main__":
    launch.main()
