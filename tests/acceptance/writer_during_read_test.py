#!/usr/bin/python3
"""A writer that updates and deletes during an epoch: the snapshot, or the error that names it.

The reader is slowed by a pipe from which the test takes lines one batch at a time, so that a writer
gets through many transactions while the epoch lasts. Whatever lines came out must be those of the
snapshot that was current at open; when they stop early, the reason must be "data set changed while
open".
"""

import os
import threading

import launch
import liblmdb
import order_model

ENTRIES = 3000
BATCH = 60
EPOCHS = 3
RANKS = 3
CHANGED = "data set changed while open"


def first_value(i):
    return bytes([i % 251]) * (400 + i % 300)


def copy_over(source, target, keeps_time):
    """In place, as `dd conv=notrunc` does, with or without the time of the last write."""
    times = os.stat(target)
    with open(source, "rb") as new, open(target, "r+b") as old:
        old.write(new.read())
    if keeps_time:
        os.utime(target, ns=(times.st_atime_ns, times.st_mtime_ns))


class Writer(threading.Thread):
    """Rewrites, deletes and adds records until told to stop; every value differs from the first."""

    def __init__(self, path, flags=0):
        super().__init__()
        self._path, self._flags = path, flags
        self._stop_asked = threading.Event()
        self.transactions = 0
        self.error = None

    def run(self):
        try:
            # Pages that a reader holds cannot be reused, so the file grows: slowly, and with room.
            with liblmdb.Environment(self._path, liblmdb.NOSYNC | self._flags,
                                     map_size=16 << 30) as environment:
                while not self._stop_asked.wait(0.002):
                    with environment.transaction() as transaction:
                        self.change_some(transaction)
                    self.transactions += 1
        except Exception as error:  # reported by the test, which runs in another thread
            self.error = error

    def change_some(self, transaction):
        turn = self.transactions
        for i in range(turn % 7, ENTRIES, 97):
            transaction.put(b"%08d" % i, b"new %d " % turn + bytes([(i + 1) % 251]) * (300 + i % 500))
        victim = b"%08d" % (turn * 13 % ENTRIES)
        transaction.delete(victim)
        transaction.put(victim, b"back again")

    def stop(self):
        self._stop_asked.set()
        self.join()


