#!/usr/bin/python3
"""The loader takes its stage, and less than 64 MiB a rank beside it, whatever the strategy.

What counts is memory that nobody can take back: private pages and shared memory, of all ranks
together (Pss: what ranks share counts once), MPI's own included. Mapped pages of the data set are
page cache. Of the stage only what the windows fill is taken off. The same holds inside a memory
control group of 512 MiB, which is smaller than the data set. And a machine with little memory has
the order of one with much. In the short run, each way to read is met on one or on four ranks.
"""

import json
import os
import re
import time
import unittest

import launch

MIB = 1 << 20
STAGE = 96 * MIB
BUFFERS = 2
MOST_BESIDE = 64 * MIB       # a rank
RECORDS = 125_000            # of 3 KB each: 500 MB
GROUPS = "/sys/fs/cgroup/memory"
LIMIT = 512 * MIB
STRATEGIES = ("auto", "lmdb", "lmm", "lmm-dm", "lmm-dio", "lmm-dio-prov", "lmm-dio-prov-coal",
              "lmm-dio-prov-coal-stag")
ENGINES = ("auto --engine pread", "auto --engine mmap", "auto --engine uring --direct on",
           "auto --locate scan", "auto --locate scatter")


def some_ways(ways):
    """(ranks, the ways to read that so many ranks are to try) for four ranks and for one."""
    return ((4, launch.some(ways, every=2, on_mpich=4)),
            (1, launch.some(ways[1:] + ways[:1], every=2, on_mpich=4)))


def held_by(pid):
    """Private and shared memory of a process in bytes, or 0 when it has gone."""
    try:
        with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as rollup:
            found = dict(re.findall(r"^(Pss_Anon|Pss_Shmem): +(\d+) kB", rollup.read(), re.M))
    except OSError:
        return 0
    return sum(int(kilobytes) for kilobytes in found.values()) * 1024


class Memory(launch.AcceptanceCase):

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.dataset = os.path.join(cls.scratch, "images")
        packed = launch.run("pack", "-", cls.dataset, "--from", "synthetic", "--shape", "3x32x32",
                            "--count", RECORDS, timeout=600)
        assert packed.code == 0, packed.err

    def peak_of(self, job, ranks):
        """The most that all ranks held at one time, looked at some hundred times a run."""
        peak, end, looks = 0, time.monotonic() + 300, 0
        while job.process.poll() is None and time.monotonic() < end:
            found = job.ranks()
            # Finding processes is dear, looking at them is not.
            for _ in range(20):
                peak = max(peak, sum(held_by(pid) for pid in found.values()))
                looks += len(found) == ranks
                time.sleep(0.005)
        result = job.wait()
        self.assertEqual(result.code, 0, result.err)
        self.assertGreater(looks, 10)
        return peak

    def plan_of(self, arguments, ranks, prefix=()):
        """The iterations of a window, and what it fills in the stage; 0 where nobody can tell."""
        result = launch.run(*arguments, "--explain", "--json", ranks=ranks, prefix=prefix)
        self.assertEqual(result.code, 0, result.err)
        told = json.loads(result.out)
        window = told["plan"]["bytes"] if told["plan"] else 0
        return int(re.search(r"C = (\d+)", told["explain"])[1]), window

    def run_through(self, strategy, ranks, stage_bytes, *more, prefix=()):
        """An epoch; memory beside the stage is small, and the stage keeps to its budget."""
        arguments = ["samples", self.dataset, "--batch", 250, "--strategy", *strategy.split(),
                     *more]
        coalesce, window = self.plan_of(arguments, ranks, prefix)
        job = launch.Job([*prefix, launch.COMMAND, *arguments, "--coalesce", coalesce,
                          "--epochs", 1, "--output", self.path("lines")], ranks)
        peak = self.peak_of(job, ranks)
        with open(self.path("lines"), "rb") as lines:
            self.assertGreaterEqual(sum(1 for _ in lines), RECORDS)
        filled = BUFFERS * window
        beside = (peak - filled) / ranks
        print(f"\n  {strategy}, {ranks} ranks, C = {coalesce}: peak {peak / MIB:.0f} MiB, stage "
              f"{filled / MIB:.0f} MiB, beside it {beside / MIB:.1f} MiB a rank", end="")
        self.assertLessEqual(filled, stage_bytes)
        self.assertLess(beside, MOST_BESIDE)

    def test_every_strategy_keeps_to_its_stage_and_little_more(self):
        self.assertGreater(os.path.getsize(os.path.join(self.dataset, "data.mdb")), 500_000_000)
        for ranks, ways in some_ways((*STRATEGIES, *ENGINES)):
            for strategy in ways:
                with self.subTest(strategy=strategy, ranks=ranks):
                    self.run_through(strategy, ranks, STAGE, "--stage-bytes", STAGE)

    def inside_group(self, limit_bytes):
        """A command prefix, and the group's folder."""
        group = os.path.join(GROUPS, f"forebay-test-{os.getpid()}")
        try:
            os.mkdir(group)
        except OSError as error:
            self.skipTest(f"no control group: {error}")
        self.addCleanup(os.rmdir, group)
        with open(os.path.join(group, "memory.limit_in_bytes"), "w", encoding="ascii") as limit:
            limit.write(str(limit_bytes))
        return ("sh", "-c", f'echo $$ > {group}/cgroup.procs; exec "$@"', "sh"), group

    @unittest.skipUnless(os.access(GROUPS, os.W_OK), "needs a memory control group, version 1")
    def test_inside_a_control_group_of_512_mebibytes(self):
        inside, group = self.inside_group(LIMIT)
        for ranks, ways in some_ways(STRATEGIES[::-1]):
            for strategy in ways:
                with self.subTest(strategy=strategy, ranks=ranks):
                    self.run_through(strategy, ranks, LIMIT // 8, prefix=inside)
                    with open(os.path.join(group, "memory.oom_control"), encoding="ascii") as oom:
                        self.assertNotRegex(oom.read(), r"oom_kill [1-9]")

    @unittest.skipUnless(os.access(GROUPS, os.W_OK), "needs a memory control group, version 1")
    def test_a_machine_of_2_gibibytes_has_the_order_of_a_larger_one(self):
        arguments = ["samples", self.dataset, "--batch", 640, "--iterations", 30]

        def delivered(prefix=(), *more):
            result = launch.run(*arguments, *more, ranks=2, prefix=prefix)
            self.assertEqual(result.code, 0, result.err)
            return result.out

        ways = ((), ("--stage-bytes", "32MiB"), ("--buffers", 4), ("--engine", "mmap"))
        here = delivered()
        shown = launch.run(*arguments, "--explain", ranks=2)
        self.assertRegex(shown.out + shown.err, r"C = 4\b")
        self.assertEqual(here, delivered((), "--coalesce", 4))
        inside, _ = self.inside_group(2 << 30)
        for way in ways:
            with self.subTest(way=way):
                self.assertEqual(delivered(inside, *way), here)

if __name__ == "__main__":
    launch.main()
