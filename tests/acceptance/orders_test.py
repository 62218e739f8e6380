#!/usr/bin/python3
"""`forebay samples` in orders that are new in every epoch, over every database of the zoo.

Which sample comes when is a matter of the seed; what must hold is this: the record of every line is
liblmdb's, an epoch is the data set, all ranks have the same iterations, another epoch has another
order, and neither strategy nor engine nor buffers change a single line.
FOREBAY_TEST_SCALE=k runs k sets of cases, drawn differently; the short run takes every second
database.
"""

import collections
import json
import os
import random

import launch
import liblmdb
from samples_oracle_test import make_databases

WAYS = (("--strategy", "lmdb"), ("--strategy", "lmm"), ("--strategy", "lmm-dm", "--buffers", 1),
        ("--strategy", "lmm-dio", "--buffers", 3), ("--engine", "mmap"),
        ("--engine", "pread", "--depth", 3), ("--engine", "uring"), ("--locate", "scan"),
        ("--buffers", 1), ("--gap-bytes", 0))
ENDS = ("exact", "drop", "pad", "wrap")


def orders_of(entries, ranks, generator):
    """Flags of orders that `entries` samples on `ranks` ranks can have."""
    orders = [("shuffled", "--window", generator.randint(1, 9)),
              ("shuffled", "--keep", generator.randint(1, min(entries, 6)))]
    if entries >= ranks:
        orders.append(("grouped", "--group", generator.randint(1, max(1, entries // ranks))))
    return orders


def may_drop(order, entries, ranks, batch):
    """Whether every rank has a full batch in any epoch, which `--end drop` asks for. A rank of a
    grouped order may get the last group, which is shorter."""
    fewest = entries // 2
    if order[0] == "grouped":
        group = order[2]
        groups = -(-entries // group)
        fewest = (groups // ranks - 1) * group + entries - (groups - 1) * group
        batch = -(-batch // ranks)
    return fewest >= batch


class OrdersEqualOracle(launch.AcceptanceCase):

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.paths = make_databases(os.path.join(cls.scratch, "databases"))
        records = {name: liblmdb.walk(path) for name, path in cls.paths.items()}
        cls.records = {name: walked for name, walked in records.items() if walked}

    def samples(self, dataset, ranks, *flags):
        result = launch.run("samples", self.paths[dataset], *flags, ranks=ranks,
                            env={"XDG_CACHE_HOME": self.path("cache")})
        self.assertEqual(result.code, 0, result.err)
        return [json.loads(line) for line in result.out.splitlines()]

    def check_records(self, dataset, lines):
        records = self.records[dataset]
        for line in lines:
            record = records[line["sample"]]
            self.assertEqual((line["key"], line["bytes"], line["xxh3"]),
                             (record.key, record.bytes, record.xxh3))

    def check_epochs(self, lines, entries, epochs, end, batch):
        times = collections.Counter((line["epoch"], line["sample"]) for line in lines
                                    if not line["repeat"])
        self.assertTrue(all(count == 1 for count in times.values()))
        if end == "drop":
            self.assertEqual(len(times), len(lines))
            self.assertLessEqual(len(times), entries // batch * batch * epochs)
        else:
            self.assertEqual(len(times), entries * epochs)
        iterations = {line["iteration"] for line in lines}
        self.assertEqual(iterations, set(range(len(iterations))))
        if end != "exact":
            sizes = collections.Counter(line["iteration"] for line in lines)
            self.assertEqual(set(sizes.values()), {batch})

    def test_every_database(self):
        for seed in range(launch.SCALE):
            generator = random.Random(seed)
            for dataset, records in launch.some(self.records.items(), every=2, on_mpich=4):
                entries, ranks = len(records), generator.choice((0, 2, 3, 4))
                batch = max(ranks, 2, entries // generator.randint(5, 25))
                order = generator.choice(orders_of(entries, max(ranks, 1), generator))
                drops = may_drop(order, entries, max(ranks, 1), batch)
                end = generator.choice(ENDS if drops else ("exact", "pad", "wrap"))
                flags = ("--order", *order, "--end", end, "--batch", batch, "--seed", seed,
                         "--epochs", 2)
                way = generator.choice(WAYS)
                with self.subTest(dataset=dataset, ranks=ranks, flags=flags, way=way):
                    lines = self.samples(dataset, ranks, *flags, *way)
                    self.check_records(dataset, lines)
                    self.check_epochs(lines, entries, 2, end, batch)

    def test_how_samples_are_read_changes_no_line(self):
        turn = 0
        for dataset in ("mixed_sizes", "in_order"):
            entries = len(self.records[dataset])
            for order in orders_of(entries, 3, random.Random(1)):
                flags = ("--order", *order, "--batch", entries // 10, "--seed", 3)
                expected = self.samples(dataset, 3, *flags)
                turn += 1
                for way in launch.some(WAYS[turn % 5:], every=5):
                    with self.subTest(dataset=dataset, order=order, way=way):
                        self.assertEqual(self.samples(dataset, 3, *flags, *way), expected)

    def test_epochs_and_seeds_have_orders_of_their_own(self):
        flags = ("--order", "shuffled", "--batch", 50)

        def ids(epoch, seed):
            lines = self.samples("in_order", 0, *flags, "--epochs", epoch + 1, "--seed", seed)
            return [line["sample"] for line in lines if line["epoch"] == epoch]

        self.assertEqual(ids(0, 1), ids(0, 1))
        self.assertNotEqual(ids(0, 1), ids(0, 2))
        self.assertNotEqual(ids(0, 1), ids(1, 1))

    def test_a_list_is_followed(self):
        with open(self.path("list"), "w", encoding="ascii") as file:
            file.write("5 3 5\n0\n")
        lines = self.samples("in_order", 2, "--order", "listed", "--list", self.path("list"),
                             "--batch", 2)
        by_iteration = sorted(lines, key=lambda line: (line["iteration"], line["rank"]))
        self.assertEqual([line["sample"] for line in by_iteration], [5, 3, 5, 0])
        self.check_records("in_order", lines)

    def test_what_cannot_be_is_refused(self):
        for flags, word in ((("--order", "grouped"), "--group"),
                            (("--order", "grouped", "--group", 10**9), "larger than the data set"),
                            (("--order", "listed"), "--list"),
                            (("--order", "listed", "--list", "/nowhere"), "/nowhere"),
                            (("--order", "in_memory", "--memory-ratio", 2), "memory-ratio"),
                            (("--keep", 3), "strided"),
                            (("--order", "shuffled", "--coalesce", 3), "--coalesce"),
                            (("--order", "shuffled", "--end", "drop"), "drop")):
            with self.subTest(flags=flags):
                batch = 10**6 if "drop" in flags else 4
                result = launch.run("samples", self.paths["in_order"], "--batch", batch, *flags,
                                    ranks=2)
                self.assertIn(result.code, (1, 2), result.err)
                self.assertIn(word, result.err)


if __name__ == "__main__":
    launch.main()