class WriterDuringRead(launch.AcceptanceCase):

    def database(self, name):
        path = self.path(name)
        liblmdb.write(path, [(b"%08d" % i, first_value(i)) for i in range(ENTRIES)], flags=0)
        return path

    def read_beside_a_writer(self, path, strategy, writer_flags=0):
        """(lines that came out, Result of the reader, number of transactions meanwhile)."""
        pipe = self.path("lines-" + os.path.basename(path))
        os.mkfifo(pipe)
        job = launch.Job([launch.COMMAND, "samples", path, "--batch", BATCH, "--epochs", EPOCHS,
                          "--strategy", *strategy, "--output", pipe], ranks=RANKS)
        writer = Writer(path, writer_flags)
        lines = []
        with open(pipe, encoding="ascii") as stream:
            lines.append(stream.readline())
            writer.start()
            for line in stream:
                lines.append(line)
                if len(lines) % BATCH == 0:
                    seen = writer.transactions
                    launch.wait_until(lambda: writer.transactions > seen or writer.error, 10,
                                      "the writer")
        writer.stop()
        result = job.wait(60)
        self.assertIsNone(writer.error)
        return [line.rstrip("\n") for line in lines if line], result, writer.transactions

    def assert_snapshot_or_error(self, expected, lines, result):
        for number, (got, wanted) in enumerate(zip(lines, expected)):
            self.assertEqual(got, wanted, f"line {number + 1} is not of the snapshot")
        if result.code == 0:
            self.assertEqual(len(lines), len(expected))
        else:
            self.assertEqual(result.code, 1, result.err)
            self.assertIn(CHANGED, result.err)

    def check(self, name, strategy, prepare=None, writer_flags=0):
        path = self.database(name)
        expected = list(order_model.expected_lines_of_epochs(liblmdb.walk(path), EPOCHS, RANKS,
                                                             BATCH, 1, "exact"))
        if prepare:
            prepare(path)
        lines, result, transactions = self.read_beside_a_writer(path, strategy, writer_flags)
        self.assertGreater(transactions, 2)
        self.assert_snapshot_or_error(expected, lines, result)
        return result

    def test_with_the_lock_file(self):
        """A reader slot is held, so the snapshot lasts: no error is acceptable for the baseline."""
        self.check("locked-mmap", ["lmm", "--engine", "mmap"])
        self.check("locked-pread", ["lmm", "--engine", "pread"])
        self.assertEqual(self.check("locked-lmdb", ["lmdb"]).code, 0)

    def test_without_a_lock_file(self):
        def remove_lock(path):
            os.remove(os.path.join(path, "lock.mdb"))

        for engine in ("mmap", "pread"):
            with self.subTest(engine=engine):
                result = self.check(f"unlocked-{engine}", ["lmm", "--engine", engine], remove_lock,
                                    liblmdb.NOLOCK)
                self.assertEqual(result.code, 1, "the writer recycled pages unseen")

    def test_a_lock_file_that_is_no_lock_file(self):
        """Whoever comes first may make a new one of it; both sides then go by that."""
        def spoil_lock(path):
            with open(os.path.join(path, "lock.mdb"), "wb") as lock:
                lock.write(b"not a lock file\n" * 1024)

        for engine in ("mmap", "pread"):
            with self.subTest(engine=engine):
                self.check(f"spoiled-{engine}", ["lmm", "--engine", engine], spoil_lock)

    def test_a_data_set_of_the_same_shape_that_is_copied_over_the_file(self):
        """Its meta pages are the same, so only the times of the file and its content tell."""
        for number, (strategy, keeps_time) in enumerate((
                (["lmm", "--engine", "mmap"], False), (["lmm", "--engine", "pread"], True),
                (["lmdb"], False), (["lmm-dio"], True))):
            with self.subTest(strategy=strategy, keeps_time=keeps_time):
                path, other = self.database(f"mine{number}"), self.path(f"other{number}")
                liblmdb.write(other, [(b"%08d" % i, bytes(b ^ 1 for b in first_value(i)))
                                      for i in range(ENTRIES)], flags=0)
                expected = list(order_model.expected_lines_of_epochs(
                    liblmdb.walk(path), EPOCHS, RANKS, BATCH, 1, "exact"))
                pipe = self.path(f"over{number}")
                os.mkfifo(pipe)
                job = launch.Job([launch.COMMAND, "samples", path, "--batch", BATCH, "--epochs",
                                  EPOCHS, "--coalesce", 1, "--output", pipe,
                                  "--strategy", *strategy], ranks=RANKS)
                with open(pipe, encoding="ascii") as stream:
                    lines = [stream.readline()]
                    copy_over(os.path.join(other, "data.mdb"), os.path.join(path, "data.mdb"),
                              keeps_time)
                    lines += stream.readlines()
                result = job.wait(60)
                lines = [line.rstrip("\n") for line in lines]
                self.assertEqual(lines, expected[:len(lines)])
                self.assertEqual(result.code, 1, "nobody noticed")
                self.assertIn("changed while it was open", result.err)

    def test_a_data_file_that_is_replaced_stays_the_old_one(self):
        """A rename over the open file leaves the reader with the file that it has opened."""
        path = self.database("replaced")
        other = self.path("other")
        liblmdb.write(other, [(b"%08d" % i, b"other") for i in range(ENTRIES)])
        expected = list(order_model.expected_lines(liblmdb.walk(path), RANKS, BATCH, 1, 50))
        pipe = self.path("pipe")
        os.mkfifo(pipe)
        job = launch.Job([launch.COMMAND, "samples", path, "--batch", BATCH, "--iterations", 50,
                          "--coalesce", 1, "--output", pipe], ranks=RANKS)
        with open(pipe, encoding="ascii") as stream:
            lines = [stream.readline()]
            os.replace(os.path.join(other, "data.mdb"), os.path.join(path, "data.mdb"))
            lines += stream.readlines()
        result = job.wait(60)
        self.assert_snapshot_or_error(expected, [line.rstrip("\n") for line in lines], result)


if __name__ == "__main__":
    launch.main()
