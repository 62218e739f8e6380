"""forebay pack of image files that say more than their pixels: stored is what they mean."""

import io
import os
import struct
import tarfile
import unittest
import zlib

from command import CommandTest, datum, encode_datum, png, records

try:
    from PIL import Image
except ImportError:
    Image = None


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png_of(width, height, bits, color, rows, chunks=b""):
    """A PNG file of rows as they lie in it."""
    stride = len(rows) // height
    lines = b"".join(b"\0" + rows[y * stride:(y + 1) * stride] for y in range(height))
    header = struct.pack(">IIBBBBB", width, height, bits, color, 0, 0, 0)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunks +
            chunk(b"IDAT", zlib.compress(lines)) + chunk(b"IEND", b""))


def turned(image, orientation):
    """`image` with EXIF's orientation in front of its pixels."""
    exif = b"MM\0*" + struct.pack(">IHHHIHHI", 8, 1, 0x0112, 3, 1, orientation, 0, 0)
    end = 8 + 25  # the header
    return image[:end] + chunk(b"eXIf", exif) + image[end:]


MASK = png_of(4, 1, 2, 3, b"\x1b", chunk(b"PLTE", bytes([0, 0, 0, 9, 0, 0, 0, 9, 0, 9, 9, 9])))
DEPTH = png_of(2, 1, 16, 0, bytes([2, 0, 3, 4]))
CLEAR = png_of(2, 1, 8, 6, bytes([1, 2, 3, 0, 4, 5, 6, 200]))
BITS = png_of(4, 2, 1, 0, b"\xa0\x70")
WHOLE = png_of(4, 2, 8, 0, bytes([255, 0, 255, 0, 0, 255, 255, 255]))  # the same in eight bits
YES = bytes([1, 0, 1, 0, 0, 1, 1, 1])


def bits_bmp():
    """What BITS shows, black and white by a palette."""
    rows = bytes([0x70, 0, 0, 0, 0xa0, 0, 0, 0])
    return (b"BM" + struct.pack("<IHHI", 62 + len(rows), 0, 0, 62) +
            struct.pack("<IiiHHIIiiII", 40, 4, 2, 1, 1, 0, 0, 0, 0, 2, 0) +
            bytes([0, 0, 0, 0, 255, 255, 255, 0]) + rows)


