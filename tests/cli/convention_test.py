"""Conventions of LMDB data sets, as the commands show and honour them, against liblmdb's records."""

import json
import unittest

from command import CommandTest, liblmdb, png, records, write_records


def numbered(prefix, number):
    return b"%s%09d" % (prefix, number)


class Conventions(CommandTest):
    def grouped(self, count=12, name="text", counter=None):
        pairs = [(b"num-samples", b"%d" % (count if counter is None else counter))]
        for i in range(1, count + 1):
            pairs += [(numbered(b"image-", i), png(3, 4, 5, bytes([i]) * 60)),
                      (numbered(b"label-", i), b"word %d" % i)]
        write_records(self.path(name), pairs)
        return self.path(name)

    def lines(self, *arguments):
        text = self.succeed("samples", *arguments, "--batch", 1)
        return [json.loads(line) for line in text.splitlines()]

    def test_inspect_says_what_was_recognised_and_why(self):
        report = self.succeed_json("inspect", self.grouped())
        self.assertEqual(report["entries"], 25)
        self.assertEqual(report["samples"], 12)
        self.assertEqual(report["convention"]["name"], "grouped")
        self.assertEqual(report["convention"]["parts"], ["image", "label"])
        self.assertEqual(report["convention"]["metadata"],
                         [{"key": "num-samples", "value_bytes": 2, "count": 12}])
        self.assertEqual(report["schema"], "image:u8[3x4x5]")
        text = self.succeed("inspect", self.path("text"))
        for word in ["12, grouped (image, label)", "image-000000001", "image:u8[3x4x5] (parts)"]:
            self.assertIn(word, text)
        plain = self.succeed_json("inspect", self.path("text"), "--convention", "plain")
        self.assertEqual((plain["samples"], plain["convention"]["name"]), (25, "plain"))

    def test_samples_have_the_parts_that_liblmdb_has(self):
        path = self.grouped()
        sizes = {key: len(value) for key, value in records(path)}
        lines = self.lines(path)
        self.assertEqual([bytes.fromhex(line["key"]) for line in lines],
                         [b"%09d" % i for i in range(1, 13)])
        for i, line in enumerate(lines, 1):
            self.assertEqual({name: part["bytes"] for name, part in line["parts"].items()},
                             {"image": sizes[numbered(b"image-", i)],
                              "label": sizes[numbered(b"label-", i)]})
        self.assertEqual(len(self.lines(path, "--convention", "plain")), 25)
        self.assertTrue(all("decoded" in line for line in self.lines(path, "--decode")))

    def test_a_counter_that_lies_is_an_error_with_both_numbers(self):
        path = self.grouped(counter=13)
        for command in (["samples", path, "--batch", 4], ["verify", path]):
            self.fail(*command, naming=["13", "12", "num-samples", "--convention plain"])
        report = self.succeed_json("inspect", path)
        self.assertIn("13", report["convention_problem"])

    def test_verify_decodes_samples_not_counters(self):
        path = self.grouped()
        report = self.succeed_json("verify", path)
        self.assertEqual((report["sound"], report["samples"], report["records"]), (True, 12, 25))
        write_records(path, [(numbered(b"image-", 7), png(3, 4, 6, bytes(72)))])
        result = self.run_command("verify", path, "--json")
        self.assertEqual(result.returncode, 1)
        faults = json.loads(result.stdout)["faults"]
        self.assertEqual(len(faults), 1)
        self.assertIn("000000007", faults[0])

    def test_verify_looks_at_samples_of_a_named_database_too(self):
        environment = liblmdb.Environment(self.path("named"))
        with environment.transaction(name="train", flags=liblmdb.CREATE) as transaction:
            transaction.put(b"num-samples", b"3")
            for i in range(1, 4):
                transaction.put(numbered(b"image-", i), png(3, 4, 5, bytes(60)))
                transaction.put(numbered(b"label-", i), b"word")
        environment.close()
        report = self.succeed_json("verify", self.path("named#train"))
        self.assertEqual((report["sound"], report["samples"], report["records"]), (True, 3, 7))

    def test_bookkeeping_beside_numbers_is_left_out_and_named(self):
        path = self.path("ase")
        pairs = [(b"%d" % i, b"atoms") for i in range(1, 11)]
        write_records(path, pairs + [(b"nextid", b"x\x9c"), (b"deleted_ids", b"x\x9c")])
        keys = sorted(key for key, _ in pairs)
        result = self.run_command("samples", path, "--batch", 1)
        self.assertEqual([bytes.fromhex(json.loads(line)["key"])
                          for line in result.stdout.splitlines()], keys)
        self.assertEqual(len([line for line in result.stderr.splitlines() if "nextid" in line]), 1)
        report = self.succeed_json("inspect", path)
        self.assertEqual((report["entries"], report["samples"]), (12, 10))
        self.assertEqual([record["key"] for record in report["convention"]["metadata"]],
                         ["deleted_ids", "nextid"])
        self.assertIn("unlike", report["convention"]["metadata"][0]["why"])
        self.assertIn("deleted_ids, nextid: unlike", self.succeed("inspect", path))
        self.assertEqual(self.succeed_json("verify", path)["samples"], 10)
        self.assertEqual(len(self.lines(path, "--keep-records", "nextid")), 11)
        self.assertEqual(len(self.lines(path, "--keep-records", "*")), 12)
        self.assertEqual(len(self.lines(path, "--leave-out", "1,nextid", "--keep-records", "d*")), 10)
        self.fail("samples", path, "--batch", 1, "--leave-out", "none", code=2, naming=["none"])

    def told(self, *arguments):
        """Lines of a run beside what it prints."""
        result = self.run_command(*arguments)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stderr.splitlines()

    def test_every_record_that_is_left_out_is_named_at_open_and_by_verify(self):
        words = [b"apple", b"house", b"moon", b"tree"]
        write_records(self.path("words"), [(word, b"of " + word) for word in words]
                      + [(b"count", b"4"), (b"__info__", b"{}")])
        for path, count, names in ((self.grouped(), 12, ["num-samples (12)"]),
                                   (self.path("words"), 4, ["count (4)", "__info__"])):
            lines = self.told("samples", path, "--batch", 1)
            self.assertEqual(len(lines), 1, lines)
            report = self.succeed_json("verify", path)
            self.assertEqual((report["samples"], len(report["notes"])), (count, 1))
            for name in names:
                for text in (lines[0], report["notes"][0], self.succeed("inspect", path)):
                    self.assertIn(name, text)
            keys = ",".join(name.split(" ")[0] for name in names)
            self.assertEqual(self.told("samples", path, "--batch", 1, "--leave-out", keys), [])

    def test_prefixes_that_may_be_parts_are_told_by_all_commands(self):
        pairs = [(b"%s_%04d" % (name, i), b"%s %d" % (name, i))
                 for name in (b"cat", b"dog", b"owl") for i in range(5)]
        write_records(self.path("pets"), pairs)
        self.assertEqual([bytes.fromhex(line["key"]) for line in self.lines(self.path("pets"))],
                         [key for key, _ in pairs])
        told = self.told("samples", self.path("pets"), "--batch", 1)
        self.assertEqual(len(told), 1)
        notes = self.succeed_json("verify", self.path("pets"))["notes"]
        for text in (told[0], *notes, self.succeed("inspect", self.path("pets"))):
            self.assertIn("cat_0000, dog_0000, owl_0000", text)
            self.assertIn("--convention grouped", text)
        for convention, count in (("plain", 15), ("grouped", 5)):
            flags = ("--convention", convention)
            self.assertEqual(self.told("samples", self.path("pets"), "--batch", 1, *flags), [])
            self.assertEqual(len(self.lines(self.path("pets"), *flags)), count)

    def test_no_strategy_delivers_a_record_that_another_leaves_out(self):
        path = self.path("d")
        write_records(path, [(b"%d" % i, b"v") for i in range(20)] + [(b"metadata", b"x")])
        keys = [line["key"] for line in self.lines(path)]
        self.assertEqual(len(keys), 20)
        for strategy in ("lmm-dio", "lmm-dio-prov", "lmm-dio-prov-coal-stag"):
            lines = self.lines(path, "--strategy", strategy)
            self.assertEqual([line["key"] for line in lines], keys, strategy)
        for strategy in ("lmdb", "lmm", "lmm-dm"):
            self.fail("samples", path, "--batch", 1, "--strategy", strategy, code=2,
                      naming=[strategy, "--convention plain"])

    def test_named_databases_among_records_are_no_samples(self):
        path = self.path("both")
        environment = liblmdb.Environment(path)
        with environment.transaction(name="labels", flags=liblmdb.CREATE) as transaction:
            transaction.put(b"a", b"1")
        with environment.transaction(name="empty", flags=liblmdb.CREATE):
            pass
        environment.close()
        pairs = [(word, b"v") for word in (b"alpha", b"house", b"tree", b"moon", b"zoo")]
        write_records(path, pairs)
        for flags in ((), ("--convention", "plain")):
            self.assertEqual([bytes.fromhex(line["key"]) for line in self.lines(path, *flags)],
                             sorted(key for key, _ in pairs))
            report = self.succeed_json("inspect", path, *flags)
            self.assertEqual((report["entries"], report["samples"]), (5, 5))
            self.assertEqual([record["why"] for record in report["convention"]["metadata"]],
                             ["a named database"] * 2)
        self.assertEqual(self.succeed_json("verify", path)["records"], 5)

    def test_unpadded_numbers_come_in_the_order_that_is_asked_for(self):
        write_records(self.path("d"), [(b"%d" % i, b"") for i in range(25)])
        by_key = [bytes.fromhex(line["key"]) for line in self.lines(self.path("d"))]
        self.assertEqual(by_key, sorted(b"%d" % i for i in range(25)))
        by_number = self.lines(self.path("d"), "--order-by", "number")
        self.assertEqual([bytes.fromhex(line["key"]) for line in by_number],
                         [b"%d" % i for i in range(25)])

    def test_a_list_beside_the_data_gives_the_order(self):
        keys = [b"0003", b"0001", b"0002"]
        write_records(self.path("x.lmdb"), [(key, png(3, 4, 5, bytes(60))) for key in keys])
        self.write("x.lmdb/meta_info.txt", b"".join(b"%s.png (4,5,3) 1\n" % key for key in keys))
        self.assertEqual([bytes.fromhex(line["key"]) for line in self.lines(self.path("x.lmdb"))],
                         keys)
        self.assertEqual(self.succeed_json("inspect", self.path("x.lmdb"))["convention"]["name"],
                         "meta-info")
        self.write("x.lmdb/meta_info.txt", b"".join(b"%s.png (4,9,3) 1\n" % key for key in keys))
        self.fail("samples", self.path("x.lmdb"), "--batch", 2, naming=["4x9x3", "4x5x3"])

    def test_several_databases_one_behind_the_other_and_beside_each_other(self):
        for part in range(3):
            write_records(self.path(f"part-{part}"),
                          [(b"%d" % i, b"%d" % part) for i in range(part + 1)])
        lines = self.lines(self.path("part-*"))
        self.assertEqual([line["key"] for line in lines],
                         ["30", "30", "31", "30", "31", "32"])
        report = self.succeed_json("inspect", self.path("part-*"))
        self.assertEqual((report["entries"], len(report["databases"])), (6, 3))
        self.assertIn("part-2", self.succeed("inspect", self.path("part-*")))

        write_records(self.path("lq"), [(b"a", b"1"), (b"b", b"2")])
        write_records(self.path("gt"), [(b"a", b"three"), (b"b", b"")])
        pair = f"lq={self.path('lq')}&gt={self.path('gt')}"
        self.assertEqual([{name: part["bytes"] for name, part in line["parts"].items()}
                          for line in self.lines(pair)],
                         [{"lq": 1, "gt": 5}, {"lq": 1, "gt": 0}])
        self.assertTrue(self.succeed_json("verify", pair)["sound"])
        write_records(self.path("gt"), [(b"c", b"")])
        self.fail("samples", pair, "--batch", 2, naming=["key c", "'lq'"])

    def test_strategies_that_walk_say_what_else_to_do(self):
        self.fail("samples", self.grouped(), "--batch", 4, "--strategy", "lmm", code=2,
                  naming=["lmm", "--convention plain"])


if __name__ == "__main__":
    unittest.main()
