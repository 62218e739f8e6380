"""forebay pack of image files that say more than their pixels: stored is what they mean."""

import struct
import unittest
import zlib

from command import CommandTest, datum, encode_datum, png, records


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


if __name__ == "__main__":
    unittest.main()