class PackedImages(CommandTest):
    def pack(self, *options, **files):
        """The values of a data set of these files, in order."""
        for name, content in files.items():
            self.write(f"in/c/{name}.png", content)
        self.succeed("pack", self.path("in"), self.path("out"), "--from", "folder", "--force",
                     *options)
        return [value for _, value in records(self.path("out"))]

    def refuse(self, content, *options, naming, code=2):
        self.write("in/c/x.png", content)
        self.fail("pack", self.path("in"), self.path("no"), "--from", "folder", "--force", *options,
                  naming=naming, code=code)

    def decoded(self):
        return self.succeed_json("verify", self.path("out"))["schema"]

    def test_images_stand_upright(self):
        image = turned(png(1, 2, 3, b"ABCDEF"), 6)
        self.assertEqual(self.pack(x=image), [encode_datum(1, 3, 2, b"DAEBFC", 0)])
        self.assertEqual(self.pack("--codec", "image:orientation=stored"),
                         [encode_datum(1, 2, 3, b"ABCDEF", 0)])
        [value] = self.pack("--shape", "3x3x2")
        self.assertEqual(datum(value)[4], 3 * b"DAEBFC")

    def test_a_file_that_is_stored_as_it_is_is_read_as_it_was_packed(self):
        image = turned(png(1, 2, 3, b"ABCDEF"), 6)
        [value] = self.pack("--encode", "png", x=image)
        self.assertEqual(datum(value)[4], image)
        self.assertEqual(self.decoded(), "image:u8[1x3x2],label:i32[]")
        [value] = self.pack("--encode", "png", "--codec", "image:orientation=stored")
        self.assertNotIn(b"eXIf", datum(value)[4])
        self.assertEqual(self.decoded(), "image:u8[1x2x3],label:i32[]")

    def test_sixteen_bits_are_stored_or_refused(self):
        [value] = self.pack("--encode", "png", x=DEPTH)
        self.assertEqual(datum(value)[4], DEPTH)
        self.assertEqual(self.decoded(), "image:u16[1x1x2],label:i32[]")
        [value] = self.pack("--encode", "png", "--shape", "1x1x4")
        self.assertEqual(self.decoded(), "image:u16[1x1x4],label:i32[]")
        for options in (), ("--shape", "1x4x4"), ("--encode", "jpeg"):
            self.refuse(DEPTH, *options, naming=["x.png", "u16", "--encode png"])

    def test_transparency_is_stored_or_dropped_where_that_is_said(self):
        [value] = self.pack(x=CLEAR)
        self.assertEqual(value, encode_datum(4, 1, 2, bytes([1, 4, 2, 5, 3, 6, 0, 200]), 0))
        [value] = self.pack("--codec", "image:rgb")
        self.assertEqual(value, encode_datum(3, 1, 2, bytes([1, 4, 2, 5, 3, 6]), 0))
        self.refuse(CLEAR, "--shape", "3x4x4", naming=["x.png", "image:rgb"])
        self.refuse(CLEAR, "--encode", "jpeg", naming=["x.png", "image:rgb"])

    def test_palettes_are_colors_or_class_numbers(self):
        [value] = self.pack(x=MASK)
        self.assertEqual(value, encode_datum(3, 1, 4, bytes([0, 9, 0, 9, 0, 0, 9, 9, 0, 0, 0, 9]),
                                             0))
        [value] = self.pack("--codec", "image:palette=index")
        self.assertEqual(value, encode_datum(1, 1, 4, bytes([0, 1, 2, 3]), 0))
        [value] = self.pack("--codec", "image:palette=index", "--encode", "png")
        self.assertEqual(self.decoded(), "image:u8[1x1x4],label:i32[]")
        for options in ("--shape", "1x8x8"), ("--encode", "jpeg"):
            self.refuse(MASK, "--codec", "image:palette=index", *options,
                        naming=["x.png", "classes"])

    def test_masks_of_one_bit_are_yes_and_no(self):
        [value] = self.pack(x=BITS)
        self.assertEqual(value, encode_datum(1, 2, 4, bytes([1, 0, 1, 0, 0, 1, 1, 1]), 0))
        self.refuse(BITS, "--shape", "1x8x8", naming=["x.png", "image:gray"])
        [value] = self.pack("--codec", "image:gray", "--shape", "1x1x1")
        self.assertEqual(datum(value)[4], bytes([160]))  # 5 of 8 are white

    def test_single_bits_among_bytes_are_refused_until_it_is_said(self):
        kind = {BITS: "1-bit 1x2x4", WHOLE: "1x2x4"}
        for first, second in (BITS, WHOLE), (WHOLE, BITS):
            self.write("in/c/0.png", first)
            self.write("in/c/1.png", second)
            named = ["1.png", f"{kind[second]} but", f"{kind[first]};", ":gray", ":palette=index"]
            for options in (), ("--encode", "png"), ("--shape", "1x2x4"):
                self.fail("pack", self.path("in"), self.path("no"), "--from", "folder", "--force",
                          *options, naming=named)
            result = self.run_command("verify", self.path("in"))
            self.assertEqual(result.returncode, 1)
            for word in ("sample 1", *named[1:]):
                self.assertIn(word, result.stdout)
            inspected = self.succeed_json("inspect", self.path("in"))
            self.assertEqual((inspected["other_kind"]["samples"], inspected["other_kind"]["of"]),
                             (1, 2))
            self.assertIn("1 of 2 samples with images that were looked at has another depth",
                          self.succeed("inspect", self.path("in")))
        # The remedies, as they are printed.
        self.succeed("pack", self.path("in"), self.path("no"), "--from", "folder", "--codec",
                     "image:gray", "--force")
        white = bytes(255 * one for one in YES)
        self.assertEqual([datum(value)[4] for value in self.pack("--codec", "image:gray")],
                         [white, white])
        self.assertEqual([datum(value)[4] for value in self.pack("--codec", "image:palette=index")],
                         [white, YES])
        for codec in "auto:gray", "auto:palette=index", "image:gray":
            self.assertIn("sound", self.succeed("verify", self.path("in"), "--codec", codec))

    def test_single_bits_stay_single_bits(self):
        self.write("in/c/y.bmp", bits_bmp())
        for encode in "raw", "png":
            values = self.pack("--encode", encode, x=BITS)
            self.succeed("verify", self.path("out"), "--against", self.path("in"))
        self.assertEqual([datum(value)[4][24] for value in values], [1, 1])  # IHDR's depth

    def test_a_mixture_of_depths_is_refused_with_a_shape_as_without(self):
        self.write("in/c/0.png", png(1, 1, 4, b"abcd"))
        self.write("in/c/1.png", DEPTH)
        for options in (), ("--shape", "1x1x4"):
            self.fail("pack", self.path("in"), self.path("no"), "--from", "folder", "--force",
                      "--encode", "png", *options, naming=["1.png", "u16 1x1x2", "1x1x4;", "one depth"])
        self.fail("verify", self.path("in"))

    def test_all_that_an_encoding_loses_are_named_in_one_go(self):
        names = [f"{number}.png" for number in range(3)]
        for content, encode, remedy in ((CLEAR, "jpeg", "image:rgb"), (DEPTH, "raw", "--encode png")):
            for name in names:
                self.write("in/c/" + name, content)
            self.fail("pack", self.path("in"), self.path("no"), "--from", "folder", "--encode",
                      encode, code=2, naming=["3 of 3 files", *names, remedy])
            self.assertFalse(os.path.exists(self.path("no.partial")), "nothing was packed")
        self.succeed("pack", self.path("in"), self.path("no"), "--from", "folder", "--encode", "png")

    def test_what_mends_other_channels_is_said(self):
        self.write("in/c/0.png", png(3, 1, 2, b"abcdef"))
        self.write("in/c/1.png", CLEAR)
        self.fail("pack", self.path("in"), self.path("no"), "--from", "folder",
                  naming=["4x1x2", "--codec image:rgb, and start anew with --force",
                          "--resume --on-error skip"])
        summary = self.succeed_json("pack", self.path("in"), self.path("no"), "--from", "folder",
                                    "--resume", "--on-error", "skip")
        self.assertEqual((summary["resumed_from"], summary["records"]), (1, 1))
        self.assertEqual(len(self.pack("--codec", "image:rgb")), 2)
        self.write("in/c/0.png", png(3, 2, 2, b"abcdefghijkl"))
        self.fail("pack", self.path("in"), self.path("other"), "--from", "folder",
                  naming=["4x1x2", "--codec image:rgb, and", "--shape CxHxW"])
        self.assertEqual(len(self.pack("--codec", "image:rgb", "--shape", "3x2x2")), 2)

    @unittest.skipUnless(Image, "needs Pillow")
    def test_numbers_that_no_encoding_has_are_read_where_they_lie(self):
        os.makedirs(self.path("in/c"))
        for mode in "F", "I":
            Image.new(mode, (3, 2), 7).save(self.path("in/c/x.tif"))
            if "does not read TIFF" in self.run_command("verify", self.path("in")).stdout:
                self.skipTest("built without libtiff")
            for encode in "raw", "png", "jpeg":
                line = self.fail("pack", self.path("in"), self.path("no"), "--from", "folder",
                                 "--encode", encode, code=2, naming="where they lie")
                self.assertNotIn("--encode png", line)
            self.succeed("verify", self.path("in"))

    def test_a_file_that_is_no_image_is_to_be_mended(self):
        self.write("in/c/0.png", b"no image")
        line = self.fail("pack", self.path("in"), self.path("no"), "--from", "folder",
                         naming=["0.png", "mend or remove it", "--on-error skip"])
        self.assertNotIn("--codec bytes", line)

    def test_other_kinds_of_images_are_packed(self):
        rows = bytes([3, 2, 1, 6, 5, 4, 0, 0])
        self.write("in/c/x.BMP", b"BM" + struct.pack("<IHHI", 54 + len(rows), 0, 0, 54) +
                   struct.pack("<IiiHHIIiiII", 40, 2, 1, 1, 24, 0, 0, 0, 0, 0, 0) + rows)
        [value] = self.pack()
        self.assertEqual(value, encode_datum(3, 1, 2, bytes([1, 4, 2, 5, 3, 6]), 0))

    def test_what_is_said_of_images_is_checked(self):
        self.refuse(MASK, "--codec", "image:upright", naming=["upright", "orientation=stored"])
        self.refuse(MASK, "--codec", "raw", naming="--codec raw")
        source, _, _ = self.idx_source()
        self.fail("pack", source, self.path("no"), "--from", "idx", "--codec", "image:rgb", code=2,
                  naming="folder")

    def test_verify_and_inspect_take_the_same_words(self):
        self.write("images/x.png", CLEAR)
        for command in "verify", "inspect":
            for codec, schema in [("auto", "u8[4x1x2]"), ("image:rgb", "u8[3x1x2]")]:
                said = self.succeed(command, self.path("images"), "--codec", codec)
                self.assertIn(schema, said)


