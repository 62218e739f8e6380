#!/usr/bin/python3
"""`forebay samples` equals liblmdb's own cursor walk, dealt by the strided order, line by line.

Every database that make_test_databases writes meets every strategy; ranks, virtual nodes, batch
sizes, coalescing and kinds of stage are combined so that each pair of values meets at least once. The full product
would take hours of process starts: FOREBAY_TEST_SCALE=k runs k such sets, drawn differently.
"""

import itertools
import os
import random
import subprocess
from dataclasses import dataclass

import launch
import liblmdb
import order_model

RANKS = (1, 2, 3, 4, 7)
NODES = (None, 1, 2, 3)
BATCHES = ("ranks", "uneven", "prime", "third", "beyond")
COALESCE = (1, 2, 5)
STRATEGIES = ("lmdb", "lmm --engine mmap", "lmm --engine pread")
STAGES = ("", "--buffers 1", "--buffers 5", "--roots 2", "--roots 3 --stage mpi", "--stage mpi")
MOST_LINES = 3000            # a case delivers about this many samples ...
MOST_BYTES = 1 << 30         # ... and at most about this many bytes
MOST_ITERATIONS = 250        # each prints with a gather over all ranks: milliseconds on few cores


@dataclass(frozen=True)
class Case:
    dataset: str
    strategy: str
    ranks: int
    nodes: int
    batch: str
    coalesce: int
    stage: str

    def pairs(self):
        values = tuple(vars(self).items())
        return set(itertools.combinations(values, 2))


def covering_cases(datasets, seed):
    """Every data set with every strategy; the other values greedily, rarest pairs first."""
    generator = random.Random(seed)
    covered, cases = set(), []
    rows = list(itertools.product(datasets, STRATEGIES))
    generator.shuffle(rows)
    rest = list(itertools.product(RANKS, NODES, BATCHES, COALESCE, STAGES))
    for dataset, strategy in rows:
        candidates = [Case(dataset, strategy, *values) for values in generator.sample(rest, 60)]
        best = max(candidates, key=lambda case: len(case.pairs() - covered))
        covered |= best.pairs()
        cases.append(best)
    return cases


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
    """Path (path#name for a named database) of everything that make_test_databases writes."""
    listing = subprocess.run([os.path.join(launch.TOOLS, "make_test_databases"), directory],
                             check=True, capture_output=True, text=True).stdout
    return [line.split("\t")[1] for line in listing.splitlines()]


class SamplesEqualOracle(launch.AcceptanceCase):

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        directory = os.path.join(cls.scratch, "databases")
        os.mkdir(directory)
        cls.records = {dataset: liblmdb.walk(dataset) for dataset in make_databases(directory)}
        cls.filled = [dataset for dataset, records in cls.records.items() if records]

    def run_case(self, case):
        records = self.records[case.dataset]
        batch = batch_size(case.batch, len(records), case.ranks)
        mean = sum(record.bytes for record in records) / len(records)
        lines = min(MOST_LINES, max(MOST_BYTES / max(mean, 1), case.ranks))
        iterations = max(1, min(int(lines / batch), MOST_ITERATIONS,
                                3 * len(records) // batch + 2 * case.coalesce))
        arguments = ["--batch", batch, "--iterations", iterations, "--coalesce", case.coalesce,
                     "--strategy", *case.strategy.split(), *case.stage.split()]
        env = {}
        if case.nodes:
            env["FOREBAY_RANKS_PER_NODE"] = -(-case.ranks // case.nodes)
        # One rank also runs without a launcher: that is how most people try the command.
        ranks = 0 if case.ranks == 1 and case.nodes is None else case.ranks
        result = launch.run("samples", case.dataset, *arguments, ranks=ranks, env=env)
        self.assert_lines(result, order_model.expected_lines(records, case.ranks, batch,
                                                             case.coalesce, iterations))

    def test_there_are_enough_databases(self):
        self.assertGreaterEqual(len(self.records), 30)

    def test_pairwise_combinations(self):
        for seed in range(launch.SCALE):
            for case in covering_cases(self.filled, seed):
                with self.subTest(**vars(case)):
                    self.run_case(case)

    def test_whole_epochs_of_every_database(self):
        for dataset in self.filled:
            records = self.records[dataset]
            batch, coalesce, epochs = max(2, min(len(records) - 1, 97)), 2, 1
            with self.subTest(dataset=dataset):
                iterations = order_model.iterations_of(epochs, len(records), 2, batch, coalesce)
                result = launch.run("samples", dataset, "--batch", batch, "--epochs", epochs,
                                    "--coalesce", coalesce, ranks=2)
                self.assert_lines(result, order_model.expected_lines(records, 2, batch, coalesce,
                                                                     iterations))

    def test_output_file_holds_what_would_be_printed(self):
        dataset = self.filled[0]
        arguments = ["samples", dataset, "--batch", "5", "--iterations", "3"]
        printed = launch.run(*arguments, ranks=2)
        written = launch.run(*arguments, "--output", self.path("lines"), ranks=2)
        self.assertEqual((printed.code, written.code), (0, 0), written.err)
        with open(self.path("lines"), encoding="ascii") as lines:
            self.assertEqual(lines.read(), printed.out)

    def test_an_empty_database_is_named_and_never_waited_for(self):
        empty = [dataset for dataset, records in self.records.items() if not records]
        self.assertTrue(empty)
        for dataset in empty:
            for strategy in ("lmdb", "lmm"):
                with self.subTest(dataset=dataset, strategy=strategy):
                    result = launch.run("samples", dataset, "--batch", "4", "--iterations", "1",
                                        "--strategy", strategy, ranks=2)
                    self.assertIn(result.code, (1, 2), result.err)
                    self.assertIn(os.path.basename(liblmdb.split_name(dataset)[0]), result.err)


if __name__ == "__main__":
    launch.main()
