"""forebay-bench sync, alone and on two ranks. No test looks at a clock."""

import json
import unittest

from command import CommandTest

import launch  # noqa: I100  (beside liblmdb, which command.py has put on the path)


class Sync(CommandTest):

    SHORT = ("--net", "alexnet", "--batch", 1, "--steps", 2, "--warmup", 1, "--repetitions", 2,
             "--time-scale", 0.1, "--shrink", 5000)

    def test_every_strategy_runs_once_a_repetition(self):
        names = ["negotiate", "topo", "blocking", "scp-topo"]
        for ranks in (0, 2):
            with self.subTest(ranks=ranks):
                result = launch.run("sync", *self.SHORT, "--strategy", ",".join(names),
                                    "--json", self.path("results.json"), ranks=ranks, timeout=120)
                self.assertEqual(result.code, 0, result.err)
                with open(self.path("results.json"), encoding="utf-8") as file:
                    results = json.load(file)
                self.assertEqual(results["ranks"], max(ranks, 1))
                self.assertEqual([row["strategy"] for row in results["summary"]], names)
                self.assertEqual(sorted((run["strategy"], run["repetition"])
                                        for run in results["runs"]),
                                 sorted((name, i) for name in names for i in range(2)))
                for run in results["runs"]:
                    self.assertGreater(run["images_per_second"], 0)
                    self.assertEqual(len(run["ranks"]), results["ranks"])
                    if run["strategy"] == "topo":
                        self.assertEqual(run["messages"], 0)
                for word in ("images/s", "progress %", *names):
                    self.assertIn(word, result.out)

    def test_operations_are_those_of_the_network(self):
        result = launch.run("sync", "--net", "googlenet", "--operations")
        self.assertEqual(result.code, 0, result.err)
        network = json.loads(result.out)["nets"][0]
        kinds = [operation["kind"] for operation in network["operations"]]
        for kind in ("gradient", "allreduce", "update"):
            self.assertEqual(kinds.count(kind), len(network["tensors"]))

    def test_usage_errors_are_one_line(self):
        for arguments, word in ((("--net", "lenet"), "googlenet"),
                                (("--strategy", "magic"), "negotiate"),
                                (("--strategy", "topo,topo"), "twice"),
                                (("--cycle", "3"), "cycle"), (("--batch", 0), "batch"),
                                (("--placement", "disk:0"), "placement"),
                                (("--input", "tape"), "synthetic"),
                                (("--what",), "forebay-bench sync --help")):
            with self.subTest(arguments=arguments):
                self.fail("sync", *arguments, code=2, naming=word)


if __name__ == "__main__":
    unittest.main()
