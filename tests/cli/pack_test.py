"""forebay pack: what is in the data set afterwards, read by liblmdb itself."""

import gzip
import os
import subprocess
import unittest

from command import COMMAND, CommandTest, datum, encode_datum, idx, png, records, write_records


class PackedRecords(CommandTest):
    def check_idx(self, source, images, labels, *options):
        self.succeed("pack", source, self.path("out"), "--from", "idx", *options)
        packed = records(self.path("out"))
        self.assertEqual([key for key, _ in packed],
                         [b"%08d" % i for i in range(len(images))])
        for (_, value), image, label in zip(packed, images, labels):
            self.assertEqual(value, encode_datum(1, 4, 5, image, label))

    def test_idx_directory(self):
        self.check_idx(*self.idx_source())

    def test_idx_gzipped(self):
        self.check_idx(*self.idx_source(zipped=True), "--commit-every", 3)

    def test_idx_file_with_labels_beside_it(self):
        directory, images, labels = self.idx_source(zipped=True)
        self.check_idx(os.path.join(directory, "train-images-idx3-ubyte.gz"), images, labels)

    def test_count_takes_the_first_records(self):
        source, images, labels = self.idx_source()
        self.check_idx(source, images[:7], labels[:7], "--count", 7)

    def test_cifar10(self):
        batches = [bytes([label]) + bytes([label * 20 + i % 7 for i in range(3072)])
                   for label in range(6)]
        self.write("cifar/data_batch_1.bin", batches[0] + batches[1])
        self.write("cifar/data_batch_2.bin", b"".join(batches[2:]))
        self.write("cifar/test_batch.bin", batches[3])
        self.succeed("pack", self.path("cifar"), self.path("out"), "--from", "cifar10")
        self.assertEqual([value for _, value in records(self.path("out"))],
                         [encode_datum(3, 32, 32, b[1:], b[0]) for b in batches])
        self.succeed("pack", self.path("cifar"), self.path("test"), "--from", "cifar10",
                     "--split", "test")
        self.assertEqual(len(records(self.path("test"))), 1)

    def test_raw_with_and_without_labels(self):
        source = self.write("images.raw", bytes(range(60)))
        labels = self.write("labels.txt", b"3\n-1\n70000\n")
        self.succeed("pack", source, self.path("plain"), "--from", "raw", "--shape", "1x4x5")
        values = [datum(value) for _, value in records(self.path("plain"))]
        self.assertEqual([v[4] for v in values], [bytes(range(i, i + 20)) for i in (0, 20, 40)])
        self.assertNotIn(5, values[0])
        self.succeed("pack", source, self.path("labelled"), "--from", "raw", "--shape", "1x4x5",
                     "--labels", labels)
        values = [datum(value) for _, value in records(self.path("labelled"))]
        self.assertEqual([v[5] for v in values], [3, 2**64 - 1, 70000])

    def test_encoded_images_keep_their_pixels(self):
        source, images, labels = self.idx_source(count=3)
        self.succeed("pack", source, self.path("out"), "--from", "idx", "--encode", "png")
        fields = datum(records(self.path("out"))[0][1])
        self.assertEqual(fields[7], 1)
        self.assertTrue(fields[4].startswith(b"\x89PNG"))
        self.succeed("verify", self.path("out"))
        self.succeed("pack", source, self.path("jpeg"), "--from", "idx", "--encode", "jpeg")
        self.assertTrue(datum(records(self.path("jpeg"))[0][1])[4].startswith(b"\xff\xd8\xff"))

    def test_shape_resizes(self):
        source, *_ = self.idx_source(count=3)
        self.succeed("pack", source, self.path("out"), "--from", "idx", "--shape", "3x8x8")
        fields = datum(records(self.path("out"))[0][1])
        self.assertEqual((fields[1], fields[2], fields[3], len(fields[4])), (3, 8, 8, 192))


