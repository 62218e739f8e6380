#!/usr/bin/python3
"""Bad input ends in one line that names the place and the remedy, on every rank, soon.

Expected everywhere: exit 1 (2 for wrong usage), within 5 s beyond what a start costs, no segment
left in shared memory (AcceptanceCase checks that).
"""

import os
import shutil
import subprocess
import unittest

import damage
import launch
import liblmdb

LIMIT = 5
STRATEGIES = (["lmdb"], ["lmm", "--engine", "mmap"], ["lmm", "--engine", "pread"])
# Each rank's own exit status: the launcher tells only the first one, and then kills the others.
EACH_RANK = ("sh", "-c", '"$@"; echo $? > "$0.${OMPI_COMM_WORLD_RANK:-$PMI_RANK}"')


def records(count, size, key_size=8):
    return [(b"%0*d" % (key_size, i), bytes([i % 251]) * size) for i in range(count)]


def has_trainer():
    return launch.run("train", "--help").code == 0


class BadInput(launch.AcceptanceCase):

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.small = liblmdb.write(os.path.join(cls.scratch, "small"), records(400, 700))
        cls.large = liblmdb.write(os.path.join(cls.scratch, "large"), records(400, 3100))
        begin = launch.run("samples", cls.small, "--batch", 3, "--iterations", 1, ranks=3)
        cls.start_seconds = begin.seconds

    def copy(self, source, name):
        return shutil.copytree(source, self.path(name), dirs_exist_ok=True)

    def damaged(self, source, *lies):
        """A copy of `source` with `lies` told in it."""
        copy = self.copy(source, f"{os.path.basename(source)}-{lies[0].__name__}")
        data = damage.DataFile(copy)
        for lie in lies:
            lie(data)
        data.save()
        return copy

    def read_everything(self, dataset, *more, ranks=3, **options):
        return launch.run("samples", dataset, "--batch", 40, "--epochs", 1, *more, ranks=ranks,
                          **options)

    def assert_refused(self, result, *places, code=1):
        """One line of error with every one of `places` in it, the exit status, in time."""
        text = f"\nexit {result.code} after {result.seconds:.1f} s\n{result.err[-3000:]}"
        self.assertEqual(result.code, code, text)
        lines = result.error_lines()
        self.assertEqual(len(lines), 1, "one line of error" + text)
        for place in places:
            self.assertIn(place, lines[0], text)
        self.assertLess(result.seconds, LIMIT + 3 * self.start_seconds, text)

    def assert_every_strategy_refuses(self, dataset, *places, but=(), turn=None):
        """Every one but `but`; of the short run, one alone where it has its `turn`."""
        strategies = [strategy for strategy in STRATEGIES if strategy[0] not in but]
        if turn is not None and launch.SCALE == 1:
            strategies = [strategies[turn % len(strategies)]]
        for strategy in strategies:
            with self.subTest(dataset=os.path.basename(dataset), strategy=" ".join(strategy)):
                self.assert_refused(self.read_everything(dataset, "--strategy", *strategy),
                                    *places)


class DamagedFiles(BadInput):
    """Our own reader names page or offset. liblmdb, the baseline, trusts its files: not tried."""

    def test_lies_in_pages(self):
        small = (damage.cut_in_half, damage.zero_a_leaf, damage.loop_a_branch,
                 damage.point_past_the_end, damage.move_nodes_off_the_page,
                 damage.lie_about_lower, damage.lie_about_a_value_size, damage.root_out_of_range,
                 damage.lie_about_entries)
        for turn, lie in enumerate(launch.some(small, every=1, on_mpich=2)):
            self.assert_every_strategy_refuses(self.damaged(self.small, lie), "data.mdb",
                                               but=("lmdb",), turn=turn)

    def test_lies_about_overflow_runs(self):
        for lie in (damage.cut_in_half, damage.point_an_overflow_run_at_a_leaf):
            self.assert_every_strategy_refuses(self.damaged(self.large, lie), "data.mdb",
                                               but=("lmdb",))

    def test_wrong_magic_and_unknown_version(self):
        for turn, lie in enumerate((damage.spoil_the_magic, damage.raise_the_version)):
            self.assert_every_strategy_refuses(self.damaged(self.small, lie), "data.mdb", turn=turn)

    def test_every_rank_ends_with_the_same_status(self):
        """Also where only one node's root has met the damage."""
        path = self.damaged(self.small, damage.zero_a_leaf)
        for ranks_per_node in (3, 2, 1):
            with self.subTest(ranks_per_node=ranks_per_node):
                statuses = self.path(f"status-{ranks_per_node}")
                result = self.read_everything(path, prefix=(*EACH_RANK, statuses),
                                              env={"FOREBAY_RANKS_PER_NODE": ranks_per_node})
                codes = []
                for rank in range(3):
                    with open(f"{statuses}.{rank}", encoding="ascii") as status:
                        codes.append(int(status.read()))
                self.assertEqual(codes, [1, 1, 1], result.err)
                self.assertEqual(len(result.error_lines()), 1, result.err)
                self.assertLess(result.seconds, LIMIT + 3 * self.start_seconds)

    def test_verify_and_inspect_end_too(self):
        for lie in (damage.zero_a_leaf, damage.loop_a_branch, damage.point_past_the_end,
                    damage.swap_two_leaves):
            path = self.damaged(self.small, lie)
            with self.subTest(lie=lie.__name__):
                result = launch.run("verify", path)
                self.assertEqual(result.code, 1, result.err + result.out)
                self.assertRegex(result.err + result.out, "page [0-9]+")
                self.assertIn(launch.run("inspect", path).code, (0, 1))