class Turned(CommandTest):
    """Images that EXIF turns are counted, by inspect among the first 64 samples, by verify among all."""

    def check(self, path, *, inspect, verify):
        """Both are (turned, looked at)."""
        word, line = "auto:orientation=stored", "{} of {} samples with images"
        report = self.succeed_json("inspect", path)
        self.assertEqual(report.get("turned"),
                         {"samples": inspect[0], "of": inspect[1]} if inspect[0] else None)
        said = self.succeed("inspect", path)
        self.assertEqual(line.format(*inspect) in said, inspect[0] > 0, said)
        self.assertEqual("--codec " + word in said, inspect[0] > 0, said)
        notes = self.succeed_json("verify", path).get("notes", [])
        self.assertEqual([line.format(*verify) in note for note in notes],
                         [True] if verify[0] else [])
        for command in "inspect", "verify":  # the remedy, as it is printed
            report = self.succeed_json(command, path, "--codec", word)
            self.assertNotIn("turned", report)
            self.assertNotIn("notes", report)

    def test_in_folders_and_in_datums(self):
        image = png(1, 2, 2, b"ABCD")
        for i in range(70):
            self.write(f"in/c/{i:02}.png", turned(image, 1 + i % 8) if i % 2 else image)
        self.check(self.path("in"), inspect=(32, 64), verify=(35, 70))
        self.succeed("pack", self.path("in"), self.path("png"), "--from", "folder", "--encode", "png")
        self.check(self.path("png"), inspect=(32, 64), verify=(35, 70))
        self.succeed("pack", self.path("in"), self.path("raw"), "--from", "folder")
        self.check(self.path("raw"), inspect=(0, 0), verify=(0, 0))

    @unittest.skipUnless(Image, "needs Pillow")
    def test_by_pillow_in_archives(self):
        with tarfile.open(self.path("a.tar"), "w") as archive:
            for i in range(20):
                exif = Image.Exif()
                exif[0x0112] = i % 5  # none of 1 to 8 turns nothing, 1 neither
                kind = "JPEG" if i < 10 else "PNG"
                content = io.BytesIO()
                Image.new("RGB", (8, 8)).save(content, kind, exif=exif)
                member = tarfile.TarInfo(f"{i:02}.img")
                member.size = content.tell()
                content.seek(0)
                archive.addfile(member, content)
        self.check(self.path("a.tar"), inspect=(12, 20), verify=(12, 20))
        Image.new("RGB", (8, 8)).save(self.path("plain.jpg"))
        with tarfile.open(self.path("plain.tar"), "w") as archive:
            archive.add(self.path("plain.jpg"), "x.jpg")
        self.check(self.path("plain.tar"), inspect=(0, 1), verify=(0, 1))


if __name__ == "__main__":
    unittest.main()
