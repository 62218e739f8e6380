#!/usr/bin/python3
"""Little shared memory, many processes, read-only places, odd files: right samples or clear words."""

import os
import re
import shutil
import subprocess
import unittest

import launch
import liblmdb
import order_model

STRATEGIES = (["lmdb"], ["lmm", "--engine", "mmap"], ["lmm", "--engine", "pread"])
MIB = 1 << 20
SMALL_ORDERS = ([], ["--order", "shuffled"], ["--order", "grouped", "--group", "10"],
                ["--order", "in_memory"], ["--order", "shuffled", "--hold", "memory"])
PROCESSES = 130  # LMDB's lock file has room for 126 readers


class ScarceResources(launch.AcceptanceCase):

    def small_database(self, name):
        return liblmdb.write(self.path(name), [(b"%08d" % i, bytes([i % 251]) * (300 + i))
                                               for i in range(500)])

    def read_right(self, dataset, ranks=3, batch=20, iterations=30, prefix=(), strategies=STRATEGIES):
        records = liblmdb.walk(dataset)
        expected = list(order_model.expected_lines(records, max(ranks, 1), batch, 1, iterations))
        for strategy in strategies:
            with self.subTest(strategy=" ".join(strategy)):
                result = launch.run("samples", dataset, "--batch", batch, "--iterations",
                                    iterations, "--strategy", *strategy, ranks=ranks, prefix=prefix)
                self.assert_lines(result, expected)


    def deliver_all(self, dataset, samples, *order, ranks=0, prefix=()):
        result = launch.run("samples", dataset, "--batch", 20, "--epochs", 1, *order, ranks=ranks,
                            prefix=prefix)
        self.assertEqual(result.code, 0, result.err)
        self.assertEqual(len(set(re.findall(r'"sample":(\d+)', result.out))), samples)


class SharedMemory(ScarceResources):

    def setUp(self):
        super().setUp()
        if not launch.private_shared_memory:
            self.skipTest("needs the right to mount a small /dev/shm")
        launch.resize_shared_memory("64m")
        self.addCleanup(launch.resize_shared_memory, "4g")

    def test_too_little_names_needed_and_free_bytes(self):
        """One process alone keeps its stage in private memory; ranks that share one cannot."""
        path = liblmdb.write(self.path("huge"), [(b"%04d" % i, bytes(4 * MIB)) for i in range(60)],
                             commit_every=20)
        result = launch.run("samples", path, "--batch", 50, "--iterations", 2, "--strategy", "lmm",
                            ranks=3)
        self.assertEqual(result.code, 1, result.err)
        lines = result.error_lines()
        self.assertEqual(len(lines), 1, result.err)
        self.assertIn("/dev/shm", lines[0])
        self.assertRegex(lines[0], r"\d+ .*needed.*\d+ .*free")

    def test_a_small_run_still_fits(self):
        self.read_right(self.small_database("fits"))

    def test_eight_mebibytes_are_enough_for_small_data_in_every_order(self):
        """A container's /dev/shm may be this small; a data set that does not fit says so at open."""
        if launch.FLAVOUR == "mpich":
            self.skipTest("MPICH's own segments need more")
        launch.resize_shared_memory("8m")
        path = self.small_database("small")
        for order in SMALL_ORDERS:
            with self.subTest(order=" ".join(order)):
                self.deliver_all(path, 500, *order, ranks=4)
        large = liblmdb.write(self.path("large"), [(b"%04d" % i, bytes(MIB)) for i in range(60)])
        for order in SMALL_ORDERS:
            with self.subTest(order=" ".join(order), large=True):
                result = launch.run("samples", large, "--batch", 20, "--epochs", 1, *order, ranks=4)
                self.assertEqual((result.code, result.out), (1, ""), result.err)
                self.assertEqual(len(result.error_lines()), 1, result.err)
                self.assertRegex(result.error_lines()[0], "shared memory.*larger")


