"""forebay provenance: sidecars are made, checked and removed; what is wrong with one is named."""

import os
import random
import shutil
import unittest

from command import CommandTest, liblmdb, write_records


def even(count, size=300):
    return [(b"%08d" % i, bytes([i % 251]) * size) for i in range(count)]


def uneven(count):
    lengths = random.Random(3)
    return [(b"%08d_name%d" % (i, i), bytes(lengths.randrange(40000))) for i in range(count)]


class Provenance(CommandTest):
    def setUp(self):
        super().setUp()
        os.environ["XDG_CACHE_HOME"] = self.path("cache")

    def sidecar(self, name="data.mdb.forebay"):
        return self.path("set", name)

    def check_right(self, *more):
        report = self.succeed_json("provenance", self.path("set"), "--check", *more)
        self.assertEqual((report["right"], report["difference"]), (True, ""))
        return report["form"]

    def test_a_recipe_where_one_fits_with_the_facts(self):
        write_records(self.path("set"), even(5000))
        report = self.succeed_json("provenance", self.path("set"))
        self.assertEqual(report["form"], "recipe")
        self.assertEqual(report["sidecar"], self.sidecar())
        self.assertEqual(report["bytes"], os.path.getsize(self.sidecar()))
        self.assertEqual(report["papers"]["commit_frequency"], 5000)
        self.assertEqual(report["papers"]["record_size"], {"min": 300, "max": 300})
        self.assertEqual(report["papers"]["insert_order"], "ascending")
        self.assertEqual(report["papers"]["meta_pages"], 2)
        self.assertEqual(report["papers"]["max_records_per_leaf"], 12)
        self.assertGreater(report["papers"]["max_children_per_branch"], 100)
        self.assertEqual(report["more"]["records"], 5000)
        self.assertEqual(report["more"]["key_size"], {"min": 8, "max": 8})
        self.assertEqual(report["more"]["key_rule"], "decimal")
        self.assertEqual(self.check_right(), "recipe")
        self.assertEqual(self.succeed_json("inspect", self.path("set"))["sidecar"], "recipe")

    def test_a_table_where_none_fits_and_why(self):
        write_records(self.path("set"), uneven(400))
        report = self.succeed_json("provenance", self.path("set"))
        self.assertEqual(report["form"], "table")
        self.assertIn("the same room", report["why_no_recipe"])
        self.assertIsNone(report["papers"]["commit_frequency"])
        self.assertLess(report["bytes"], 800)
        self.assertEqual(self.check_right(), "table")
        self.assertIn("no recipe", self.succeed("provenance", self.path("set")))
        self.fail("provenance", self.path("set"), "--form", "recipe", code=2,
                  naming=["no recipe fits", "--form table"])

    def test_a_table_can_be_asked_for(self):
        write_records(self.path("set"), even(5000))
        self.assertIn("table", self.succeed("provenance", self.path("set"), "--form", "table"))
        self.assertEqual(self.check_right(), "table")
        self.fail("provenance", self.path("set"), "--check", "--form", "recipe",
                  naming="of the form table")

    def test_named_databases_have_their_own(self):
        environment = liblmdb.Environment(self.path("set"))
        for name in ("train", "test"):
            with environment.transaction(name=name, flags=liblmdb.CREATE) as transaction:
                for key, value in even(900):
                    transaction.put(key, value)
        environment.close()
        self.succeed("provenance", self.path("set") + "#train")
        self.succeed("provenance", self.path("set") + "#test")
        self.assertTrue(os.path.exists(self.sidecar("data.mdb.train.forebay")))
        self.succeed("provenance", self.path("set") + "#train", "--check")
        self.succeed("provenance", self.path("set") + "#test", "--check")
        self.fail("provenance", self.path("set"), code=2, naming="train")

    def test_an_older_state_is_noticed(self):
        write_records(self.path("set"), even(1000))
        self.succeed("provenance", self.path("set"))
        write_records(self.path("set"), [(b"99999999", b"one more")])
        self.fail("provenance", self.path("set"), "--check",
                  naming=["data.mdb.forebay", "another state", "forebay provenance"])
        self.assertIn("another state", self.succeed("inspect", self.path("set")))
        self.succeed("provenance", self.path("set"))
        self.check_right()

    def test_cut_and_changed_sidecars_are_noticed(self):
        write_records(self.path("set"), uneven(100))
        self.succeed("provenance", self.path("set"))
        with open(self.sidecar(), "rb") as file:
            whole = file.read()
        self.write("set/data.mdb.forebay", whole[:-3])
        self.fail("provenance", self.path("set"), "--check", naming="checksum")
        self.write("set/data.mdb.forebay", whole[:40] + b"!" + whole[41:])
        self.fail("provenance", self.path("set"), "--check", naming="checksum")
        self.write("set/data.mdb.forebay", b"")
        self.fail("provenance", self.path("set"), "--check", naming="data.mdb.forebay")

    def test_the_first_difference_is_named(self):
        # Two data sets of one fingerprint: the same lengths under other keys.
        def names(letter):
            return [(b"%08d_%s%d" % (i, letter if i == 250 else b"c", i), bytes(100 * (i % 70)))
                    for i in range(300)]
        write_records(self.path("other"), names(b"x"))
        write_records(self.path("set"), names(b"c"))
        self.succeed("provenance", self.path("other"), "--form", "table")
        os.rename(self.path("other", "data.mdb.forebay"), self.sidecar())
        result = self.run_command("provenance", self.path("set"), "--check")
        self.assertIn(result.returncode, (0, 1))
        if result.returncode == 1:
            self.assertIn("sample", result.stderr)

    def test_remove_takes_the_sidecar_away_once(self):
        write_records(self.path("set"), even(100))
        self.succeed("provenance", self.path("set"))
        self.assertIn("removed", self.succeed("provenance", self.path("set"), "--remove"))
        self.assertFalse(os.path.exists(self.sidecar()))
        self.assertIn("no sidecar", self.succeed("provenance", self.path("set"), "--remove"))
        self.fail("provenance", self.path("set"), "--check", naming="data.mdb.forebay")
        # Where there can be no cache, nothing of it is to be removed.
        os.environ["XDG_CACHE_HOME"] = "/dev/null"
        self.assertIn("no sidecar", self.succeed("provenance", self.path("set"), "--remove"))
        self.fail("provenance", self.path("set"), "--check", "--remove", code=2)

    def test_another_file_can_be_named(self):
        write_records(self.path("set"), even(100))
        file = self.path("elsewhere", "mine.forebay")
        self.succeed("provenance", self.path("set"), "--sidecar", file)
        self.assertEqual(os.listdir(self.path("elsewhere")), ["mine.forebay"])
        self.assertEqual(self.check_right("--sidecar", file), "recipe")
        self.assertFalse(os.path.exists(self.sidecar()))

    def test_a_folder_that_cannot_be_written_is_named(self):
        options = self.as_someone_else()
        write_records(self.path("set"), even(100))
        os.chmod(self.path("set"), 0o555)
        os.chmod(self.path("set", "data.mdb"), 0o444)
        self.fail("provenance", self.path("set"), naming=["data.mdb.forebay", "permission"],
                  **options)
        os.chmod(self.path("set"), 0o755)

    def test_empty_data_sets(self):
        write_records(self.path("set"), [])
        self.assertEqual(self.succeed_json("provenance", self.path("set"))["form"], "table")
        self.check_right()

    def test_damaged_data_sets_get_none(self):
        write_records(self.path("set"), even(3000))
        with open(self.path("set", "data.mdb"), "r+b") as file:
            for page in range(2, 40):
                file.seek(page * 4096 + 8)
                file.write(b"\xff" * 8)
        self.fail("provenance", self.path("set"), naming="page")
        self.assertFalse(os.path.exists(self.sidecar()))


class Pack(CommandTest):
    def pack(self, *more):
        return self.succeed_json("pack", "-", self.path("out"), "--from", "synthetic", "--shape",
                                 "3x8x8", "--count", "3000", *more)

    def test_writes_a_recipe_beside_the_data(self):
        self.assertEqual(self.pack()["sidecar"], "recipe")
        self.succeed("provenance", self.path("out"), "--check")

    def test_leaves_it_out_when_told_to(self):
        self.pack("--no-provenance")
        self.assertEqual(sorted(os.listdir(self.path("out"))), ["data.mdb", "lock.mdb"])

    def test_a_copy_of_a_data_set_keeps_its_sidecar(self):
        self.pack()
        shutil.copytree(self.path("out"), self.path("copy"))
        self.succeed("provenance", self.path("copy"), "--check")


if __name__ == "__main__":
    unittest.main()