class Folder(CommandTest):
    def image(self, name, value, channels=3, height=2, width=2):
        return self.write(name, png(channels, height, width,
                                    bytes([value]) * (channels * height * width)))

    def test_equal_file_names_in_different_folders_stay_apart(self):
        self.image("in/cat/x.png", 10)
        self.image("in/dog/x.png", 20)
        self.image("in/dog/deep/x.PNG", 30)
        self.write("in/dog/notes.txt", b"not an image")
        self.succeed("pack", self.path("in"), self.path("out"), "--from", "folder")
        packed = records(self.path("out"))
        self.assertEqual([key for key, _ in packed],
                         [b"00000000_cat/x.png", b"00000001_dog/x.png",
                          b"00000002_dog/deep/x.PNG"])
        self.assertEqual([(datum(v)[5], datum(v)[4][0]) for _, v in packed],
                         [(0, 10), (1, 20), (1, 30)])

    def test_files_of_the_wanted_format_are_stored_as_they_are(self):
        path = self.image("in/a/1.png", 99)
        self.succeed("pack", self.path("in"), self.path("out"), "--from", "folder", "--encode",
                     "png")
        with open(path, "rb") as file:
            self.assertEqual(datum(records(self.path("out"))[0][1])[4], file.read())

    def test_images_of_other_shapes_need_a_shape(self):
        self.image("in/a/1.png", 5)
        self.image("in/a/2.png", 5, channels=1, height=3)
        self.fail("pack", self.path("in"), self.path("out"), "--from", "folder",
                  naming=["a/2.png", "1x3x2", "3x2x2", "--shape"])
        self.succeed("pack", self.path("in"), self.path("out"), "--from", "folder", "--shape",
                     "3x2x2", "--force")
        self.assertEqual({datum(v)[4] for _, v in records(self.path("out"))}, {bytes([5]) * 12})

    def test_shuffle_is_drawn_from_the_seed_and_loses_nothing(self):
        for i in range(20):
            self.image(f"in/{i % 2}/{i:02}.png", i)

        def order(name, *options):
            self.succeed("pack", self.path("in"), self.path(name), "--from", "folder", *options)
            return [datum(value)[4][0] for _, value in records(self.path(name))]

        first = order("a", "--shuffle", "--seed", 1)
        self.assertEqual(first, order("b", "--shuffle", "--seed", 1))
        self.assertNotEqual(first, order("c", "--shuffle", "--seed", 2))
        self.assertEqual(sorted(first), list(range(20)))

    def test_names_longer_than_a_key_keep_their_end(self):
        name = "c/" + "/".join(["d" * 100] * 6) + "/x.png"
        self.image("in/" + name, 1)
        self.succeed("pack", self.path("in"), self.path("out"), "--from", "folder")
        key = records(self.path("out"))[0][0]
        self.assertEqual(len(key), 511)
        self.assertTrue(key.startswith(b"00000000_") and key.endswith(b"/x.png"))

    def test_links_to_nothing_are_named(self):
        self.write("images/a/x.png", png(1, 2, 2, bytes(4)))
        os.symlink("/nowhere/y.png", self.path("images", "a", "y.png"))
        text = self.succeed("pack", self.path("images"), self.path("out"), "--from", "folder")
        for word in ("y.png", "1 left out: 1 broken link"):
            self.assertIn(word, text)

    def test_bad_images_are_named(self):
        self.image("in/a/1.png", 5)
        self.write("in/a/2.png", b"no image at all")
        self.fail("pack", self.path("in"), self.path("out"), "--from", "folder", naming="a/2.png")
        self.assertFalse(os.path.exists(self.path("out")))
        os.makedirs(self.path("empty"))
        self.fail("pack", self.path("empty"), self.path("out2"), "--from", "folder",
                  naming=self.path("empty"))


