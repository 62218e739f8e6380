"""forebay bench read and load, alone and on two ranks, and the driver of the benchmarks.

No test looks at a clock.
"""

import json
import os
import subprocess
import sys
import unittest

from command import COMMAND, CommandTest, encode_datum, write_records

import launch  # noqa: I100  (beside liblmdb, which command.py has put on the path)

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
LADDER = ["lmdb", "lmm", "lmm-dm", "lmm-dio", "lmm-dio-prov", "lmm-dio-prov-coal",
          "lmm-dio-prov-coal-stag", "auto"]


class BenchTest(CommandTest):

    COMMAND = "read"

    def setUp(self):
        super().setUp()
        write_records(self.path("set"), [
            (b"%08d" % i, encode_datum(1, 16, 16, bytes([i % 251]) * 256, i % 10))
            for i in range(400)])

    def bench(self, *arguments, ranks=0, env=None):
        """The results of a run that must succeed."""
        result = launch.run("bench", self.COMMAND, self.path("set"), "--batch", 40, "--json",
                            self.path("results.json"), *arguments, ranks=ranks, env=env,
                            timeout=120)
        self.assertEqual(result.code, 0, result.err)
        self.text = result.out
        with open(self.path("results.json"), encoding="utf-8") as file:
            return json.load(file)


