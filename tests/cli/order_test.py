"""forebay order: randomness and costs of an order, told before anything is read."""

import struct
import unittest

from command import CommandTest, write_records


class Order(CommandTest):
    def level(self, *arguments):
        report = self.succeed_json("order", "--samples", 7600, *arguments)
        return report["randomization_level_percent"]

    def test_the_randomization_levels_of_the_paper(self):
        self.assertEqual(self.level(), 100)
        self.assertEqual(self.level("--order", "in_memory", "--ratio", 0.5), 98.54)
        self.assertEqual(self.level("--order", "in_memory", "--ratio", 0.25), 96.96)
        for keep, level in ((4, 72.4), (16, 48.8), (256, 15.6)):
            self.assertAlmostEqual(self.level("--keep", keep), level, delta=0.06)
        self.assertIn("98.54 %", self.succeed("order", "--samples", 7600, "--ratio", 0.5))

    def test_what_is_claimed_is_what_is_drawn(self):
        report = self.succeed_json("order", "--samples", 7600, "--keep", 16)
        self.assertAlmostEqual(report["measured"]["neighbours_kept"], 15 / 16, delta=0.01)
        report = self.succeed_json("order", "--samples", 7600)
        self.assertLess(report["measured"]["neighbours_kept"], 0.002)
        self.assertLess(abs(report["measured"]["correlation"]), 0.06)

    def test_a_grouped_epoch_in_figures(self):
        report = self.succeed_json("order", "--samples", 8192, "--order", "grouped", "--group", 128,
                                   "--ranks", 64, "--batch", 64, "--sample-bytes", "1MiB",
                                   "--epochs", 100)
        self.assertEqual(report["convergence"],
                         {"subsets": 64, "fewer_than": 128, "epochs": 100, "holds": True})
        self.assertEqual(report["reads"]["requests"], 64)
        self.assertEqual(report["reads"]["bytes"], 8 << 30)
        self.assertEqual(report["reads"]["mean_request_bytes"], 128 << 20)
        self.assertEqual(report["memory_a_rank"]["samples"], 128)
        self.assertEqual(report["between_ranks"]["samples"], 0)
        self.assertEqual(report["iterations"], 128)

    def test_samples_in_memory_come_from_all_nodes(self):
        report = self.succeed_json("order", "--samples", 20000, "--order", "in_memory", "--ranks", 4,
                                   "--ranks-per-node", 2, "--sample-bytes", 100)
        self.assertTrue(report["reads"]["once_a_run"])
        self.assertAlmostEqual(report["between_nodes"]["bytes"], 1e6, delta=5e4)
        self.assertAlmostEqual(report["between_ranks"]["bytes"], 1.5e6, delta=5e4)

    def test_reuse_tells_what_it_saves(self):
        report = self.succeed_json("order", "--samples", 4000, "--group", 100, "--ranks", 4,
                                   "--batch", 40, "--reuse", 4)
        self.assertEqual(report["deliveries"], 16000)
        self.assertEqual(report["reads"]["samples"], 4000)
        self.assertEqual(report["reuse"]["movement_saved"], 0.75)
        self.assertAlmostEqual(report["reuse"]["distance"], 400, delta=5)

    def test_the_order_itself(self):
        report = self.succeed_json("order", "--samples", 20, "--ranks", 3, "--batch", 6)
        samples = [sample for ranks in report["list"] for rank in ranks for sample in rank]
        self.assertEqual(sorted(samples), list(range(20)))
        self.assertEqual(len(report["list"]), report["iterations"])
        other = self.succeed_json("order", "--samples", 20, "--ranks", 3, "--batch", 6, "--epoch", 1)
        self.assertNotEqual(other["list"], report["list"])
        self.assertIn("iteration  rank  samples", self.succeed("order", "--samples", 20))
        self.assertNotIn("iteration  rank", self.succeed("order", "--samples", 65))
        self.assertIn("iteration  rank", self.succeed("order", "--samples", 65, "--print"))

    def test_a_list_is_kept(self):
        ids = self.write("ids", b"4 0\n4\n 2\n")
        report = self.succeed_json("order", "--samples", 5, "--list", ids, "--batch", 2)
        self.assertEqual(report["list"], [[[4, 0]], [[4, 2]]])
        self.assertIsNone(report["randomization_level_percent"])

    def test_a_data_set_gives_its_number_and_size(self):
        write_records(self.path("set"), [(b"%04d" % i, bytes(i % 7 * 10)) for i in range(700)])
        report = self.succeed_json("order", self.path("set"), "--group", 70)
        self.assertEqual(report["samples"], 700)
        self.assertEqual(report["sample_bytes"], 30)
        self.assertEqual(report["reads"]["bytes"], 21000)

    def test_files_with_fields_give_theirs(self):
        head = b"{'descr': '<f4', 'fortran_order': False, 'shape': (90, 5)}\n"
        numbers = self.write("numbers.npy", b"\x93NUMPY\1\0" + struct.pack("<H", len(head)) + head
                             + bytes(90 * 20))
        report = self.succeed_json("order", numbers, "--group", 30)
        self.assertEqual((report["samples"], report["sample_bytes"]), (90, 20))

    def test_many_samples_take_no_time(self):
        report = self.succeed_json("order", "--samples", 1 << 40, "--ratio", 0.25, "--ranks", 64)
        self.assertFalse(report["counted"])
        self.assertIsNone(report["measured"])

    def test_what_makes_no_sense_is_refused(self):
        self.fail("order", code=2, naming="--samples")
        self.fail("order", self.path("set"), "--samples", 5, code=2, naming="not both")
        self.fail("order", "--samples", 5, "--order", "sorted", code=2, naming="sorted")
        self.fail("order", "--samples", 100, "--group", 50, "--ranks", 4, code=2,
                  naming="2 groups cannot be shared by 4 ranks")
        self.fail("order", "--samples", 100, "--group", 101, code=2, naming="larger")
        self.fail("order", "--samples", 100, "--ratio", 0, code=2, naming="memory ratio")
        self.fail("order", "--samples", 100, "--list", self.path("none"), naming="none")
        self.fail("order", "--samples", 100, "--list", self.root, code=2, naming="is a folder")
        self.fail("order", "--samples", 3, "--list", self.write("ids", b"1\n3\n"), code=2,
                  naming="entry 1")
        self.fail("order", "--samples", 3, "--list", self.write("ids", b"x\n"), code=2,
                  naming="line 1")
        # A word that is longer than an id is none, not two.
        self.fail("order", "--samples", 3, "--list", self.write("ids", b"1\n" + 33 * b"0"), code=2,
                  naming="line 2")
        self.fail("order", self.path("none"), naming="none")
        self.fail("order", "--samples", 1 << 30, "--print", code=2, naming="--print")


if __name__ == "__main__":
    unittest.main()
