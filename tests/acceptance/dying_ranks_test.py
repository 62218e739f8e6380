#!/usr/bin/python3
"""Ranks that die, launchers that die, jobs that stop early, jobs side by side.

All ranks end within 10 s, the launcher reports failure, the next start works with no help, and
shared memory is as it was (AcceptanceCase checks that).
"""

import contextlib
import os
import signal
import time

import launch
import liblmdb
import order_model

LIMIT = 10
RANKS = 3
STRATEGIES = ("lmdb", "lmm")


class DyingRanks(launch.AcceptanceCase):

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.dataset = liblmdb.write(
            os.path.join(cls.scratch, "data"),
            [(b"%08d" % i, bytes([i % 251]) * (500 + i % 900)) for i in range(2000)])
        cls.records = liblmdb.walk(cls.dataset)

    def start_endless(self, strategy, ranks=RANKS, env=None):
        """A job that is in the middle of its reading: its first lines have come out of the pipe."""
        pipe = self.path(f"pipe-{time.monotonic_ns()}")
        os.mkfifo(pipe)
        job = launch.Job([launch.COMMAND, "samples", self.dataset, "--batch", 30, "--iterations",
                          10**6, "--strategy", strategy, "--output", pipe], ranks=ranks, env=env)
        self.addCleanup(job.kill)
        lines = open(pipe, "rb")
        self.addCleanup(lines.close)
        lines.readline()
        job.wait_for_ranks(max(ranks, 1))
        return job, lines

    def read_right(self, strategy="lmm"):
        result = launch.run("samples", self.dataset, "--batch", 31, "--iterations", 9,
                            "--strategy", strategy, ranks=RANKS)
        self.assert_lines(result, order_model.expected_lines(self.records, RANKS, 31, 1, 9))

    def assert_all_gone(self, pids, begin):
        launch.wait_until(lambda: not any(launch.is_alive(pid) for pid in pids),
                          LIMIT - (time.monotonic() - begin), "every process of the job to end")

    def kill_one(self, strategy, victim, env=None, number=signal.SIGKILL):
        job, _ = self.start_endless(strategy, env=env)
        pids = job.processes()
        begin = time.monotonic()
        os.kill(job.ranks()[victim], number)
        result = job.wait(LIMIT)
        self.assertNotEqual(result.code, 0)
        self.assert_all_gone(pids, begin)
        self.assertLessEqual(len(result.error_lines()), RANKS - 1, result.err)
        return result.code

    def test_one_rank_killed_ends_all(self):
        for strategy in STRATEGIES:
            for victim in range(RANKS):
                with self.subTest(strategy=strategy, victim=victim):
                    self.kill_one(strategy, victim)
        self.read_right()

    def test_the_code_tells_by_which_signal_a_rank_has_ended(self):
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGSEGV, signal.SIGABRT):
            with self.subTest(signal=number.name):
                code = self.kill_one("lmm", 1, number=number)
                if launch.FLAVOUR == "mpich":  # puts the signals of all ranks together
                    self.assertIn(code, (number, number | signal.SIGKILL, signal.SIGKILL))
                else:
                    self.assertEqual(code, 128 + number)

    def test_one_rank_killed_ends_all_nodes(self):
        for victim in range(RANKS):
            with self.subTest(victim=victim):
                self.kill_one("lmm", victim, {"FOREBAY_RANKS_PER_NODE": 2})

    def test_all_ranks_killed_and_the_next_start_works(self):
        for strategy in STRATEGIES:
            with self.subTest(strategy=strategy):
                job, _ = self.start_endless(strategy)
                for pid in job.ranks().values():
                    with contextlib.suppress(ProcessLookupError):  # the launcher was quicker
                        os.kill(pid, signal.SIGKILL)
                self.assertNotEqual(job.wait(LIMIT).code, 0)
                self.read_right(strategy)

    def test_ranks_and_launcher_killed_at_once(self):
        for strategy in STRATEGIES:
            with self.subTest(strategy=strategy):
                job, _ = self.start_endless(strategy)
                job.kill()
                self.read_right(strategy)

    def test_the_launcher_killed_alone(self):
        for strategy in STRATEGIES:
            with self.subTest(strategy=strategy):
                job, lines = self.start_endless(strategy)
                pids = job.processes()
                begin = time.monotonic()
                job.process.kill()
                lines.close()
                job.wait(LIMIT)
                self.assert_all_gone(pids, begin)
                self.read_right(strategy)

    def test_signals_that_ask_to_end(self):
        for number in (signal.SIGTERM, signal.SIGINT):
            for strategy in STRATEGIES:
                with self.subTest(signal=number.name, strategy=strategy):
                    job, _ = self.start_endless(strategy)
                    pids = job.processes()
                    begin = time.monotonic()
                    job.process.send_signal(number)
                    code = job.wait(LIMIT).code
                    # Hydra itself, told to end while it starts to wait, sometimes says 0.
                    if launch.FLAVOUR != "mpich":
                        self.assertNotEqual(code, 0)
                    self.assert_all_gone(pids, begin)

    def test_signals_without_a_launcher(self):
        for number in (signal.SIGTERM, signal.SIGINT):
            with self.subTest(signal=number.name):
                job, _ = self.start_endless("lmm", ranks=0)
                job.process.send_signal(number)
                self.assertNotEqual(job.wait(LIMIT).code, 0)

    def test_a_reader_of_the_output_that_goes_away(self):
        """`forebay samples ... | head` must not leave ranks behind."""
        job, lines = self.start_endless("lmm")
        pids = job.processes()
        begin = time.monotonic()
        lines.close()
        job.wait(LIMIT)
        self.assert_all_gone(pids, begin)

    def test_one_iteration_then_stop(self):
        for strategy in STRATEGIES:
            for ranks in (0, RANKS):
                with self.subTest(strategy=strategy, ranks=ranks):
                    result = launch.run("samples", self.dataset, "--batch", 3, "--iterations", 1,
                                        "--strategy", strategy, ranks=ranks)
                    self.assert_lines(result, order_model.expected_lines(
                        self.records, max(ranks, 1), 3, 1, 1))

    def test_two_jobs_at_once_are_both_right(self):
        for pair in (("lmm", "lmm"), ("lmm", "lmdb")):
            with self.subTest(pair=pair):
                jobs = [launch.Job([launch.COMMAND, "samples", self.dataset, "--batch", batch,
                                    "--iterations", 60, "--strategy", strategy], ranks=RANKS)
                        for strategy, batch in zip(pair, (31, 44))]
                for job, batch in zip(jobs, (31, 44)):
                    self.assert_lines(job.wait(60), order_model.expected_lines(
                        self.records, RANKS, batch, 1, 60))


if __name__ == "__main__":
    launch.main()
