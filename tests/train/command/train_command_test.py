"""forebay train as its users run it: lenet, under the launcher of the build's MPI."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../acceptance"))

import launch  # noqa: E402
import liblmdb  # noqa: E402

BENCH_COMMAND = os.environ.get("FOREBAY_BENCH_COMMAND")
PHASES = ("read", "skew", "decode", "forward", "backward", "parameter_sync", "update", "test",
          "other")


def labelled_images(count, seed):
    """Datums of 28x28 whose label is the row of the bright bar."""
    numbers = random.Random(seed)
    for i in range(count):
        label = numbers.randrange(10)
        rows = [bytes([230 if row // 2 == label else numbers.randrange(60)]) * 28
                for row in range(28)]
        yield (b"%08d" % i,
               b"\x08\x01\x10\x1c\x18\x1c\x22\x90\x06" + b"".join(rows) + b"\x28" + bytes([label]))


class TrainCommand(launch.AcceptanceCase):

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.training = liblmdb.write(os.path.join(cls.scratch, "train"), list(labelled_images(300, 1)))
        cls.test = liblmdb.write(os.path.join(cls.scratch, "test"), list(labelled_images(50, 2)))

    def train(self, *arguments, ranks=2):
        batch = () if "--batch" in arguments else ("--batch", 32)
        return launch.run("train", self.training, "--test", self.test, *batch, *arguments,
                          ranks=ranks, timeout=120)

    def succeed(self, *arguments, ranks=2):
        result = self.train(*arguments, ranks=ranks)
        self.assertEqual(result.code, 0, result.err)
        return result.out

    def read(self, name):
        with open(self.path(name), encoding="utf-8") as file:
            return file.read()

    def test_learns_and_accounts_for_its_time(self):
        summary = json.loads(self.succeed("--epochs", 4, "--lr", 0.02, "--coalesce", 1, "--json"))
        self.assertEqual(summary["iterations"], 38)  # ceil(4 * 300 / 32)
        self.assertEqual(summary["test_samples"], 50)
        self.assertGreater(summary["test_accuracy"], 0.9)
        self.assertEqual(sum(rank["images"] for rank in summary["ranks"]), 4 * 300)
        for rank in summary["ranks"]:
            spent = sum(rank[phase + "_seconds"] for phase in PHASES)
            self.assertAlmostEqual(spent, rank["total_seconds"], delta=0.05 * spent)

    def test_a_rank_that_dies_ends_all_soon(self):
        for sync in ("topo", "blocking", "servers"):
            for number in (signal.SIGTERM, signal.SIGKILL):
                with self.subTest(sync=sync, signal=number.name):
                    log = self.path(f"dying-{sync}-{number.name}")
                    job = launch.Job([launch.COMMAND, "train", self.training, "--batch", 32, "--epochs",
                                      10**6, "--lr", 0.001, "--sync", sync, "--log", log], ranks=3)
                    self.addCleanup(job.kill)
                    launch.wait_until(lambda log=log: os.path.exists(log) and os.path.getsize(log),
                                      60, "the first iteration")
                    victim = self.trainers(job)[1]
                    begin = time.monotonic()
                    os.kill(victim, number)
                    result = job.wait(30)
                    self.assertLess(time.monotonic() - begin, 8)
                    if launch.FLAVOUR == "mpich":
                        self.assertIn(result.code, (number, number | signal.SIGKILL, signal.SIGKILL))
                    else:
                        self.assertEqual(result.code, 128 + number)
                    self.assertLessEqual(len(result.error_lines()), 2, result.err)

    def trainers(self, job):
        """Processes of the ranks by number: `forebay train` becomes another program."""
        found = {}
        for pid in job.processes():
            try:
                if not os.path.realpath(f"/proc/{pid}/exe").endswith("forebay-train"):
                    continue
                with open(f"/proc/{pid}/environ", "rb") as environ:
                    variables = dict(each.partition(b"=")[::2] for each in environ.read().split(b"\0"))
            except OSError:
                continue
            rank = variables.get(b"OMPI_COMM_WORLD_RANK", variables.get(b"PMI_RANK"))
            found[int(rank)] = pid
        return found

    def test_strategies_compute_the_same_numbers(self):
        for strategy in ("lmdb", "lmm"):
            self.succeed("--epochs", 1, "--strategy", strategy, "--log", self.path(strategy),
                         ranks=3)
        self.assertEqual(self.read("lmdb"), self.read("lmm"))
        self.assertEqual(self.read("lmm").count('"event":"iteration"'), 10)

    def losses(self, name, *arguments, ranks=3):
        """Of each iteration, and the sync object of the summary."""
        summary = json.loads(self.succeed("--epochs", 1, "--log", self.path(name), "--json",
                                          *arguments, ranks=ranks))
        records = map(json.loads, self.read(name).splitlines())
        return ([record["loss"] for record in records if record["event"] == "iteration"],
                summary["sync"])

    def assert_same_curve(self, mine, expected):
        self.assertEqual(len(mine), len(expected))
        for loss, other in zip(mine, expected):
            self.assertAlmostEqual(loss, other, delta=1e-3 * max(1, other))

    def test_every_way_to_sum_gradients_gives_the_same_curve(self):
        expected, sync = self.losses("blocking", "--sync", "blocking")
        self.assertEqual(sync["strategy"], "blocking")
        for strategy in ("negotiate", "gs", "nbcs", "scp", "topo", "scp-topo"):
            with self.subTest(strategy=strategy):
                mine, sync = self.losses(strategy, "--sync", strategy, "--cycle", "1ms",
                                         "--fusion-bytes", "64K")
                self.assert_same_curve(mine, expected)
                self.assertEqual(sync["strategy"], strategy)
                self.assertEqual(len(sync["ranks"]), 3)
                for rank in sync["ranks"]:
                    self.assertEqual(rank["bytes"], len(mine) * 4 * 431080)
                    self.assertGreater(rank["transfers"], 10)
        mine, _ = self.losses("captured", "--sync", "topo", "--capture")
        self.assert_same_curve(mine, expected)
        mine, sync = self.losses("servers", "--sync", "servers", "--servers", 2)
        self.assert_same_curve(mine, expected)
        self.assertEqual([rank["servers"]["updates"] > 0 for rank in sync["ranks"]].count(True), 2)

    def test_topo_negotiates_nothing_but_its_start_and_end(self):
        _, short = self.losses("short", "--sync", "topo", "--iterations", 2)
        _, sync = self.losses("topo", "--sync", "topo", "--trace", self.path("sync.trace"))
        for few, rank in zip(short["ranks"], sync["ranks"]):
            self.assertEqual((few["fallbacks"], rank["fallbacks"]), (0, 0))
            # Agreeing on ten iterations would take at least as many messages.
            self.assertLess(rank["negotiations"], few["negotiations"] + 8)
        self.assertIn("4.product.weight", self.read("sync.trace"))

    def test_several_batches_are_as_good_as_one_large_one(self):
        order = ("--coalesce", 1)
        whole, _ = self.losses("whole", "--batch", 60, *order)
        for strategy in ("blocking", "topo"):
            parts, _ = self.losses("parts", "--batch", 20, "--accumulate", 3, "--sync", strategy,
                                   *order)
            self.assert_same_curve(parts, whole)

    def test_resumed_equals_straight(self):
        self.succeed("--epochs", 2, "--log", self.path("straight"))
        part = ("--log", self.path("parts"), "--checkpoint", self.path("checkpoints"))
        # Not --epochs 1, whose end would shape the last window.
        self.succeed("--iterations", 5, *part)
        self.succeed("--epochs", 2, "--resume", *part)
        self.assertEqual(self.read("straight"), self.read("parts"))

    def test_every_order_trains_on_every_sample_once(self):
        for order in (("shuffled",), ("grouped", "--group", 50)):
            summary = json.loads(self.succeed("--epochs", 2, "--lr", 0.02, "--order", *order,
                                              "--json"))
            self.assertEqual(summary["epochs"], 2)
            self.assertEqual(sum(rank["images"] for rank in summary["ranks"]), 600)

    def test_regresses_on_hdf5_and_resumes(self):
        if BENCH_COMMAND is None:
            self.skipTest("forebay-bench, which makes data to regress on, was not built")
        result = subprocess.run([BENCH_COMMAND, "generate", "neuron", self.path("n.h5"), "--samples",
                                 "40", "--length", "64"], capture_output=True, text=True,
                                timeout=60, check=False)
        if "built without HDF5" in result.stderr:
            self.skipTest("built without HDF5")
        self.assertEqual(result.returncode, 0, result.stderr)

        def train(epochs, log, *arguments):
            result = launch.run("train", self.path("n.h5"), "--test", self.path("n.h5"), "--net",
                                "neuron", "--batch", 16, "--order", "grouped", "--group", 10,
                                "--lr-epochs", 1, "--epochs", epochs, "--log", self.path(log),
                                *arguments, ranks=2, timeout=120)
            self.assertEqual(result.code, 0, result.err)
            return result.out
        out = train(2, "straight")
        self.assertIn("test loss", out)
        self.assertNotIn("accuracy", out)
        train(1, "parts", "--checkpoint", self.path("regression"))
        train(2, "parts", "--checkpoint", self.path("regression"), "--resume")
        self.assertEqual(self.read("straight"), self.read("parts"))

    def test_a_test_set_whose_classes_are_numbered_otherwise_is_refused(self):
        names = [f"row {row}" for row in range(10)]

        def give_names(directory, classes):
            path = os.path.join(directory, "data.mdb.classes")
            with open(path, "w", encoding="utf-8") as file:
                file.writelines(name + "\n" for name in classes)
            return path
        self.addCleanup(os.unlink, give_names(self.training, names))
        result = self.train("--iterations", 2)
        self.assertEqual(result.code, 0, result.err)
        self.assertEqual(result.err.count(f"{self.test} does not name its classes"), 1, result.err)
        for classes, ends in ((names[:4], 0), (names, 0), (names[2:4], 2), (["row x"], 2)):
            with self.subTest(classes=classes):
                path = give_names(self.test, classes)
                result = self.train("--iterations", 2)
                os.unlink(path)
                self.assertEqual(result.code, ends, result.err)
                if ends != 0:
                    self.assertIn("numbered otherwise", result.err)
                    self.assertIn(f"'{classes[0]}' is number 0", result.err)
                    self.assertIn(f"pack it with '--classes {self.training}'", result.err)

    def test_shows_a_table_to_people(self):
        out = self.succeed("--iterations", 3)
        for word in ("read", "parameter sync", "rank 1", "images/s"):
            self.assertIn(word, out)

    def test_bench_trains_with_each_strategy(self):
        result = launch.run("bench", "train", self.training, "--batch", 32, "--iterations", 3,
                            "--repetitions", 2, "--strategies", "lmdb,lmm", "--json",
                            self.path("ladder.json"), ranks=2, timeout=120)
        self.assertEqual(result.code, 0, result.err)
        self.assertIn("images/s", result.out)
        ladder = json.loads(self.read("ladder.json"))
        self.assertEqual((ladder["ranks"], ladder["nodes"], ladder["net"]), (2, 1, "lenet"))
        self.assertEqual(sorted(run["strategy"] for run in ladder["runs"]),
                         ["lmdb", "lmdb", "lmm", "lmm"])
        self.assertEqual(len({run["loss"] for run in ladder["runs"]}), 1)
        result = launch.run("bench", "train", self.training, "--batch", 32, "--strategies", "fast")
        self.assertEqual(result.code, 2, result.err)
        self.assertIn("fast", result.error_lines()[0])

    def test_explains_itself(self):
        result = launch.run("train", "--help")
        self.assertEqual(result.code, 0)
        for word in ("--net", "cifar10_full", "--strategy", "--checkpoint", "--momentum", "--sync",
                     "scp-topo", "--accumulate"):
            self.assertIn(word, result.out)

    def test_usage_errors_are_one_line(self):
        for arguments, word in (((), "--batch"), (("--batch", 8, "--net", "vgg"), "lenet"),
                                (("--batch", 8, "--resume"), "--checkpoint"),
                                (("--batch", 8, "--lr", "-1"), "learning rate"),
                                (("--batch", 8, "--solver", "lbfgs"), "adam"),
                                (("--batch", 8, "--lr-epochs", "5,3"), "--lr-epochs"),
                                (("--batch", 8, "--threads", 100000), "1024"),
                                (("--batch", 8, "--sync", "ring"), "negotiate"),
                                (("--batch", 8, "--wire", "int8"), "bfloat16"),
                                (("--batch", 8, "--staleness", 2), "--sync servers"),
                                (("--batch", 8, "--sync", "servers", "--servers", -1), "--servers"),
                                (("--batch", 8, "--sync", "servers", "--servers", 9), "9 parameter"),
                                (("--batch", 8, "--sync", "servers", "--proxies", "x"), "numa"),
                                (("--batch", 8, "--sync", "servers", "--wire", "float16"),
                                 "--wire"),
                                (("--batch", 8, "--sync", "blocking", "--wire", "float16"),
                                 "--wire"),
                                (("--batch", 8, "--cycle", "fast"), "200ms"),
                                (("--batch", 8, "--fusion-bytes", "many"), "64MiB"),
                                (("--batch", 8, "--accumulate", 0), "--accumulate"),
                                (("--batch", 8, "--grow-batch", "1e-5"), "--test"),
                                (("--batch", 8, "--classes", 99999999999), "limit"),
                                (("--batch", 8, "--what"), "--what")):
            self.assert_usage_error(arguments, word, ranks=0)
        self.assert_usage_error(("--batch", 1), "2 ranks", ranks=2)

    def assert_usage_error(self, arguments, word, ranks):
        with self.subTest(arguments=arguments):
            result = launch.run("train", self.training, *arguments, ranks=ranks)
            self.assertEqual(result.code, 2, result.err)
            self.assertEqual(len(result.error_lines()), 1, result.err)
            self.assertIn(word, result.error_lines()[0])

    def test_without_a_trainer_the_error_says_what_to_install(self):
        alone = shutil.copy(launch.COMMAND, self.path("forebay"))
        result = subprocess.run([alone, "train", self.training], capture_output=True, text=True,
                                env={"PATH": self.scratch}, timeout=60, check=False)
        self.assertEqual(result.returncode, 1)
        self.assertIn("libtorch-dev", result.stderr)
        self.assertEqual(result.stderr.count("\n"), 1)


if __name__ == "__main__":
    launch.main()