class Synthetic(CommandTest):
    def test_generated_records_depend_on_the_seed_alone(self):
        def values(name, *options):
            self.succeed("pack", "-", self.path(name), "--from", "synthetic", "--preset",
                         "cifar10-large", "--count", 20, *options)
            return [value for _, value in records(self.path(name))]

        first = values("a")
        self.assertEqual(first, values("b", "--commit-every", 1))
        self.assertNotEqual(first, values("c", "--seed", 1))
        self.assertEqual(len(set(first)), 20)
        self.assertEqual((datum(first[0])[1], datum(first[0])[2], datum(first[0])[3]), (3, 32, 32))

    def test_imagenet_preset(self):
        self.succeed("pack", "-", self.path("out"), "--from", "synthetic", "--preset",
                     "imagenet-large", "--count", 2)
        self.assertEqual(len(datum(records(self.path("out"))[1][1])[4]), 3 * 256 * 256)

    def test_replicated_records_recur(self):
        write_records(self.path("small"), [(b"a", b"first"), (b"b", b""), (b"c", b"third")])
        self.succeed("pack", self.path("small"), self.path("out"), "--from", "synthetic",
                     "--count", 8)
        self.assertEqual([value for _, value in records(self.path("out"))],
                         ([b"first", b"", b"third"] * 3)[:8])
        self.fail("pack", self.path("small"), self.path("x"), "--from", "synthetic", "--encode",
                  "png", code=2, naming="--encode")


    def test_records_that_are_no_samples_are_not_replicated(self):
        samples = [(b"%08d" % i, b"value %d" % i) for i in range(12)]
        write_records(self.path("set"), samples + [(b"num_samples", b"12"), (b"metadata", b"{}")])

        def packed(name, *options):
            result = self.run_command("pack", self.path("set"), self.path(name), "--from",
                                      "synthetic", *options)
            self.assertEqual(result.returncode, 0, result.stderr)
            return result.stderr, [value for _, value in records(self.path(name))]

        told, got = packed("out")
        self.assertIn("metadata", told)
        self.assertEqual(got, [value for _, value in samples])
        self.assertEqual(packed("more", "--count", 30)[1], (got * 3)[:30])
        self.assertEqual(packed("kept", "--keep-records", "metadata,num_samples")[1],
                         got + [b"{}", b"12"])
        self.assertEqual(packed("said", "--leave-out", "metadata,num_samples"), ("", got))


class Refusals(CommandTest):
    def test_usage(self):
        source, *_ = self.idx_source()
        out = self.path("out")
        self.fail("pack", source, out, code=2, naming="--from")
        self.fail("pack", source, out, "--from", "hdf5", code=2, naming=["--from", "cifar10, f"])
        self.fail("pack", source, out, "--from", "0", code=2, naming="--from")
        self.fail("pack", source, code=2, naming="DEST")
        self.fail("pack", source, out, "--from", "idx", "--count", 0, code=2, naming="--count")
        self.fail("pack", source, out, "--from", "idx", "--count", 26, code=2, naming="25")
        self.fail("pack", source, out, "--from", "idx", "--shape", "3x", code=2)
        self.fail("pack", source, out, "--from", "idx", "--shape", "3x9", code=2, naming="3x9")
        self.fail("pack", source, out, "--from", "idx", "--commit-every", 0, code=2)
        self.fail("pack", "-", out, "--from", "synthetic", code=2, naming="--preset")
        self.fail("pack", "-", out, "--from", "synthetic", "--preset", "mnist", code=2)
        self.fail(code=2, naming="subcommand")
        self.fail("pack", source, "", "--from", "idx", code=2, naming="DEST")
        self.fail("pakc", code=2)
        self.assertFalse(os.path.exists(out))

    def test_missing_and_damaged_sources(self):
        out = self.path("out")
        self.fail("pack", self.path("none"), out, "--from", "idx", naming=self.path("none"))
        self.fail("pack", self.path("none"), out, "--from", "folder", naming=self.path("none"))
        self.fail("pack", self.path("none"), out, "--from", "cifar10", naming=self.path("none"))
        self.fail("pack", self.path("none"), out, "--from", "synthetic", naming=self.path("none"))
        cifar = self.write("cut.bin", bytes(3072))
        self.fail("pack", cifar, out, "--from", "cifar10", naming=cifar)
        label = self.write("label.bin", b"\x0a" + bytes(3072))
        self.fail("pack", label, out, "--from", "cifar10", naming=[label, "label 10"])
        raw = self.write("raw", bytes(59))
        self.fail("pack", raw, self.path("o2"), "--from", "raw", "--shape", "1x4x5", naming=raw)
        self.fail("pack", raw, self.path("o2"), "--from", "raw", code=2, naming="--shape")

    def test_damaged_idx_files(self):
        images = self.path("i-images-idx3-ubyte")
        self.write("i-labels-idx1-ubyte", idx([2], b"\1\2"))
        for name, data in {
                "no idx": b"plain text",
                "empty": b"",
                "cut": idx([2, 2, 2], bytes(7)),
                "longer": idx([2, 2, 2], bytes(9)),
                "enormous": idx([2, 2**32 - 1, 2**32 - 1], bytes(8)),
                "no pixels": idx([2, 0, 2], b""),
                "floats": bytes([0, 0, 0x0d, 3]) + bytes(20),
                "cut gzip": gzip.compress(idx([2, 2, 2], os.urandom(8)))[:-12],
        }.items():
            with self.subTest(name):
                self.write("i-images-idx3-ubyte", data)
                line = self.fail("pack", images, self.path("out"), "--from", "idx")
                self.assertIn(images, line)
                self.assertFalse(os.path.exists(self.path("out.partial")))

    def test_images_and_labels_that_do_not_belong_together(self):
        images = self.write("i-images-idx3-ubyte", idx([3, 2, 2], bytes(12)))
        self.write("i-labels-idx1-ubyte", idx([2], b"\1\2"))
        self.fail("pack", images, self.path("out"), "--from", "idx",
                  naming=["i-labels-idx1-ubyte", "2 labels for 3 records"])

    def test_a_labels_header_that_lies_takes_no_memory(self):
        self.write("l-images-idx3-ubyte", idx([2, 2, 2], bytes(8)))
        labels = self.write("l-labels-idx1-ubyte", idx([2**32 - 1], b"\1\2"))
        self.fail("pack", self.path("l-images-idx3-ubyte"), self.path("out"), "--from", "idx",
                  naming=labels)

    def test_idx_without_labels(self):
        images = self.write("alone-images-idx3-ubyte", idx([2, 2, 2], bytes(8)))
        self.fail("pack", images, self.path("out"), "--from", "idx", naming="--labels")