class WrongFiles(BadInput):

    def test_a_data_set_that_is_not_there(self):
        self.assert_every_strategy_refuses(self.path("nowhere"), "nowhere")

    def test_an_empty_directory(self):
        os.mkdir(self.path("empty"))
        self.assert_every_strategy_refuses(self.path("empty"), "empty")

    def test_a_text_file_named_data_mdb(self):
        os.mkdir(self.path("text"))
        for turn, text in enumerate(("hello\n", "not a database\n" * 2000)):
            with open(self.path("text/data.mdb"), "w", encoding="ascii") as file:
                file.write(text)
            self.assert_every_strategy_refuses(self.path("text"), "data.mdb", turn=turn)

    def test_an_empty_file(self):
        open(self.path("nothing.mdb"), "wb").close()
        self.assert_every_strategy_refuses(self.path("nothing.mdb"), "nothing.mdb")

    def test_a_named_database_that_is_not_there(self):
        self.assert_every_strategy_refuses(self.small + "#train", "train")

    def test_only_named_databases_are_listed(self):
        path = self.path("named")
        for name in ("train", "test"):
            liblmdb.write(path, records(5, 10), name=name)
        for command in (["samples", path, "--batch", "2"], ["inspect", path]):
            with self.subTest(command=command[0]):
                result = launch.run(*command)
                self.assertIn("train", result.err + result.out)
                self.assertIn("test", result.err + result.out)

    @unittest.skipUnless(os.geteuid() == 0 and shutil.which("setpriv"), "needs root and setpriv")
    def test_no_permission(self):
        path = self.copy(self.small, "secret")
        os.chmod(os.path.join(path, "data.mdb"), 0o600)
        os.chmod(self.scratch, 0o755)
        user = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")
        for strategy in STRATEGIES:
            with self.subTest(strategy=" ".join(strategy)):
                result = self.read_everything(path, "--strategy", *strategy, ranks=0, prefix=user)
                self.assert_refused(result, "data.mdb", "ermission")


class WrongUsage(BadInput):

    def test_a_batch_smaller_than_the_ranks(self):
        result = launch.run("samples", self.small, "--batch", 2, "--iterations", 1, ranks=3)
        self.assert_refused(result, "batch", "2", "3", code=2)

    def test_numbers_beyond_all_bounds(self):
        for arguments in (["--epochs", 1 << 60], ["--coalesce", 1 << 24, "--batch", 1 << 32],
                          ["--stage-bytes", (1 << 64) - 4096]):
            for ranks in (0, 2):
                with self.subTest(arguments=arguments, ranks=ranks):
                    batch = [] if "--batch" in arguments else ["--batch", 4]
                    result = launch.run("samples", self.small, *batch, *arguments, ranks=ranks)
                    self.assert_refused(result, code=2)

    def test_an_output_onto_the_data_set_leaves_it_alone(self):
        data = os.path.join(self.small, "data.mdb")
        size = os.path.getsize(data)
        result = launch.run("samples", self.small, "--batch", 4, "--output", data, ranks=2)
        self.assert_refused(result, "overwrite", code=2)
        self.assertEqual(os.path.getsize(data), size)

    def test_ranks_with_different_arguments(self):
        mine = ["samples", self.small, "--batch", 4]
        for others in (["--iterations", 3], ["--strategy", "lmdb"], ["--stats"], ["--decode"]):
            with self.subTest(others=others):
                result = launch.run(*mine, ":", "-n", 1, launch.COMMAND, *mine, *others, ranks=1)
                self.assert_refused(result, "rank 1", "same arguments", code=2)

    def test_missing_and_unknown_words(self):
        for arguments in (["samples"], ["samples", self.small], [], ["nonsense"],
                          ["samples", self.small, "--batch", "4", "--strategy", "magic"],
                          ["samples", self.small, "--batch", "0", "--iterations", "1"],
                          ["samples", self.small, "--batch", "4", "--iterations", "-1"],
                          ["samples", self.small, "--batch", "many", "--iterations", "1"],
                          ["samples", self.small, "--batch", "4", "--iterations", "1",
                           "--coalesce", "0"],
                          ["samples", self.small, "--batch", "4", "--iterations", "1",
                           "--order", "random"],
                          ["pack", self.small], ["inspect"], ["verify"],
                          *([["train", self.small]] if has_trainer() else [])):
            with self.subTest(arguments=arguments):
                result = launch.run(*arguments)
                self.assertEqual(result.code, 2, result.err + result.out)
                self.assertTrue(result.err.strip())