class Read(BenchTest):

    def check_runs(self, results, strategies, repetitions):
        """Each strategy once a repetition, all samples delivered, beside five plain runs."""
        for repetition in range(repetitions):
            runs = [run for run in results["runs"] if run["repetition"] == repetition]
            self.assertEqual(sorted(run["turn"] for run in runs), list(range(len(runs))))
            plain = [run for run in runs if run["kind"] == "plain"]
            self.assertEqual(sorted(run["readers"] for run in plain), [1, 2, 4, 8, 16])
            measured = [run for run in runs if run["kind"] == "strategy"]
            self.assertEqual(sorted(run["strategy"] for run in measured), sorted(strategies))
            for run in measured:
                self.assertEqual(run["all"]["samples"], 400)
                self.assertEqual(len(run["ranks"]), results["ranks"])
                self.assertGreater(run["seconds"], 0)

    def check_summary(self, results, strategies):
        self.assertEqual([row["strategy"] for row in results["summary"]], strategies)
        for row in results["summary"]:
            for name in ("seconds", "delivered_mb_per_second", "delivered_over_plain",
                         "file_bytes_over_plain", "open_seconds", "seek_seconds", "read_seconds",
                         "skew_seconds",
                         "exposed_seconds", "voluntary_switches", "first_batch_ms",
                         "read_amplification", "asleep_share"):
                spread = row[name]
                self.assertLessEqual(spread["least"], spread["median"], name)
                self.assertLessEqual(spread["median"], spread["most"], name)

    def check_verified(self, results, strategies):
        self.assertEqual([one["strategy"] for one in results["verified"]], strategies)
        digests = {}
        for one in results["verified"]:
            self.assertTrue(one["agrees"])
            self.assertEqual(one["samples"], 400)
            digests.setdefault(one["coalesce"], set()).add(one["digest"])
        self.assertEqual({len(found) for found in digests.values()}, {1})

    def test_alone_compares_all_strategies_that_can_read_the_data(self):
        results = self.bench("--repetitions", 2)
        skipped = [one["strategy"] for one in results["skipped"]]
        strategies = [name for name in LADDER if name not in skipped]
        self.assertIn("lmdb", strategies)
        self.assertIn("auto", strategies)
        self.assertEqual((results["bench"], results["ranks"], results["nodes"]), ("read", 1, 1))
        self.assertEqual(results["data_set"]["entries"], 400)
        self.check_runs(results, strategies, 2)
        self.check_summary(results, strategies)
        self.check_verified(results, strategies)
        for word in ("delivered/plain", "file bytes/plain", "amplification", "verified",
                     *strategies):
            self.assertIn(word, self.text)

    def test_two_ranks_on_two_nodes(self):
        names = ["lmdb", "lmm", "auto"]
        results = self.bench("--repetitions", 1, "--strategies", ",".join(names), "--compute",
                             "sum", ranks=2, env={"FOREBAY_RANKS_PER_NODE": 1})
        self.assertEqual((results["ranks"], results["nodes"]), (2, 2))
        self.check_runs(results, names, 1)
        self.check_verified(results, names)
        for run in results["runs"]:
            if run["kind"] == "strategy":
                self.assertEqual([rank["node"] for rank in run["ranks"]], [0, 1])
                self.assertTrue(all(rank["reads"] for rank in run["ranks"]), run["strategy"])

    def test_knobs_go_on_top_of_strategies(self):
        names = ["lmm", "lmm+coalesce=5", "lmm+coalesce=5+buffers=1"]
        results = self.bench("--repetitions", 1, "--no-plain", "--strategies", *names)
        self.assertEqual([row["strategy"] for row in results["summary"]], names)
        self.assertEqual([row["coalesce"] for row in results["summary"]], [1, 5, 5])
        self.check_verified(results, names)
        self.assertNotIn("delivered_over_plain", results["summary"][0])

    def test_seek_only_tells_each_rank(self):
        results = self.bench("--seek-only", "--repetitions", 1, ranks=2)
        runs = results["seek_only"]
        self.assertEqual([(run["engine"], run["rank"]) for run in runs],
                         [("liblmdb", 0), ("liblmdb", 1), ("mmap", 0), ("mmap", 1)])
        self.assertEqual(runs[1]["records_skipped"] - runs[0]["records_skipped"], 20)
        self.assertEqual(results["runs"], [])

    def test_block_sizes_end_with_the_file(self):
        results = self.bench("--repetitions", 1, "--no-plain", "--no-verify", "--strategies", "lmm",
                             "--block-sizes")
        size = results["data_set"]["file_bytes"]
        runs = results["block_sizes"]
        self.assertEqual({run["engine"] for run in runs}, {"mmap", "pread"})
        blocks = sorted({run["block"] for run in runs})
        self.assertEqual(blocks, [4096 * 4 ** i for i in range(len(blocks))])
        self.assertLessEqual(blocks[-1], size)
        self.assertGreater(4 * blocks[-1], size)
        self.assertEqual({run["bytes"] for run in runs}, {size})
        self.assertEqual(results["verified"], [])

    def test_json_to_standard_output_is_all_there_is(self):
        out = self.succeed("bench", "read", self.path("set"), "--batch", 40, "--repetitions", 1,
                           "--strategies", "lmm", "--json", "-")
        self.assertEqual(json.loads(out)["bench"], "read")

    def test_usage_errors_are_one_line(self):
        for arguments, word in (((), "--batch"), (("--batch", 8, "--strategies", "fast"), "fast"),
                                (("--batch", 8, "--strategies", "lmm,lmm"), "twice"),
                                (("--batch", 8, "--strategies", "lmm+roots"), "roots"),
                                (("--batch", 8, "--strategies", "lmm+speed=1"), "speed"),
                                (("--batch", 8, "--compute", "pi"), "sum"),
                                (("--batch", 8, "--repetitions", 0), "--repetitions"),
                                (("--batch", 8, "--what"), "forebay bench read --help")):
            with self.subTest(arguments=arguments):
                self.fail("bench", "read", self.path("set"), *arguments, code=2, naming=word)
        self.fail("bench", code=2, naming="subcommand")
        self.fail("bench", "read", self.path("none"), "--batch", 8, naming="none")

    def test_cold_needs_permission(self):
        options = self.as_someone_else()
        if not options and os.access("/proc/sys/vm/drop_caches", os.W_OK):
            self.skipTest("everybody may drop caches here")
        self.succeed("bench", "read", "--help", **options)
        self.fail("bench", "read", self.path("set"), "--batch", 8, "--cold", code=2,
                  naming="--cold", **options)


