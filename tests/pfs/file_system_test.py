#!/usr/bin/python3
"""forebay-pfs as one process sees it: contents, counts, separate caches, faults, and its end.

Counts are checked, never times: requests of known patterns, their bytes, and the seeks they cause.
Servers are fast and free of latency (--force), where a test says nothing else.
"""

import contextlib
import errno
import json
import mmap
import os
import random
import signal
import subprocess
import sys
import threading
import time

import pfs_case

sys.path.insert(0, os.path.join(pfs_case.ROOT, "bench", "pfs"))
import nodes  # noqa: E402 (found through the line above)

_FAST = ("--force", "--bandwidth", "10GB/s", "--latency", "0ms", "--seek-penalty", "0ms")
_MIB = 1 << 20


class Mounted(pfs_case.PfsCase):

    def mount(self, *options, count=1, model=_FAST):
        """Mounts m0, m1, ... until the test ends; returns where `data` is on each."""
        self.points = [os.path.join(self.backing + "-mounts", f"m{i}") for i in range(count)]
        for point in self.points:
            os.makedirs(point)
        self.file_system = nodes.FileSystem(pfs_case.PFS, self.backing, self.points,
                                            os.path.dirname(self.points[0]), [*model, *options])
        self.addCleanup(self.stop)
        return [os.path.join(point, "data") for point in self.points]

    def stop(self):
        self.file_system.stop()
        self.assertEqual(pfs_case.mounts(self.backing), [])

    def stats(self):
        return self.file_system.command("stats")

    def open(self, path, flags=0):
        descriptor = os.open(path, os.O_RDONLY | flags)
        self.addCleanup(self.close, descriptor)
        return descriptor

    @staticmethod
    def close(descriptor):
        with contextlib.suppress(OSError):  # ENOTCONN where the test has ended the file system
            os.close(descriptor)

    def open_direct(self, path):
        """Page-aligned reads of this descriptor reach the file system one by one."""
        return self.open(path, os.O_DIRECT)

    @staticmethod
    def read_direct(descriptor, offset, length):
        buffer = mmap.mmap(-1, length)  # aligned
        got = os.preadv(descriptor, [buffer], offset)
        return buffer[:got]


class Contents(Mounted):

    def test_reads_at_random_places(self):
        data, = self.mount()
        descriptor = self.open(data)
        places = random.Random(2)
        for _ in range(200):
            offset, length = places.randrange(len(self.bytes) + 10), places.randrange(1, 300_000)
            self.assertEqual(os.pread(descriptor, length, offset),
                             self.bytes[offset:offset + length])

    def test_uncached_reads_up_to_the_end(self):
        data, = self.mount()
        descriptor = self.open_direct(data)
        for offset in (0, 4096, 5 * _MIB, len(self.bytes) - 4096):
            self.assertEqual(self.read_direct(descriptor, offset, 3 * _MIB),
                             self.bytes[offset:offset + 3 * _MIB])

    def test_mappings(self):
        data, = self.mount()
        for advice in (mmap.MADV_NORMAL, mmap.MADV_RANDOM):
            with mmap.mmap(self.open(data), 0, mmap.MAP_SHARED, mmap.PROT_READ) as mapping:
                mapping.madvise(advice)
                self.assertEqual(mapping[5_000_000:5_100_000], self.bytes[5_000_000:5_100_000])
                self.assertEqual(mapping[:], self.bytes)

    def test_folders_links_and_names(self):
        os.symlink("folder/small", os.path.join(self.backing, "link"))
        self.mount()
        point = self.points[0]
        self.assertEqual(sorted(os.listdir(point)), ["data", "folder", "link"])
        with open(os.path.join(point, "link"), "rb") as file:
            self.assertEqual(file.read(), b"small file\n")
        self.assertFalse(os.path.exists(os.path.join(point, "missing")))
        self.assertEqual(os.stat(os.path.join(point, "data")).st_size, len(self.bytes))

    def test_writes_are_refused(self):
        data, = self.mount()
        for action in (lambda: os.open(data, os.O_RDWR), lambda: os.unlink(data),
                       lambda: os.mkdir(data + "2"), lambda: os.truncate(data, 0)):
            with self.assertRaises(OSError) as caught:
                action()
            self.assertEqual(caught.exception.errno, errno.EROFS)

    def test_direct_io_refuses_shared_mappings_and_reads_right(self):
        data, = self.mount("--direct-io")
        descriptor = self.open(data)
        with self.assertRaises(OSError) as caught:
            mmap.mmap(descriptor, 0, mmap.MAP_SHARED, mmap.PROT_READ)
        self.assertEqual(caught.exception.errno, errno.ENODEV)
        self.assertEqual(os.pread(descriptor, 1000, 12_345), self.bytes[12_345:13_345])

    def test_a_truncated_file_and_a_replaced_one_show(self):
        data, = self.mount("--attr-timeout", "0s")
        descriptor = self.open(data)
        self.assertEqual(os.pread(descriptor, 10, 6 * _MIB), self.bytes[6 * _MIB:6 * _MIB + 10])
        os.truncate(self.data, 5 * _MIB)
        self.assertEqual(os.fstat(descriptor).st_size, 5 * _MIB)
        self.assertEqual(os.pread(descriptor, 10, 6 * _MIB), b"")
        with open(self.data + ".new", "wb") as file:
            file.write(b"another")
        os.replace(self.data + ".new", self.data)
        with open(data, "rb") as file:
            self.assertEqual(file.read(), b"another")
        self.assertEqual(os.fstat(descriptor).st_size, 5 * _MIB)


