"""forebay verify --against: the samples of two data sets, of any formats, side by side."""

import io
import json
import shutil
import struct
import tarfile
import unittest

from command import CommandTest, encode_datum, png, write_records


def pixels(i):
    return bytes((i * 7 + k) % 251 for k in range(48))


class Compare(CommandTest):
    def differ(self, one, other, *more, naming):
        line = self.fail("verify", self.path(one), "--against", self.path(other), *more,
                         naming=["not the same as " + self.path(other), *naming])
        self.assertIn(self.path(one), line)

    def test_a_copy_is_the_same_and_a_flipped_bit_is_named(self):
        values = [(b"%08d" % i, i.to_bytes(4, "big") * (600 + i % 7)) for i in range(2000)]
        write_records(self.path("one"), values)
        write_records(self.path("other"), values)
        report = self.succeed_json("verify", self.path("one"), "--against", self.path("other"))
        self.assertEqual((report["same"], report["compared"], report["differing"]), (True, 2000, 0))
        self.assertEqual(report["compared_as"], "stored")
        self.assertIn("none of 2,000 samples differ", self.succeed(
            "verify", self.path("one"), "--against", self.path("other")))
        with open(self.path("other", "data.mdb"), "r+b") as file:
            data = file.read()
            at = data.rindex(values[1234][1]) + 17
            file.seek(at)
            file.write(bytes([data[at] ^ 4]))
        self.differ("one", "other", naming=["1 of 2,000 samples differs",
                                            "sample 1234 (key 00001234): byte 17 of 2408"])
        result = self.run_command("verify", self.path("one"), "--against", self.path("other"),
                                  "--json")
        self.assertEqual(result.returncode, 1)
        report = json.loads(result.stdout)
        self.assertEqual((report["same"], report["differing"]), (False, 1))
        self.assertEqual(report["differences"],
                         [{"sample": 1234, "key": "00001234", "text": "byte 17 of 2408"}])

    def test_counts_lengths_and_keys(self):
        write_records(self.path("one"), [(b"k%03d" % i, b"value") for i in range(20)])
        write_records(self.path("less"), [(b"k%03d" % i, b"value") for i in range(19)])
        write_records(self.path("longer"), [(b"k%03d" % i, b"value" + b"x" * (i == 3))
                                            for i in range(20)])
        write_records(self.path("keys"), [(b"k%03d" % (i + (i == 19)), b"value")
                                          for i in range(20)])
        self.differ("one", "less", naming=["20 samples against 19"])
        self.differ("one", "longer", naming=["sample 3 (key k003): 5 bytes against 6"])
        self.differ("one", "keys", naming=["sample 19 (key k019): its key is k020 in the other"])

    def test_names_of_classes_are_compared(self):
        for folder, names in (("in", "ab"), ("other", "Ab"), ("more", "abc")):
            for name in names:
                self.write(f"{folder}/{name}/0.png", png(3, 4, 4, pixels(ord(name.lower()))))
        self.succeed("pack", self.path("in"), self.path("out"), "--from", "folder")
        self.succeed("verify", self.path("out"), "--against", self.path("in"))
        named = "none of 2 samples differ, and class 0 is 'a', and 'A' in the other"
        self.differ("out", "other", naming=[named])
        result = self.run_command("verify", self.path("out"), "--against", self.path("other"),
                                  "--json")
        report = json.loads(result.stdout)
        self.assertEqual((report["same"], report["differing"], report["classes"]),
                         (False, 0, "class 0 is 'a', and 'A' in the other"))
        # Names that only one has are no difference where no label needs them.
        self.succeed("pack", self.path("in"), self.path("wide"), "--from", "folder", "--classes",
                     self.path("more"))
        self.succeed("verify", self.path("wide"), "--against", self.path("in"))

    def test_a_codec_that_no_sample_has_is_the_error(self):
        self.write("in/a/0.png", png(3, 4, 4, pixels(1)))
        self.succeed("pack", self.path("in"), self.path("out"), "--from", "folder")
        self.fail("verify", self.path("out"), "--against", self.path("in"), "--codec", "image",
                  naming=[self.path("out"), "the bytes are no image"])

    def test_other_formats_are_compared_by_what_they_decode_to(self):
        """A folder of images, what pack made of it, and a tar file of the same images."""
        with tarfile.open(self.path("set.tar"), "w") as tar:
            for i in range(10):
                image = png(3, 4, 4, pixels(i))
                self.write(f"folder/{'ab'[i // 5]}/{i}.png", image)
                for name, data in ((f"{i}.png", image), (f"{i}.cls", b"%d" % (i // 5))):
                    entry = tarfile.TarInfo(name)
                    entry.size = len(data)
                    tar.addfile(entry, io.BytesIO(data))
        for encode in ("raw", "png"):
            self.succeed("pack", self.path("folder"), self.path(encode), "--from", "folder",
                         "--encode", encode)
        same = self.succeed_json("verify", self.path("raw"), "--against", self.path("folder"))
        self.assertEqual((same["same"], same["compared"], same["compared_as"]),
                         (True, 10, "decoded"))
        # Of one kind, but stored differently: decoded where it is said.
        self.differ("raw", "png", naming=["10 of 10 samples differ"])
        self.succeed("verify", self.path("raw"), "--against", self.path("png"), "--codec", "datum")
        self.write("folder/b/7.png", png(3, 4, 4, pixels(8)))
        self.differ("folder", "raw", naming=["1 of 10 samples differs", "sample 7",
                                             "image, decoded: byte"])
        line = self.fail("verify", self.path("raw"), "--against", self.path("set.tar"), code=2,
                         naming=["image:u8[3x4x4],label:i32[]", "are not to be compared with"])
        self.assertIn("--codec", line)

    def test_arrays_of_one_field_go_by_any_name(self):
        def npy(name, values):
            header = b"{'descr': '<i4', 'fortran_order': False, 'shape': (%d, 2), }" % (
                len(values) // 2)
            header += b" " * ((-11 - len(header)) % 64) + b"\n"
            self.write(name, b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header +
                       struct.pack(f"<{len(values)}i", *values))

        npy("one.npy", range(100))
        npy("other.npy", [*range(77), -1, *range(78, 100)])
        self.succeed("verify", self.path("one.npy"), "--against", self.path("one.npy") + "#x=data")
        self.differ("one.npy", "other.npy", naming=["1 of 50 samples differs; first sample 38: "])

    def test_arrays_of_any_length_are_compared_where_values_are_decoded(self):
        for name, last in (("one", 3), ("other", 3), ("third", 4)):
            with tarfile.open(self.path(name), "w") as tar:
                for i in range(5):
                    box = struct.pack("<2f", i, last) if i == 4 else struct.pack("<f", i)
                    for part, content in (("box", box), ("cls", b"1")):
                        member = tarfile.TarInfo(f"{i}.{part}")
                        member.size = len(content)
                        tar.addfile(member, io.BytesIO(content))
        codec = ("--codec", "box=f32")
        self.assertIn("none of 5 samples differ",
                      self.succeed("verify", self.path("one"), "--against", self.path("other"), *codec))
        self.differ("one", "third", *codec,
                    naming=["1 of 5 samples differs", "sample 4 (key 4): box, decoded: byte 6 of 8"])

    def test_a_sample_that_cannot_be_read_differs(self):
        values = [(b"%08d" % i, encode_datum(1, 4, 5, bytes([i]) * 20, i)) for i in range(9)]
        write_records(self.path("one"), values)
        values[4] = (values[4][0], b"\xff" * len(values[4][1]))
        write_records(self.path("other"), values)
        self.differ("one", "other", "--codec", "datum",
                    naming=["1 of 9 samples differs", "sample 4"])
        shutil.rmtree(self.path("other"))
        self.fail("verify", self.path("one"), "--against", self.path("other"), naming="other")


if __name__ == "__main__":
    unittest.main()
