#!/usr/bin/python3
"""With a recipe, opening and the first batch cost the same for any number of records.

What is read is seen from outside, by strace: meta pages, the sidecar, and the leaves and records of
the batch, each at most twice (the first record also tells the codec).
"""

import json
import os
import re
import shutil
import struct
import tempfile
import unittest
from dataclasses import dataclass

import launch
import liblmdb
import order_model

PAGE = 4096
BRANCH, LEAF, OVERFLOW, META = 1, 2, 4, 8
MANY = 200_000 if launch.SCALE == 1 else 10_000_000
BATCH = 64
STRATEGIES = ("auto", "lmm-dio-prov", "lmm-dio-prov-coal", "lmm-dio-prov-coal-stag")
READ = re.compile(r'p?read(?:64|v2?)?\(\d+<([^>]*)>.*?, (\d+), (\d+)\) += (\d+)$')


@dataclass(frozen=True)
class Read:
    file: str
    offset: int
    length: int


class FirstBatch(launch.AcceptanceCase):

    def packed(self, name, shape, count):
        path = self.path(name)
        if not os.path.exists(path):
            result = launch.run("pack", "-", path, "--from", "synthetic", "--shape", shape,
                                "--count", count, "--json", timeout=3600)
            self.assertEqual(result.code, 0, result.err)
            self.assertEqual(json.loads(result.out)["sidecar"], "recipe")
        return path

    def first_batch(self, path, *arguments, prefix=()):
        return launch.run("samples", path, "--batch", BATCH, "--iterations", 1, "--stats",
                          *arguments, prefix=prefix)

    def reads(self, path, *arguments):
        """All reads of data set and sidecar by a run that delivers one batch."""
        folder = tempfile.mkdtemp(dir=self.scratch)
        result = self.first_batch(path, *arguments, prefix=(
            "strace", "-ff", "-y", "-o", os.path.join(folder, "thread"), "-e",
            "trace=pread64,preadv,preadv2,read,readv"))
        self.assertEqual(result.code, 0, result.err)
        found = []
        for name in os.listdir(folder):
            with open(os.path.join(folder, name), encoding="utf-8", errors="replace") as lines:
                for line in lines:
                    if "data.mdb" in line:
                        match = READ.search(line.rstrip())
                        self.assertTrue(match, line)
                        found.append(Read(match[1], int(match[3]), int(match[4])))
        return found

    def pages_of(self, path, reads):
        """{number of a page of the data file that was read: its kind}; a run has one header."""
        kinds = {}
        with open(path, "rb") as file:
            for read in reads:
                page, end = read.offset // PAGE, -(-(read.offset + read.length) // PAGE)
                while page < end:
                    file.seek(page * PAGE)
                    number, _, flags, count = struct.unpack("<QHHI", file.read(16))
                    self.assertEqual(number, page)
                    kinds[page] = flags & (BRANCH | LEAF | OVERFLOW | META)
                    page += count if flags & OVERFLOW else 1
        return kinds

    @unittest.skipUnless(shutil.which("strace"), "needs strace")
    def test_nothing_but_meta_pages_sidecar_and_the_batch_is_read(self):
        for name, shape in (("small", "1x2x2"), ("images", "3x16x16")):
            path = self.packed(name, shape, MANY if name == "small" else 20_000)
            data, sidecar = (os.path.join(path, file) for file in ("data.mdb", "data.mdb.forebay"))
            for strategy in STRATEGIES:
                with self.subTest(data=name, strategy=strategy):
                    reads = self.reads(path, "--strategy", strategy, "--engine", "pread",
                                       "--gap-bytes", 0, "--convention", "plain")
                    self.assertEqual({read.file for read in reads}, {data, sidecar})
                    of_sidecar = [read.length for read in reads if read.file == sidecar]
                    self.assertEqual(sum(of_sidecar), os.path.getsize(sidecar))
                    kinds = self.pages_of(data, [read for read in reads if read.file == data])
                    self.assertNotIn(BRANCH, kinds.values())
                    self.assertLessEqual({page for page, kind in kinds.items() if kind == META},
                                         {0, 1})
                    self.assert_few(path, [kind for kind in kinds.values() if kind != META])

    @unittest.skipUnless(shutil.which("strace"), "needs strace")
    def test_recognising_a_convention_looks_at_both_ends(self):
        """The pages on the way to the first and the last key, and nothing else beside the batch."""
        path = self.packed("small", "1x2x2", MANY)
        data = os.path.join(path, "data.mdb")
        arguments = ("--engine", "pread", "--gap-bytes", 0)
        pages = [set(self.pages_of(data, [read for read in self.reads(path, *more, *arguments)
                                          if read.file == data]).items())
                 for more in (("--convention", "plain"), ())]
        depth = json.loads(launch.run("inspect", path, "--json", timeout=3600).out)["depth"]
        together = 4  # pages that are read with one
        self.assertLessEqual(len(pages[1] - pages[0]), 2 * depth * together)

    def assert_few(self, path, kinds):
        """As many leaves and runs as the batch lies on."""
        records = self.first_records(path)
        self.assertLessEqual(kinds.count(OVERFLOW), len(records))
        node = max(len(key) + 10 + (size if size < PAGE // 2 else 8) for key, size in records)
        fullest = (PAGE - 16) // node
        self.assertLessEqual(kinds.count(LEAF), -(-len(records) // max(1, fullest - 1)) + 1)

    def first_records(self, path):
        with liblmdb.Environment(path, liblmdb.RDONLY) as environment:
            with environment.transaction(write=False) as transaction:
                records = transaction.records()
                return [(key, size) for (key, _, size), _ in zip(records, range(BATCH))]

    def test_every_engine_asks_for_as_little(self):
        path = self.packed("small", "1x2x2", MANY)
        for engine in ("mmap", "pread", "uring"):
            with self.subTest(engine=engine):
                result = self.first_batch(path, "--engine", engine)
                self.assertEqual(result.code, 0, result.err)
                figures = json.loads(result.err.splitlines()[-1])["all"]
                self.assertLessEqual(figures["requests"], 4)
                self.assertLessEqual(figures["bytes_requested"], 4 * PAGE)
                self.assertGreater(figures["first_batch_seconds"], 0)
                records = self.first_records(path)
                self.assertEqual(figures["bytes_delivered"], sum(size for _, size in records))

    def test_ten_times_the_records_cost_no_more(self):
        """In reads, bytes and index memory: clocks are no witnesses on a busy machine."""
        costs = []
        for name, count in (("small", MANY), ("tenth", MANY // 10)):
            result = self.first_batch(self.packed(name, "1x2x2", count), "--engine", "pread")
            self.assertEqual(result.code, 0, result.err)
            figures = json.loads(result.err.splitlines()[-1])["all"]
            costs.append((figures["requests"], figures["bytes_requested"]))
            self.assertLess(figures["index_bytes"], 64 * 1024 + figures["samples"] * 8 +
                            2 * os.path.getsize(self.path(f"{name}/data.mdb.forebay")))
        # A small tree is looked at: it might hold nothing but named databases.
        self.assertLessEqual(costs[0][0], costs[1][0])
        self.assertLessEqual(costs[0][1], costs[1][1])

    def test_the_batch_is_right(self):
        path = self.packed("tenth", "1x2x2", MANY // 10)
        result = launch.run("samples", path, "--batch", BATCH, "--iterations", 2)
        self.assert_lines(result, order_model.expected_lines(liblmdb.walk(path), 1, BATCH, 1, 2))


if __name__ == "__main__":
    launch.main()