class AddressSpace(ScarceResources):

    def test_small_data_fit_into_a_small_address_space(self):
        """By default a stage of 2.5 GiB would be mapped, of which ten records use a page or two."""
        path = self.small_database("small")
        limited = ("sh", "-c", 'ulimit -v 1000000; exec "$@"', "sh")
        for order in SMALL_ORDERS:
            with self.subTest(order=" ".join(order)):
                self.deliver_all(path, 500, *order, prefix=limited)

    def test_threads_do_not_take_what_little_there_is(self):
        """Each would reserve an arena of 64 MiB: 8 of them left no room for the next one's stack."""
        path = liblmdb.write(self.path("ten"), [(b"%d" % i, bytes([i]) * 100) for i in range(10)])
        for limit in (400000, 500000, 600000):
            limited = ("sh", "-c", f'ulimit -v {limit}; exec "$@"', "sh")
            for order in SMALL_ORDERS:
                with self.subTest(limit=limit, order=" ".join(order)):
                    self.deliver_all(path, 10, *order, prefix=limited)


class ManyProcesses(ScarceResources):

    def start_crowd(self, path, strategy):
        """First line of each process, or what it says on stderr; all are open at the same time."""
        crowd = [subprocess.Popen(
            [launch.COMMAND, "samples", path, "--batch", "500", "--epochs", "50",
             "--strategy", *strategy], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True) for _ in range(PROCESSES)]
        try:
            # Nobody empties the pipes, so those that came first wait for those that come last.
            return [(process.stdout.readline() or process.stderr.read()).rstrip("\n")
                    for process in crowd]
        finally:
            for process in crowd:
                process.kill()
                process.communicate()

    def test_more_processes_than_lmdb_has_reader_slots(self):
        path = self.small_database("crowd")
        first = next(order_model.expected_lines(liblmdb.walk(path), 1, 500, 1, 1))
        for strategy in STRATEGIES[1:]:
            with self.subTest(strategy=" ".join(strategy)):
                self.assertEqual(self.start_crowd(path, strategy), [first] * PROCESSES)

    def test_the_baseline_says_when_reader_slots_run_out(self):
        """liblmdb itself takes 126 readers and no more: right samples, or its reason in a line."""
        path = self.small_database("crowd-lmdb")
        first = next(order_model.expected_lines(liblmdb.walk(path), 1, 500, 1, 1))
        said = self.start_crowd(path, ["lmdb"])
        self.assertGreaterEqual(said.count(first), 120)
        for line in set(said) - {first}:
            self.assertRegex(line, "^forebay: error: .*MDB_READERS_FULL")

    @unittest.skipIf(launch.SCALE == 1, "starts 130 ranks: part of the long run")
    def test_more_ranks_than_lmdb_has_reader_slots(self):
        self.read_right(self.small_database("ranks"), ranks=PROCESSES, batch=140, iterations=4)


class OddPlaces(ScarceResources):

    @unittest.skipUnless(os.geteuid() == 0 and shutil.which("setpriv"), "needs root and setpriv")
    def test_read_only_directory(self):
        user = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")
        os.chmod(self.scratch, 0o755)
        for lock in (True, False):
            path = self.small_database(f"readonly-{lock}")
            if not lock:
                os.remove(os.path.join(path, "lock.mdb"))
            for name in os.listdir(path):
                os.chmod(os.path.join(path, name), 0o444)
            os.chmod(path, 0o555)
            with self.subTest(lock=lock):
                self.read_right(path, ranks=0, prefix=user)
                self.assertEqual("lock.mdb" in os.listdir(path), lock)

    def test_missing_lock_file(self):
        path = self.small_database("unlocked")
        os.remove(os.path.join(path, "lock.mdb"))
        self.read_right(path)

    def test_file_and_directory_name_the_same_data(self):
        path = self.small_database("both")
        self.read_right(os.path.join(path, "data.mdb"))

    def test_records_beyond_three_gibibytes_of_a_sparse_file(self):
        path = self.path("sparse")
        with liblmdb.Environment(path, liblmdb.NOSYNC | liblmdb.WRITEMAP, 4 << 30) as environment:
            with environment.transaction() as transaction:
                transaction.reserve(b"hole", 3 << 30)
                for i in range(200):
                    transaction.put(b"r%06d" % i, bytes([i]) * (100 + 50 * i))
            with environment.transaction() as transaction:
                transaction.delete(b"hole")
        status = os.stat(os.path.join(path, "data.mdb"))
        self.assertGreater(status.st_size, 3 << 30)
        self.assertLess(status.st_blocks * 512, 1 << 30)
        self.read_right(path)


if __name__ == "__main__":
    launch.main()
