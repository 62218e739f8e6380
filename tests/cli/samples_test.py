"""`forebay samples --decode`: what decodes is shown with a digest of its fields, what does not ends
the run or is skipped. Shards, which need no MPI."""

import json
import unittest

from command import CommandTest, encode_datum, write_records


class SamplesTest(CommandTest):
    BAD = {0: b"not a Datum", 5: b"", 11: encode_datum(1, 5, 4, bytes(20), 1)}

    def make(self, bad):
        write_records(self.path("set"),
                      [(b"%08d" % i, bad.get(i, encode_datum(1, 4, 5, bytes([i] * 20), i)))
                       for i in range(16)])
        return self.path("set")

    def lines(self, *arguments):
        result = self.run_command("samples", *arguments)
        self.assertEqual(result.returncode, 0, result.stderr)
        return [json.loads(line) for line in result.stdout.splitlines()], result.stderr

    def test_digests_do_not_depend_on_how_it_is_decoded(self):
        data = self.make({})
        plain, _ = self.lines(data, "--batch", 4)
        decoded, _ = self.lines(data, "--batch", 4, "--decode")
        self.assertEqual(len({line["decoded"] for line in decoded}), 16)
        for more in (("--decode-threads", 3), ("--decode-ahead", 0), ("--decode-ahead", 5)):
            self.assertEqual(self.lines(data, "--batch", 4, "--decode", *more)[0], decoded)
        for line in decoded:
            del line["decoded"]
        self.assertEqual(decoded, plain)

    def test_a_transform_decodes_and_depends_on_the_seed_alone(self):
        data = self.make({})
        steps = ("--transform", "pad=2,crop=4x4:random,flip,to-float")
        one, _ = self.lines(data, "--batch", 4, "--epochs", 2, *steps)
        self.assertEqual(self.lines(data, "--batch", 4, "--epochs", 2, *steps)[0], one)
        other = {(line["epoch"], line["sample"]): line["decoded"]
                 for line in self.lines(data, "--batch", 3, "--epochs", 2, "--order", "shuffled",
                                        "--decode-threads", 3, *steps)[0]}
        self.assertEqual({(line["epoch"], line["sample"]): line["decoded"] for line in one}, other)
        self.assertGreater(len({digest for (_, sample), digest in other.items() if sample}), 20)
        seeded, _ = self.lines(data, "--batch", 4, "--epochs", 2, "--seed", 1, *steps)
        self.assertNotEqual(seeded, one)
        self.fail("samples", data, "--batch", 4, "--transform", "crop=9", code=2,
                  naming=("crop=9x9", "u8[1x4x5]"))
        self.fail("samples", data, "--batch", 4, "--transform", "flop", code=2,
                  naming="flop")

    def test_a_bad_sample_ends_the_run_with_its_key(self):
        data = self.make({5: self.BAD[5]})
        self.fail("samples", data, "--batch", 4, "--decode", "--output", self.path("lines"),
                  naming=("sample 5", "00000005", "empty"))

    def test_bad_samples_are_skipped_and_named(self):
        data = self.make(self.BAD)
        for epochs in (1, 2):
            lines, errors = self.lines(data, "--batch", 4, "--decode", "--undecodable", "skip",
                                       "--stats", "--epochs", epochs)
            self.assertEqual([line["sample"] for line in lines],
                             [i for i in range(16) if i not in self.BAD] * epochs)
            warnings = [line for line in errors.splitlines() if "is skipped" in line]
            self.assertEqual(len(warnings), 3, errors)
            for sample, line in zip(sorted(self.BAD), warnings):
                self.assertIn(f"sample {sample}: key {sample:08d}", line)
            figures = json.loads(errors.splitlines()[-1])["all"]
            self.assertEqual(figures["skipped"], 3 * epochs)
            self.assertEqual(figures["batches"], 4 * epochs)

    def test_an_epoch_has_each_sample_once(self):
        ends = {"exact": (16, 0), "drop": (12, 0), "pad": (18, 2), "wrap": (18, 2)}
        for order in ("strided", "shuffled"):
            for end, (deliveries, repeats) in ends.items():
                lines, errors = self.lines(self.make({}), "--batch", 6, "--order", order,
                                           "--epochs", 1, "--end", end, "--stats")
                figures = json.loads(errors.splitlines()[-1])["all"]
                self.assertEqual((figures["dropped"], figures["repeated"]),
                                 (16 - deliveries + repeats, repeats))
                self.assertEqual(len(lines), deliveries)
                self.assertEqual(sum(line["repeat"] for line in lines), repeats)
                own = [line["sample"] for line in lines if not line["repeat"]]
                self.assertEqual(len(set(own)), len(own))
                self.assertEqual({line["epoch"] for line in lines}, {0})

    def test_batches_of_the_strided_order_reach_over_the_ends_between_epochs(self):
        lines, _ = self.lines(self.make({}), "--batch", 6, "--epochs", 3)
        self.assertEqual([line["sample"] for line in lines], 3 * list(range(16)))
        self.assertEqual([line["iteration"] for line in lines], [i // 6 for i in range(48)])

    def test_a_batch_larger_than_the_data_set_is_one_epoch(self):
        lines, _ = self.lines(self.make({}), "--batch", 40)
        self.assertEqual([line["sample"] for line in lines], list(range(16)))
        self.fail("samples", self.make({}), "--batch", 40, "--end", "drop", code=2,
                  naming=("--end drop", "--batch"))

    def test_an_end_that_never_comes_is_refused(self):
        for end in ("exact", "drop", "pad", "wrap"):
            self.fail("samples", self.make({}), "--batch", 4, "--iterations", 3, "--end", end,
                      code=2, naming=("strided", "--epochs"))

    def test_skipping_without_decoding_is_refused(self):
        data = self.make({})
        self.fail("samples", data, "--batch", 4, "--undecodable", "skip", code=2,
                  naming="--decode")

    def test_shards_share_a_run_without_being_connected(self):
        data = self.make({})
        for order in ("strided", "shuffled"):
            common = (data, "--batch", 5, "--order", order, "--epochs", 2)
            whole, _ = self.lines(*common)
            shared = []
            for shard in range(3):
                lines, _ = self.lines(*common, "--shard", f"{shard}/3")
                self.assertEqual({line["rank"] for line in lines}, {shard})
                shared += lines
            place = ("iteration", "global", "sample")
            self.assertEqual(sorted([line[name] for name in place] for line in shared),
                             [[line[name] for name in place] for line in whole])

    def test_shards_take_nothing_from_each_other(self):
        self.fail("samples", self.make({}), "--batch", 4, "--shard", "0/2", "--order", "in_memory",
                  code=2, naming=("order in_memory", "MPI"))


if __name__ == "__main__":
    unittest.main()
