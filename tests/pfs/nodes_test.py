#!/usr/bin/python3
"""Virtual nodes under a real launcher: who is where, what they read, and that nothing is left.

FOREBAY_MPI is the flavour of the launcher and of FOREBAY_COMMAND. Delays of the model are off:
no test looks at a clock, except for limits of tens of seconds.
"""

import functools
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from unittest import mock

import pfs_case

sys.path[:0] = [os.path.join(pfs_case.ROOT, "bench"), os.path.join(pfs_case.ROOT, "bench", "pfs"),
                os.path.join(pfs_case.ROOT, "tests", "acceptance")]
import liblmdb  # noqa: E402 (found through the lines above)
import network_nodes  # noqa: E402
import nodes  # noqa: E402

MPI = os.environ.get("FOREBAY_MPI", "openmpi")
COMMAND = os.environ.get("FOREBAY_COMMAND",
                         os.path.join(pfs_case.ROOT, "build/release/src/forebay"))
_SCRIPT = os.path.join(pfs_case.ROOT, "bench", "pfs", "nodes.py")
_FAST = ("--force", "--bandwidth", "10GB/s", "--latency", "0ms", "--seek-penalty", "0ms")
_LIMIT = 60


def memory_groups():
    parent, _ = nodes.MemoryGroups._find()  # pylint: disable=protected-access
    return [name for name in os.listdir(parent) if name.startswith("forebay-nodes-")]


