#!/usr/bin/python3
"""`forebay samples` where samples come out of the memory of all ranks: right on any layout of nodes,
refused where they do not fit, and gone with all of it when a rank dies or the job is told to end.

The short run draws from the products of flags, layouts and victims so that each of them occurs.
"""

import collections
import json
import os
import signal
import time

import launch
import liblmdb

LIMIT = 10
RANKS = 4
LAYOUTS = ({}, {"FOREBAY_RANKS_PER_NODE": 1}, {"FOREBAY_RANKS_PER_NODE": 2})
ONE_NODE, ONE_EACH, NODES_OF_TWO = LAYOUTS
SHUFFLED = ("--order", "shuffled")
WHOLE = ("--order", "in_memory")
PART = ("--order", "in_memory", "--memory-ratio", 0.3)
LIST = 40


def some_layouts(turn):
    """Another one at each turn of the short run, where starts are dear; else all."""
    return LAYOUTS if launch.SCALE > 1 else LAYOUTS[turn % len(LAYOUTS):][:1]


class InMemory(launch.AcceptanceCase):

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.dataset = liblmdb.write(
            os.path.join(cls.scratch, "data"),
            [(b"%08d" % i, bytes([i % 251]) * (500 + i * 7919 % 6000)) for i in range(1009)])
        cls.records = liblmdb.walk(cls.dataset)
        cls.list = os.path.join(cls.scratch, "list")
        with open(cls.list, "w", encoding="ascii") as file:
            file.write(" ".join(str(i * 37 % 1009) for i in range(LIST)))

    def lines(self, *flags, env=None, ranks=RANKS):
        result = launch.run("samples", self.dataset, "--batch", 52, "--seed", 3, *flags,
                            ranks=ranks, env=env)
        self.assertEqual(result.code, 0, result.err[-2000:])
        lines = [json.loads(line) for line in result.out.splitlines()]
        for line in lines:
            record = self.records[line["sample"]]
            self.assertEqual((line["key"], line["bytes"], line["xxh3"]),
                             (record.key, record.bytes, record.xxh3))
        return lines

    def check_epochs(self, lines, epochs, times=1):
        count = collections.Counter((line["epoch"], line["sample"]) for line in lines)
        self.assertEqual(len(count), len(self.records) * epochs)
        self.assertEqual(set(count.values()), {times})

    def test_layouts_of_nodes_change_nothing(self):
        for flags, times, layouts in (
                (PART, 1, LAYOUTS),
                (WHOLE, 1, launch.some(LAYOUTS, every=2)),
                (("--order", "grouped", "--group", 50, "--reuse", 2, "--reuse-scope", "global"), 2,
                 launch.some(LAYOUTS[::-1], every=2))):
            expected = None
            for env in layouts:
                with self.subTest(flags=flags, env=env):
                    lines = self.lines(*flags, "--epochs", 2, env=env)
                    self.check_epochs(lines, 2, times)
                    expected = expected or lines
                    self.assertEqual(lines, expected)

    def test_what_holds_the_data_changes_nothing(self):
        for turn, flags in enumerate(((*SHUFFLED, "--keep", 3),
                                      ("--order", "listed", "--list", self.list),
                                      ("--order", "grouped", "--group", 19))):
            expected = self.lines(*flags, "--epochs", 2)
            for env in some_layouts(turn):
                with self.subTest(flags=flags, env=env):
                    held = self.lines(*flags, "--epochs", 2, "--hold", "memory", env=env)
                    self.assertEqual(held, expected)

    def test_reuse_in_a_node_recombines_in_each_node(self):
        flags = (*SHUFFLED, "--reuse", 3, "--reuse-scope", "node", "--epochs", 1)
        for env in launch.some(LAYOUTS[::-1], every=2):
            with self.subTest(env=env):
                self.check_epochs(self.lines(*flags, env=env), 1, 3)

    def test_figures_tell_what_was_read_and_moved(self):
        result = launch.run("samples", self.dataset, "--batch", 52, *WHOLE, "--epochs", 3,
                            "--stats", "--output", "/dev/null", ranks=RANKS,
                            env={"FOREBAY_RANKS_PER_NODE": 2})
        self.assertEqual(result.code, 0, result.err)
        figures = next(json.loads(line) for line in result.err.splitlines()
                       if line.startswith('{"all"'))["all"]
        entries = len(self.records)
        self.assertEqual(figures["samples_read"], entries)
        self.assertEqual(figures["samples_fetched"], 3 * entries)
        self.assertAlmostEqual(figures["saved_share"], 2 / 3)
        self.assertGreater(figures["near_bytes"], figures["bytes_delivered"] / 3)
        self.assertGreater(figures["far_bytes"], figures["bytes_delivered"] / 3)

    def test_what_does_not_fit_is_refused(self):
        for turn, flags in enumerate((WHOLE, PART, (*SHUFFLED, "--hold", "memory"))):
            for env in some_layouts(turn):
                with self.subTest(flags=flags, env=env):
                    result = launch.run("samples", self.dataset, "--batch", 52, *flags,
                                        "--stage-bytes", "512KiB", ranks=RANKS, env=env)
                    self.assertEqual(result.code, 2, result.err)
                    self.assertRegex(result.err, r"need \d+ bytes, and its budget leaves \d+")
                    self.assertLess(result.seconds, 10)

    def test_shared_memory_that_is_too_small_is_told(self):
        if not launch.private_shared_memory:
            self.skipTest("no /dev/shm of its own")
        self.addCleanup(launch.resize_shared_memory, "4g")
        launch.resize_shared_memory("64m")
        data = liblmdb.write(self.path("large"),
                             [(b"%08d" % i, bytes(1 << 20)) for i in range(100)], commit_every=20)
        # Nodes that are none in truth count on the same memory: it is full while they load.
        early, late = (r"need \d+ bytes of shared memory, and \d+ are free",
                       r"\d+ more bytes are needed, \d+ are free")
        for env, words in ((ONE_NODE, early), (ONE_EACH, f"{early}|{late}")):
            with self.subTest(env=env):
                result = launch.run("samples", data, "--batch", 52, *WHOLE, ranks=2, env=env)
                # Open MPI looks itself, and then takes other memory for windows of one rank.
                if env is ONE_EACH and launch.FLAVOUR == "openmpi" and result.code == 0:
                    continue
                self.assertEqual(result.code, 1, result.err)
                self.assertRegex(result.err, words)
                self.assertEqual(len(result.error_lines()), 1, result.err)

    def test_what_cannot_be_is_refused(self):
        for flags, word in ((("--order", "in_memory", "--memory-ratio", 0), "memory-ratio"),
                            (("--hold", "memory"), "strided"),
                            ((*SHUFFLED, "--hold", "paper"), "hold")):
            with self.subTest(flags=flags):
                result = launch.run("samples", self.dataset, "--batch", 4, *flags, ranks=2)
                self.assertEqual(result.code, 2, result.err)
                self.assertIn(word, result.err)

    # The ends of jobs.

    def start_endless(self, flags, env=None):
        """A job that is in the middle of its reading: its first lines have come out of the pipe."""
        pipe = self.path(f"pipe-{time.monotonic_ns()}")
        os.mkfifo(pipe)
        job = launch.Job([launch.COMMAND, "samples", self.dataset, "--batch", 52, "--epochs",
                          10**6, *flags, "--output", pipe], ranks=RANKS, env=env)
        self.addCleanup(job.kill)
        lines = open(pipe, "rb")
        self.addCleanup(lines.close)
        for _ in range(3 * len(self.records)):
            lines.readline()
        job.wait_for_ranks(RANKS)
        return job

    def assert_all_gone(self, pids, begin, limit):
        launch.wait_until(lambda: not any(launch.is_alive(pid) for pid in pids),
                          limit - (time.monotonic() - begin), "every process of the job to end")

    def test_one_rank_killed_ends_all(self):
        last = RANKS - 1
        cases = ((WHOLE, ONE_NODE, 0), (WHOLE, ONE_NODE, last),
                 (WHOLE, NODES_OF_TWO, last), (WHOLE, NODES_OF_TWO, 0),
                 (PART, ONE_NODE, last), (PART, ONE_NODE, 0),
                 (PART, NODES_OF_TWO, 0), (PART, NODES_OF_TWO, last))
        for flags, env, victim in launch.some(cases, every=2):
            with self.subTest(flags=flags, env=env, victim=victim):
                job = self.start_endless(flags, env)
                pids = job.processes()
                begin = time.monotonic()
                os.kill(job.ranks()[victim], signal.SIGKILL)
                self.assertNotEqual(job.wait(LIMIT).code, 0)
                self.assert_all_gone(pids, begin, LIMIT)

    def test_signals_that_ask_to_end(self):
        ask, interrupt = signal.SIGTERM, signal.SIGINT
        cases = ((ask, WHOLE), (ask, PART), (interrupt, PART), (interrupt, WHOLE),
                 (ask, SHUFFLED), (interrupt, SHUFFLED))
        for number, flags in launch.some(cases, every=2):
            with self.subTest(signal=number.name, flags=flags):
                job = self.start_endless(flags)
                pids = job.processes()
                begin = time.monotonic()
                job.process.send_signal(number)
                code = job.wait(LIMIT).code
                # Hydra itself, told to end while it starts to wait, sometimes says 0.
                if launch.FLAVOUR != "mpich":
                    self.assertNotEqual(code, 0)
                self.assert_all_gone(pids, begin, 5)


if __name__ == "__main__":
    launch.main()