class BadValues(BadInput):
    """Values that do not decode: delivered as they are, or named by their key; never shifted."""

    def database(self, name, index, value):
        stored = [(b"%08d" % i, self.datum(i)) for i in range(20)]
        stored[index] = (stored[index][0], value)
        return liblmdb.write(self.path(name), stored)

    @staticmethod
    def datum(label):
        """A Caffe Datum of 1 x 2 x 2 bytes: channels, height, width, data, label."""
        return (b"\x08\x01\x10\x02\x18\x02" + b"\x22\x04" + bytes(4) + b"\x28" + bytes([label]))

    def test_undecodable_values_are_delivered_undecoded(self):
        for name, value in (("zero", b""), ("garbage", b"\xff" * 40)):
            path = self.database(name, 13, value)
            result = launch.run("samples", path, "--batch", 5, "--iterations", 4, ranks=2)
            self.assertEqual(result.code, 0, result.err)
            lines = result.out.splitlines()
            self.assertEqual(len(lines), 20)
            self.assertIn(liblmdb.xxh3(value), lines[13])

    def test_undecodable_values_are_named_when_decoding(self):
        for name, value in (("zero-d", b""), ("garbage-d", b"\xff" * 40),
                            ("short-d", self.datum(3)[:-5])):
            path = self.database(name, 13, value)
            with self.subTest(value=name):
                result = launch.run("samples", path, "--batch", 5, "--iterations", 4, "--decode",
                                    ranks=2)
                self.assert_refused(result, "00000013")

    def test_a_value_of_another_shape_is_named(self):
        other = b"\x08\x01\x10\x03\x18\x03" + b"\x22\x09" + bytes(9) + b"\x28\x01"
        path = self.database("shape", 7, other)
        result = launch.run("samples", path, "--batch", 5, "--iterations", 4, "--decode", ranks=2)
        self.assert_refused(result, "00000007")

    def test_a_declared_shape_that_the_value_does_not_fit(self):
        path = liblmdb.write(self.path("raw"), records(20, 100))
        result = launch.run("samples", path, "--batch", 5, "--iterations", 4, "--decode",
                            "--codec", "raw", "--schema", "image:u8[3x32x32]", ranks=2)
        self.assert_refused(result, "image:u8[3x32x32]", "key 0000000")

    def test_a_label_out_of_the_classes_is_named(self):
        if not has_trainer():
            self.skipTest("built without the trainer")
        image = bytes(28 * 28)
        header = b"\x08\x01\x10\x1c\x18\x1c\x22\x90\x06"
        stored = [(b"%08d" % i, header + image + b"\x28" + bytes([i % 10 if i != 13 else 99]))
                  for i in range(64)]
        path = liblmdb.write(self.path("labels"), stored)
        result = launch.run("train", path, "--test", path, "--net", "lenet", "--batch", 16,
                            "--epochs", 1, ranks=2, timeout=120)
        self.assertEqual(result.code, 1, result.err)
        self.assertIn("00000013", result.err)
        self.assertIn("99", result.err)


class TruncatedWhileOpen(BadInput):

    def test_a_file_cut_during_the_run(self):
        """The reader is held back by a pipe that nobody empties while the file is cut."""
        for strategy in STRATEGIES[1:]:
            with self.subTest(strategy=" ".join(strategy)):
                self.cut_during_a_run(strategy)

    def cut_during_a_run(self, strategy):
        path = liblmdb.write(self.path("cut-" + strategy[-1]), records(20000, 3100))
        data = os.path.join(path, "data.mdb")
        pipe = self.path("pipe-" + strategy[-1])
        os.mkfifo(pipe)
        job = launch.Job([launch.COMMAND, "samples", path, "--batch", 30, "--epochs", 20,
                          "--strategy", *strategy, "--output", pipe], ranks=3)
        with open(pipe, "rb") as lines:
            lines.readline()
            os.truncate(data, 40 * damage.PAGE)
            subprocess.run(["cat"], stdin=lines, stdout=subprocess.DEVNULL, check=True, timeout=60)
        self.assert_refused(job.wait(60), "data.mdb")


if __name__ == "__main__":
    launch.main()