class NodesCase(pfs_case.PfsCase):

    def setUp(self):
        super().setUp()
        # Where nodes.py works.
        for patch in (mock.patch.dict(os.environ, {"TMPDIR": self.scratch}),
                      mock.patch.object(tempfile, "tempdir", self.scratch)):
            patch.start()
            self.addCleanup(patch.stop)
        self.groups_before = memory_groups()
        self.addCleanup(self.assert_nothing_left)

    def cluster(self, count=2, **options):
        return nodes.Nodes(self.backing, count, mpi=MPI, pfs=pfs_case.PFS, pfs_options=_FAST,
                           **options)

    def assert_nothing_left(self):
        self.assertEqual(pfs_case.mounts(self.scratch), [])
        self.assertEqual(pfs_case.processes(self.scratch), [])
        self.assertEqual([name for name in os.listdir(self.scratch)
                          if name.startswith("forebay-nodes-")], [])
        self.assertEqual(memory_groups(), self.groups_before)

    def start(self, *words, options=()):
        """nodes.py as a user starts it."""
        return subprocess.Popen(
            [sys.executable, _SCRIPT, "--backing", self.backing, "--mpi", MPI, "--pfs",
             pfs_case.PFS, *options, "--", *words], stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def finish(self, process):
        out, err = process.communicate(timeout=_LIMIT)
        return process.returncode, out, err


@unittest.skipUnless(shutil.which("ip") and shutil.which("tc"), "iproute2 is missing")
class Network(unittest.TestCase):
    """Nodes with a network of their own."""

    def run_on_nodes(self, script, **options):
        job = network_nodes.start(["bash", "-c", script], capture=True, mpi=MPI, **options)
        self.addCleanup(job.wait)
        self.addCleanup(job.kill)
        out, err = job.communicate(timeout=_LIMIT)
        return job.returncode, sorted(out.split()), err

    def test_each_node_has_a_name_and_an_address(self):
        script = 'echo "$(hostname)=$(ip -4 -o address show eth0 | grep -o "10[.0-9]*/16")"'
        code, words, err = self.run_on_nodes(script, count=3, rate="1gbit")
        self.assertEqual(code, 0, err)
        self.assertEqual(words, ["n0=10.77.0.1/16", "n1=10.77.0.2/16", "n2=10.77.0.3/16"])

    def test_nothing_is_left_of_a_command_that_fails_or_is_killed(self):
        code, _, _ = self.run_on_nodes("exit 3")
        self.assertNotEqual(code, 0)
        mark = f"999{os.getpid()}"
        job = network_nodes.start(["sleep", mark], mpi=MPI)
        self.addCleanup(job.wait)
        end = time.monotonic() + _LIMIT
        # Those that start it name it as well, and are there before one looks after the other.
        ranks = functools.partial(pfs_case.processes, f"sleep {mark}", whole=True)
        while len(ranks()) < 2 and time.monotonic() < end:
            time.sleep(0.05)
        job.kill()
        job.wait()
        while pfs_case.processes(f"sleep {mark}") and time.monotonic() < end:
            time.sleep(0.05)
        self.assertEqual(pfs_case.processes(f"sleep {mark}"), [])
        links = subprocess.run(["ip", "link"], capture_output=True, text=True, check=True).stdout
        self.assertNotIn("to-n0", links)


class Layout(NodesCase):

    def test_ranks_see_their_host_and_one_path_with_the_data(self):
        with self.cluster() as cluster:
            script = 'echo "rank $(hostname) {mount} $(md5sum <{mount}/data)"'
            done = cluster.run(["bash", "-c", script], ranks_per_node=2, timeout=_LIMIT)
            self.assertEqual(done.returncode, 0, done.stderr)
            lines = sorted(line for line in done.stdout.splitlines() if line.startswith("rank"))
            self.assertEqual([line.split()[1] for line in lines], ["n0", "n0", "n1", "n1"])
            self.assertEqual({line.split()[2] for line in lines}, {cluster.path})
            self.assertEqual(len({line.split()[3] for line in lines}), 1)
            # Both caches were filled, each through its own mount.
            for client in cluster.stats()["clients"]:
                self.assertGreaterEqual(client["bytes"], len(self.bytes))

    def test_nodes_share_no_temporary_files_and_no_shared_memory(self):
        with self.cluster() as cluster:
            script = 'touch $TMPDIR/of-$(hostname) /dev/shm/of-$(hostname); sleep 1; ' \
                     'echo rank $(cd $TMPDIR; echo of-*) $(cd /dev/shm; echo of-*)'
            done = cluster.run(["bash", "-c", script], timeout=_LIMIT)
            self.assertEqual(sorted(line for line in done.stdout.splitlines() if "rank" in line),
                             ["rank of-n0 of-n0", "rank of-n1 of-n1"])
        self.assertFalse(os.path.exists("/dev/shm/of-n0"))

    def test_mpi_sees_nodes_and_forebay_reads_the_same_bytes(self):
        liblmdb.write(os.path.join(self.backing, "database"),
                      [(b"%08d" % i, bytes([i % 251]) * (500 + i % 900)) for i in range(2000)])
        digests = set()
        for strategy in ("lmdb", "lmm"):
            for count, ranks in ((1, 4), (2, 2)):
                with self.subTest(strategy=strategy, nodes=count), self.cluster(count) as cluster:
                    done = cluster.run([COMMAND, "bench", "read", "{mount}/database",
                                        "--batch", 40, "--iterations", 20, "--json", "-",
                                        "--strategies", strategy, "--repetitions", 1, "--no-plain"],
                                       ranks_per_node=ranks, timeout=_LIMIT)
                    self.assertEqual(done.returncode, 0, done.stderr)
                    line = re.search(r"\{.*\}", done.stdout).group()
                    result = json.loads(line)
                    self.assertEqual((result["ranks"], result["nodes"]), (4, count))
                    digests.add(result["verified"][0]["digest"])
                    self.assertEqual(result["runs"][0]["ranks"][3]["node"], count - 1)
        self.assertEqual(len(digests), 1)

    def test_a_memory_limit_holds_for_the_node_and_its_cache(self):
        limit = 64 << 20
        with self.cluster(node_memory=limit) as cluster:
            script = 'cat {mount}/data >/dev/null; echo rank $(grep memory /proc/self/cgroup)'
            done = cluster.run(["bash", "-c", script], timeout=_LIMIT)
            self.assertEqual(done.returncode, 0, done.stderr)
            groups = re.findall(r"rank .*forebay-nodes-\d+/(n\d)", done.stdout)
            self.assertEqual(sorted(groups), ["n0", "n1"])


class End(NodesCase):

    def test_the_status_of_a_failing_command_is_the_launchers(self):
        code, _, _ = self.finish(self.start("bash", "-c", "exit 7"))
        self.assertEqual(code, 7)

    def test_a_program_that_is_not_there(self):
        code, _, _ = self.finish(self.start(os.path.join(self.scratch, "missing")))
        self.assertNotEqual(code, 0)

    def test_options_that_the_file_system_refuses(self):
        code, _, err = self.finish(self.start("true", options=("--servers", "0")))
        self.assertEqual(code, 1)
        self.assertIn("--servers", err)

    def test_signals(self):
        for number in (signal.SIGTERM, signal.SIGINT):
            with self.subTest(signal=number.name):
                process = self.start("bash", "-c", f"touch {self.scratch}/up; sleep 1000",
                                     options=("--node-memory", "64M"))
                self.wait_for(os.path.join(self.scratch, "up"))
                process.send_signal(number)
                code, _, _ = self.finish(process)
                self.assertEqual(code, 128 + number)
                self.assert_nothing_left()

    def wait_for(self, path):
        end = time.monotonic() + _LIMIT
        while not os.path.exists(path):
            self.assertLess(time.monotonic(), end)
            time.sleep(0.02)
        os.unlink(path)

    def test_a_command_that_hangs_and_leaves_its_parents(self):
        code, _, err = self.finish(self.start(
            "bash", "-c", f"setsid -f sleep 1000 {self.scratch}; exec sleep 1000",
            options=("--timeout", "2")))
        self.assertEqual(code, 124, err)

    def test_readers_of_a_stalled_server(self):
        code, _, err = self.finish(self.start(
            "dd", "if={mount}/data", "of=/dev/null", "iflag=direct",
            options=("--timeout", "2", "--stall-at", "data:0:1000s")))
        self.assertEqual(code, 124, err)

    def test_a_daemon_that_was_killed(self):
        with self.cluster() as cluster:
            cluster._file_system.process.kill()  # pylint: disable=protected-access
            done = cluster.run(["cat", "{mount}/data"], timeout=_LIMIT)
            self.assertNotEqual(done.returncode, 0)

    def test_two_commands_one_after_the_other(self):
        with self.cluster() as cluster:
            with self.assertRaises(subprocess.TimeoutExpired):
                cluster.run(["sleep", "1000"], timeout=2)
            self.assertEqual(cluster.run(["true"], timeout=_LIMIT).returncode, 0)
            cluster.reset()
            self.assertEqual(cluster.stats()["clients"][0]["requests"], 0)


if __name__ == "__main__":
    pfs_case.main()