class Summary(CommandTest):
    def test_json(self):
        source, *_ = self.idx_source()
        summary = self.succeed_json("pack", source, self.path("out"), "--from", "idx")
        self.assertEqual(summary["records"], 25)
        self.assertEqual(summary["value_bytes"],
                         sum(len(value) for _, value in records(self.path("out"))))
        self.assertEqual(summary["file_bytes"], os.path.getsize(self.path("out", "data.mdb")))
        self.assertEqual(summary["destination"], self.path("out"))

    def test_text_names_the_place(self):
        source, *_ = self.idx_source()
        text = self.succeed("pack", source, self.path("out"), "--from", "idx")
        self.assertIn("25 records", text)
        self.assertIn(self.path("out"), text)
        self.assertNotIn("\033", text)

    def test_output_that_cannot_be_written_is_an_error(self):
        source, *_ = self.idx_source()
        with open("/dev/full", "w", encoding="ascii") as full:
            result = subprocess.run([COMMAND, "pack", source, self.path("out"), "--from", "idx"],
                                    stdout=full, stderr=subprocess.PIPE, text=True, check=False)
        self.assertEqual(result.returncode, 1)
        self.assertIn("standard output", result.stderr)

    def test_help_that_cannot_be_written_is_an_error(self):
        with open("/dev/full", "w", encoding="ascii") as full:
            result = subprocess.run([COMMAND, "--help"], stdout=full, stderr=subprocess.PIPE,
                                    text=True, check=False)
        self.assertEqual(result.returncode, 1)
        self.assertIn("standard output", result.stderr)

    def test_an_error_that_cannot_be_shown_is_no_crash(self):
        with open("/dev/full", "w", encoding="ascii") as full:
            result = subprocess.run([COMMAND, "inspect", self.path("none")], stderr=full,
                                    check=False)
        self.assertEqual(result.returncode, 1)

    def test_version_and_help(self):
        self.assertRegex(self.succeed("--version"), r"^forebay \d+\.\d+\.\d+")
        self.assertIn("pack", self.succeed("--help"))
        self.assertIn("--commit-every", self.succeed("pack", "--help"))
        for command in ("pack", "inspect", "verify", "samples"):
            text = self.succeed(command, "--help").replace("\n", "")
            self.assertTrue(text.isprintable(), ascii(text))


if __name__ == "__main__":
    unittest.main()