class Load(BenchTest):

    COMMAND = "load"
    VARIANTS = ("order=shuffled", "order=grouped+group=40+buffers=1", "lmm+coalesce=2")

    def test_every_variant_delivers_its_epochs(self):
        for ranks in (0, 2):
            with self.subTest(ranks=ranks):
                results = self.bench("--variants", *self.VARIANTS, "--repetitions", 2, "--compute",
                                     "1ms", "--epochs", 2, ranks=ranks)
                self.assertEqual(results["ranks"], max(ranks, 1))
                self.assertEqual(sorted((run["variant"], run["repetition"])
                                        for run in results["runs"]),
                                 sorted((name, i) for name in self.VARIANTS for i in range(2)))
                for run in results["runs"]:
                    self.assertEqual(run["all"]["samples"], 800)
                    for rank in run["ranks"]:
                        # Sleeping is never shorter than asked for.
                        self.assertGreaterEqual(rank["computing_seconds"], 20 * 0.001)
                        self.assertLessEqual(rank["first_seconds"] + rank["waited_seconds"]
                                             + rank["computing_seconds"], rank["total_seconds"])
                self.assertEqual([row["variant"] for row in results["summary"]],
                                 list(self.VARIANTS))
                for word in ("exposed", "amplification", *self.VARIANTS):
                    self.assertIn(word, self.text)

    def test_without_variants_the_options_are_measured(self):
        results = self.bench("--order", "shuffled", "--repetitions", 1, "--compute-by", "spin")
        self.assertEqual([row["variant"] for row in results["summary"]], ["as given"])
        self.assertIn("order=shuffled", results["options"]["loader"])

    def test_usage_errors_are_one_line(self):
        for arguments, word in (((), "--batch"), (("--batch", 8, "--compute", "3"), "compute"),
                                (("--batch", 8, "--compute-by", "magic"), "spin"),
                                (("--batch", 8, "--variants", "order=some"), "some"),
                                (("--batch", 8, "--variants", "lmm", "lmm"), "twice"),
                                (("--batch", 8, "--what"), "forebay bench load --help")):
            with self.subTest(arguments=arguments):
                self.fail("bench", "load", self.path("set"), *arguments, code=2, naming=word)


class Driver(CommandTest):

    def dry_run(self, script, *arguments):
        result = subprocess.run(
            [sys.executable, "-B", os.path.join(ROOT, "bench", script), "--dry-run",
             "--build", os.path.dirname(os.path.dirname(COMMAND)), *arguments],
            capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result

    def plan(self, *arguments):
        result = self.dry_run("run_matrix.py", "--data", self.path("data"), *arguments)
        self.assertFalse(os.path.exists(self.path("data")))
        return result.stdout.splitlines()

    def test_a_dry_run_lists_every_configuration_and_makes_nothing(self):
        quick, full = self.plan("--only", "local"), self.plan("--only", "local", "--full")
        self.assertLess(len(quick), len(full))
        for word in ("cifar-3KB", "imagenet-192KB", "strong", "seek", "weak", "blocks"):
            self.assertTrue(any(word in line for line in full), word)
        for ranks in (1, 2, 4, 8, 16):
            self.assertTrue(any(f" 1 x {ranks} " in line for line in full), ranks)

    def test_weak_scaling_keeps_two_samples_a_rank(self):
        for line in self.plan("--only", "local", "--full", "--scaling", "weak"):
            words = line.split()
            ranks = int(words[words.index("x") + 1])
            self.assertEqual(int(words[words.index("--batch") + 1]), 2 * ranks)

    def test_the_matrix_of_gradients_has_all_networks_and_peers(self):
        output = self.path("sync.json")
        listed = self.dry_run("run_sync.py", "--output", output).stderr
        for word in ("weak 4", "strong 1", "contention", "cycles 10", "input none", "nets vgg16",
                     "ddp_gloo", "horovod_torch"):
            self.assertIn(word, listed)
        self.assertFalse(os.path.exists(output))


if __name__ == "__main__":
    unittest.main()