class Counts(Mounted):

    def test_one_reader_in_order_seeks_once_a_server(self):
        data, = self.mount("--servers", "4", "--stripe", "64KiB")
        descriptor = self.open_direct(data)
        for offset in range(0, len(self.bytes), 256 << 10):
            self.read_direct(descriptor, offset, 256 << 10)
        stats = self.stats()
        reader, = stats["clients"]
        self.assertEqual(reader["requests"], 32)
        self.assertEqual(reader["bytes"], len(self.bytes))
        self.assertEqual(reader["sizes"], {str(256 << 10): 32})
        self.assertEqual(reader["seeks"], 4)
        for server in stats["servers"]:
            self.assertEqual(server["requests"], 32)
            self.assertEqual(server["bytes"], len(self.bytes) // 4)
            self.assertEqual(server["sizes"], {str(64 << 10): 32})
            self.assertEqual(server["seeks"], 1)

    def test_two_nodes_in_turns_seek_for_every_request(self):
        files = self.mount("--servers", "1", count=2)
        readers = [self.open_direct(file) for file in files]
        for step in range(16):
            for number, reader in enumerate(readers):
                self.read_direct(reader, number * 4 * _MIB + step * 65536, 65536)
        stats = self.stats()
        self.assertEqual(stats["servers"][0]["seeks"], 32)
        self.assertEqual([client["seeks"] for client in stats["clients"]], [16, 16])
        self.assertEqual([client["requests"] for client in stats["clients"]], [16, 16])

    def test_servers_lose_what_they_read_ahead_for_more_nodes_than_they_keep_streams(self):
        for nodes_in_turns, hits in ((2, 24), (3, 0)):
            with self.subTest(nodes=nodes_in_turns):
                files = self.mount("--servers", "1", "--server-read-ahead", "192KiB",
                                   "--server-streams", "2", count=nodes_in_turns)
                readers = [self.open_direct(file) for file in files]
                for step in range(16):
                    for number, reader in enumerate(readers):
                        self.read_direct(reader, number * 2 * _MIB + step * 65536, 65536)
                server, = self.stats()["servers"]
                self.assertEqual(server["memory_bytes"], hits * 65536)
                self.assertEqual(server["seeks"], nodes_in_turns * 16 - hits)
                self.stop()
                for point in self.points:
                    os.rmdir(point)

    def test_every_mount_has_its_own_cache(self):
        files = self.mount(count=2)
        for number, file in enumerate(files):
            with open(file, "rb") as first:
                self.assertEqual(first.read(), self.bytes)
            before = [client["bytes"] for client in self.stats()["clients"]]
            self.assertGreaterEqual(before[number], len(self.bytes))
            with open(file, "rb") as again:
                again.read()
            self.assertEqual([client["bytes"] for client in self.stats()["clients"]], before)
            self.assertEqual(before[1 - number] > 0, number == 1)

    def test_read_ahead_sets_the_size_of_requests(self):
        for kilobytes in (64, 1024):
            with self.subTest(kilobytes=kilobytes):
                data, = self.mount("--read-ahead-kb", str(kilobytes))
                with open(data, "rb", buffering=0) as file:
                    while file.read(4096):
                        pass
                largest = max(map(int, self.stats()["clients"][0]["sizes"]))
                self.assertEqual(largest, kilobytes << 10)
                self.stop()
                os.rmdir(self.points[0])

    def test_reset_starts_anew(self):
        data, = self.mount()
        self.read_direct(self.open_direct(data), 0, 4096)
        self.file_system.command("reset")
        stats = self.stats()
        self.assertEqual(stats["clients"][0]["requests"], 0)
        self.assertEqual(sum(server["requests"] for server in stats["servers"]), 0)
        self.assertFalse(stats["void"])


class Faults(Mounted):

    def test_a_read_error_hits_its_page_and_can_be_switched_off(self):
        data, = self.mount("--fail-at", "data:1000000")
        descriptor = self.open(data)
        with self.assertRaises(OSError) as caught:
            os.pread(descriptor, 10, 1_000_000)
        self.assertEqual(caught.exception.errno, errno.EIO)
        self.assertEqual(os.pread(descriptor, 10, 1_010_000), self.bytes[1_010_000:1_010_010])
        self.assertGreater(self.stats()["clients"][0]["failed"], 0)
        self.file_system.command("clear")
        self.assertEqual(os.pread(descriptor, 10, 1_000_000), self.bytes[1_000_000:1_000_010])

    def test_short_reads(self):
        data, = self.mount("--direct-io", "--short-reads")
        self.assertEqual(os.pread(self.open(data), 1000, 500), self.bytes[500:1000])
        self.file_system.command("short off")
        self.assertEqual(os.pread(self.open(data), 1000, 500), self.bytes[500:1500])

    def test_a_stalled_server_holds_its_readers_and_no_others(self):
        data, = self.mount("--servers", "2", "--stripe", "64KiB")
        self.file_system.command("stall data 0 3600s")
        # Which of the two servers has the first stripe depends on the inode's number.
        stalled, beside = self.open_direct(data), self.open_direct(data)
        outcome = []
        thread = threading.Thread(target=lambda: outcome.append(self.error_of(stalled)))
        thread.start()
        while self.stats()["clients"][0]["requests"] == 0:
            time.sleep(0.01)
        self.assertEqual(self.read_direct(beside, 65536, 4096), self.bytes[65536:69632])
        self.assertEqual(outcome, [])
        self.file_system.stop()  # wakes the reader, with an error
        thread.join(10)
        self.assertEqual(outcome, [errno.EIO])

    def error_of(self, descriptor):
        try:
            self.read_direct(descriptor, 0, 4096)
        except OSError as error:
            return error.errno
        return 0

    def test_unknown_faults_are_refused(self):
        self.mount()
        for line in ("explode", "fail missing 1", "fail data"):
            with self.assertRaises(nodes.NodesError):
                self.file_system.command(line)


class Program(Mounted):

    def run_program(self, *options):
        point = os.path.join(self.backing, "folder")
        return subprocess.run([pfs_case.PFS, self.backing, point, *options], text=True,
                              capture_output=True, timeout=30, check=False)

    def test_what_cannot_be_kept_is_refused(self):
        for options in (("--bandwidth", "51MB/s"), ("--latency", "0.5ms"), ("--servers", "0"),
                        ("--stripe", "1"), ("--fail-at", "data"), ("--stall-at", "data:1"),
                        ("--latency", "soon")):
            with self.subTest(options=options):
                done = self.run_program(*options)
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertTrue(done.stderr.startswith("forebay-pfs: "), done.stderr)

    def test_mount_points_that_are_none_are_refused(self):
        done = subprocess.run([pfs_case.PFS, self.backing, os.path.join(self.scratch, "missing")],
                              text=True, capture_output=True, timeout=30, check=False)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertEqual(pfs_case.mounts(self.backing), [])

    def test_signals_write_and_reset_statistics_and_the_end_writes_them(self):
        path = os.path.join(self.scratch, "stats.json")
        data, = self.mount("--stats", path)
        self.read_direct(self.open_direct(data), 0, 4096)
        self.file_system.process.send_signal(signal.SIGUSR1)
        self.assertEqual(self.written(path)["clients"][0]["requests"], 1)
        self.file_system.process.send_signal(signal.SIGUSR2)
        while self.stats()["clients"][0]["requests"] != 0:
            time.sleep(0.01)
        self.file_system.stop()
        self.assertEqual(self.written(path)["clients"][0]["requests"], 0)

    @staticmethod
    def written(path, timeout=10):
        end = time.monotonic() + timeout
        while time.monotonic() < end:
            try:
                with open(path, encoding="utf-8") as file:
                    return json.load(file)
            except (OSError, ValueError):
                time.sleep(0.02)
        raise TimeoutError(path)


if __name__ == "__main__":
    pfs_case.main()
