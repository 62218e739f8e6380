"""Files with fields: the bytes of every sample are those that h5py and NumPy read.

One file a case, so that a failure names its layout; `forebay inspect --dump` writes samples' bytes.
"""

import io
import itertools
import json
import os
import random
import re
import subprocess
import sys
import unittest
import zipfile

import h5py
import numpy as np

from command import COMMAND, CommandTest, png

TYPES = ["u1", "i1", "<u2", ">u2", "<i2", ">i2", "<u4", ">u4", "<i4", ">i4", "<u8", ">u8", "<i8",
         ">i8", "<f2", ">f2", "<f4", ">f4", "<f8", ">f8", "?", "S1", "S7", "V3"]
# rows and shape of a sample, shape of a chunk
CHUNKS = [((100, 7), (10, 7)), ((100, 7), (7, 7)), ((100, 7), (10, 4)), ((1, 5), (1, 5)),
          ((23, 6, 5), (4, 6, 5)), ((23, 6, 5), (4, 4, 3)), ((23, 6, 5), (23, 1, 5)),
          ((23, 6, 5), (1, 6, 1)), ((50,), (8,)), ((9, 3, 2, 4), (2, 2, 2, 3)),
          ((9, 3, 2, 4), (4, 3, 1, 4)), ((300, 2), (1, 2))]
FILTERS = {
    "gzip": {"compression": "gzip"},
    "gzip9": {"compression": "gzip", "compression_opts": 9},
    "shuffle": {"shuffle": True},
    "fletcher": {"fletcher32": True},
    "gzip_shuffle": {"compression": "gzip", "shuffle": True},
    "all": {"compression": "gzip", "shuffle": True, "fletcher32": True},
    "lzf": {"compression": "lzf"},
    "lzf_all": {"compression": "lzf", "shuffle": True, "fletcher32": True},
}
if h5py.h5z.filter_avail(h5py.h5z.FILTER_SZIP):
    FILTERS["szip"] = {"compression": "szip", "compression_opts": ("ec", 8)}
    FILTERS["szip_nn"] = {"compression": "szip", "compression_opts": ("nn", 16), "shuffle": True}


def values(shape, dtype, seed=0):
    """Numbers of every size, with equal neighbours here and there, so that filters have work."""
    generator = np.random.default_rng(seed)
    dtype = np.dtype(dtype)
    count = int(np.prod(shape))
    if dtype.kind in "SV":
        return np.frombuffer(generator.bytes(count * dtype.itemsize), dtype).reshape(shape)
    if dtype.kind == "b":
        return generator.integers(0, 2, shape).astype(dtype)
    numbers = np.repeat(generator.integers(0, 200, count), 3)[:count]
    return (numbers * (0.37 if dtype.kind == "f" else 1)).astype(dtype).reshape(shape)


def native_bytes(array):
    """The bytes that Forebay hands out: numbers in this machine's order."""
    return array.astype(array.dtype.newbyteorder("="), order="C").tobytes()


class Formats(CommandTest):
    groups = itertools.cycle((7, 1000))

    def dump(self, dataset, ids="all", *more):
        result = subprocess.run([COMMAND, "inspect", dataset, "--dump", ids, *map(str, more)],
                                capture_output=True, timeout=60, check=False)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout

    def check(self, dataset, arrays, *more):
        """All samples, then some in a random order with repeats; small and large groups by turns."""
        rows = len(arrays[0])
        ids = list(range(rows)) + random.Random(rows).choices(range(rows), k=40 if rows > 0 else 0)
        expected = b"".join(native_bytes(array[i:i + 1]) for i in ids for array in arrays)
        group = next(self.groups)
        got = self.dump(dataset, ",".join(map(str, ids)) or "all", "--group", group, *more)
        if got != expected:
            raise AssertionError(f"{dataset}: other bytes in groups of {group}")

    def new_file(self, name, **options):
        return h5py.File(self.path(name), "w", **options)

    def check_file(self, name, *fields):
        """Compares with what h5py reads from the file that was written."""
        with h5py.File(self.path(name), "r") as file:
            names = fields or sorted(key for key in file if file[key].shape != ())
            arrays = [file[field][...] for field in names]
        self.check(self.path(name) + ("#" + ",".join(fields) if fields else ""), arrays)


    def run_remedy(self, line):
        """What the last command of an error line prints, done as it is printed."""
        command = re.findall(r"python3 -c '[^']*'(?: [^ ;]+)*", line)[-1]
        result = subprocess.run(command.replace("python3", sys.executable, 1), shell=True, cwd=self.root,
                                capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(result.returncode, 0, command + result.stderr)


class Hdf5Sizes(Formats):
    def test_what_was_never_written_is_told_before_work_begins(self):
        """A file of 1400 bytes promises 10^12 samples: checking them would take a day."""
        with self.new_file("promise.h5") as file:
            file.create_dataset("x", shape=(2**40, 8), dtype="f4")
        with self.new_file("part.h5") as file:
            data = file.create_dataset("x", shape=(1000, 8), chunks=(10, 8), dtype="f4")
            data[:30] = 1
        with self.new_file("whole.h5") as file:
            file.create_dataset("x", data=np.ones((1000, 8), "f4"), chunks=(10, 8))
        with self.new_file("chunk.h5") as file:
            file.create_dataset("x", shape=(2**27, 1), chunks=(2**27, 1), dtype="f4",
                                compression="gzip")[0] = 1
        for name, note in (("promise", "none of the 1099511627776 samples"),
                           ("part", "only 3 % of the 1000 samples"), ("whole", None),
                           ("chunk", "each chunk decodes to 134217728 samples of 4 bytes")):
            notes = self.succeed_json("inspect", self.path(name + ".h5")).get("notes", [])
            self.assertEqual(len(notes), 0 if note is None else 1, notes)
            if note is not None:
                self.assertIn(note, notes[0])
                result = self.run_command("samples", self.path(name + ".h5"), "--batch", 1,
                                          "--iterations", 1)
                self.assertIn(note, result.stderr)


class Hdf5Types(Formats):
    def test_every_type_in_every_byte_order(self):
        for number, (dtype, chunks) in enumerate(itertools.product(TYPES, (None, (5, 2)))):
            name = f"type{number}.h5"
            with self.subTest(dtype=dtype, chunks=chunks):
                with self.new_file(name) as file:
                    file.create_dataset("x", data=values((21, 3), dtype), chunks=chunks,
                                        compression="gzip" if chunks else None)
                self.check_file(name, "x")

    def test_arrays_enumerations_and_empty_shapes(self):
        with self.new_file("more.h5") as file:
            file.create_dataset("array", (6,), np.dtype((">i2", (2, 3))))
            file["array"][...] = values((6, 2, 3), ">i2")
            kinds = h5py.enum_dtype({"A": 1, "B": 2000}, basetype=">i4")
            file.create_dataset("kind", data=np.array([1, 2000, 1, 1, 2000, 1], ">i4"), dtype=kinds)
            file.create_dataset("nothing", shape=(6, 0), dtype="f4")
            file.create_dataset("single", data=7)
        self.check_file("more.h5", "array", "kind", "nothing")


class Hdf5Layouts(Formats):
    def test_every_chunk_shape_with_every_filter(self):
        for number, ((shape, chunk), (filters, options)) in enumerate(
                itertools.product(CHUNKS, [("none", {}), *FILTERS.items()])):
            if filters.startswith("szip") and np.prod(chunk) < 16:
                continue  # the library refuses blocks that are larger than chunks
            name = f"chunks{number}.h5"
            with self.subTest(shape=shape, chunk=chunk, filters=filters):
                with self.new_file(name) as file:
                    file.create_dataset("x", data=values(shape, "<f4", number), chunks=chunk,
                                        **options)
                self.check_file(name, "x")

    def test_every_version_of_the_file_format(self):
        for number, (version, maxshape) in enumerate(
                itertools.product(("earliest", "v108", "v110"), (None, (None, 7), (None, None)))):
            name = f"version{number}.h5"
            with self.subTest(version=version, maxshape=maxshape):
                with self.new_file(name, libver=(version, "latest")) as file:
                    for field, options in (("plain", {}), ("packed", FILTERS["all"])):
                        file.create_dataset(field, data=values((100, 7), ">f8"), chunks=(9, 3),
                                            maxshape=maxshape, **options)
                self.check_file(name, "plain", "packed")

    def test_holes_have_the_fill_value(self):
        for number, (fill, chunks) in enumerate(
                itertools.product((None, 3, -2.5), (None, (10, 7), (10, 4)))):
            name = f"holes{number}.h5"
            with self.subTest(fill=fill, chunks=chunks):
                with self.new_file(name) as file:
                    file.create_dataset("never", (100, 7), ">f4", chunks=chunks, fillvalue=fill)
                    some = file.create_dataset("some", (100, 7), ">f4", chunks=chunks,
                                               fillvalue=fill)
                    some[13:37] = values((24, 7), ">f4")
                self.check_file(name, "never", "some")

    def test_user_blocks_and_groups_and_links(self):
        for block in (0, 512, 2048):
            name = f"block{block}.h5"
            with self.new_file(name, userblock_size=block) as file:
                file["a/deep/x"] = values((30, 4), "<i8")
                file.create_dataset("a/y", data=values((30,), "<i4"), chunks=(8,),
                                    compression="gzip")
                file["soft"] = h5py.SoftLink("/a/y")
                file["hard"] = file["a/y"]
            self.check_file(name, "a/deep/x", "a/y", "soft", "hard")
            report = self.succeed_json("inspect", self.path(name) + "#x=a/deep/x,soft")
            self.assertEqual(report["schema"], "x:i64[4],soft:i32[]")
            everything = self.succeed_json("inspect", self.path(name))
            self.assertEqual(everything["schema"], "a.deep.x:i64[4],a.y:i32[]")

    def test_compact_data_lie_in_the_headers(self):
        with self.new_file("compact.h5") as file:
            for field, dtype in (("x", ">i2"), ("y", "<f8")):
                properties = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
                properties.set_layout(h5py.h5d.COMPACT)
                space = h5py.h5s.create_simple((17, 3))
                h5py.h5d.create(file.id, field.encode(), h5py.h5t.py_create(np.dtype(dtype)), space,
                                properties)
                file[field][...] = values((17, 3), dtype)
        self.check_file("compact.h5", "x", "y")

    def test_chunks_that_skipped_a_filter(self):
        with self.new_file("masked.h5") as file:
            data = values((40, 4), "<i4")
            x = file.create_dataset("x", data=data, chunks=(10, 4), compression="gzip")
            x.id.write_direct_chunk((10, 0), data[10:20].tobytes(), filter_mask=1)
        self.check_file("masked.h5", "x")


class Hdf5Files(Formats):
    def write_parts(self, rows, **options):
        arrays = ([], [])
        for number, count in enumerate(rows):
            x, y = values((count, 5), "<f4", number), values((count,), ">i2", number)
            with self.new_file(f"part-{number}.h5") as file:
                file.create_dataset("x", data=x, **options)
                file.create_dataset("y", data=y)
            arrays[0].append(x)
            arrays[1].append(y)
        return [np.concatenate(array) for array in arrays]

    def test_many_files_are_one_data_set(self):
        grows = {"maxshape": (None, 5)}
        for options in ({}, {"chunks": (4, 5), **grows},
                        {"chunks": (4, 2), "compression": "gzip", **grows}):
            arrays = self.write_parts([7, 0, 1, 30, 0, 12], **options)
            for files in (self.path("part-*.h5"),
                          ",".join(self.path(f"part-{n}.h5") for n in range(6))):
                self.check(files + "#x,y", arrays)
                self.check(files + "#y,x", arrays[::-1])

    def test_no_rows_and_one_row(self):
        for rows in (0, 1):
            for number, chunks in enumerate((None, (3, 5))):
                name = f"rows{rows}-{number}.h5"
                with self.new_file(name) as file:
                    file.create_dataset("x", data=values((rows, 5), "<f4"), chunks=chunks,
                                        maxshape=(None, 5) if chunks else None)
                self.check_file(name, "x")
                self.assertEqual(self.succeed_json("inspect", self.path(name))["entries"], rows)

    def test_schemas_must_agree(self):
        self.write_parts([4, 4])
        with self.new_file("part-1.h5") as file:
            file["x"], file["y"] = values((4, 6), "<f4"), values((4,), ">i2")
        self.fail("inspect", self.path("part-*.h5"), code=2,
                  naming=["part-0.h5", "part-1.h5", "x:f32[6]", "x:f32[5]"])

    def test_a_group_of_contiguous_rows_is_one_read_a_field(self):
        x, y = values((5000, 100), "<f4"), values((5000,), "<i4")
        with self.new_file("plain.h5") as file:
            file["x"], file["y"] = x, y
        group = self.succeed_json("inspect", self.path("plain.h5"), "--group", 1000)["group"]
        self.assertLessEqual(group["requests"], 2)
        self.assertEqual(group["bytes_read"], group["bytes_used"])
        self.assertEqual(group["decode_units"], 0)

    def test_a_file_that_may_not_be_written_or_locked(self):
        with self.new_file("locked.h5") as file:
            file["x"] = values((5, 2), "<f4")
        someone = self.as_someone_else()
        os.chmod(self.path("locked.h5"), 0o444)
        os.chmod(self.root, 0o555)
        self.addCleanup(os.chmod, self.root, 0o755)
        self.succeed("inspect", self.path("locked.h5"), **someone)
        trace = subprocess.run(["strace", "-f", "-e", "trace=flock,fcntl,openat", COMMAND, "inspect",
                                self.path("locked.h5")], capture_output=True, text=True, timeout=60,
                               check=False)
        if trace.returncode != 0:
            self.skipTest("strace does not work here")
        self.assertIn("locked.h5", trace.stderr)
        for call in ("flock(", "F_SETLK", "F_OFD_SETLK", "O_RDWR"):
            self.assertNotIn(call, "\n".join(line for line in trace.stderr.splitlines()
                                             if "/dev/" not in line))


class Hdf5Refusals(Formats):
    def refuse(self, name, *naming, fields="", code=1):
        self.fail("inspect", self.path(name) + fields, code=code, naming=[name, *naming])

    def test_what_is_not_read_is_refused_at_open(self):
        with self.new_file("odd.h5") as file:
            file.create_dataset("good", data=values((3, 2), "<f4"))
            file.create_dataset("ragged", (3,), h5py.vlen_dtype(np.dtype("i4")))
            file.create_dataset("text", (3,), h5py.string_dtype())
            file.create_dataset("pair", (3,), np.dtype([("a", "i4"), ("b", "f4")]))
            file.create_dataset("complex", (3,), "c8")
            file.create_dataset("reference", (3,), h5py.ref_dtype)
            file.create_dataset("scaled", (3, 2), "i4", scaleoffset=4, chunks=(3, 2))
            file.create_dataset("outside", (3, 2), "f4", external=[(self.path("x.bin"), 0, 24)])
            file.create_dataset("single", data=1.5)
            file["elsewhere"] = h5py.ExternalLink("other.h5", "x")
            file["dangling"] = h5py.SoftLink("/nowhere")
            layout = h5py.VirtualLayout((3, 2), "f4")
            layout[:] = h5py.VirtualSource(file["good"])
            file.create_virtual_dataset("virtual", layout)
        for field, word in (("ragged", "variable length"), ("text", "variable length"),
                            ("pair", "compound"), ("complex", "compound"),
                            ("reference", "references"), ("scaled", "filter"),
                            ("outside", "external"), ("virtual", "virtual"),
                            ("single", "single value"), ("elsewhere", "another file"),
                            ("dangling", "no data set"), ("missing", "good, outside")):
            with self.subTest(field=field):
                self.refuse("odd.h5", word, field, fields="#x=good,y=" + field)
        self.refuse("odd.h5", "leave", code=1)
        self.succeed("inspect", self.path("odd.h5") + "#good")

    def test_a_line_with_h5py_alone_rewrites_what_is_not_read(self):
        data = values((6, 2), "i4")
        with self.new_file("odd.h5") as file:
            file.create_dataset("scaled", data=data, scaleoffset=0, chunks=(3, 2))
            file.create_dataset("outside", data=data, external=[(self.path("x.bin"), 0, 48)])
            file.create_dataset("deep/single", data=1.5)
            file.create_dataset("text", data=["a", "b"])
            file.create_dataset("empty", (0, 2), "f4")
            layout = h5py.VirtualLayout((6, 2), "i4")
            layout[:] = h5py.VirtualSource(file["scaled"])
            file.create_virtual_dataset("virtual", layout)
        for field in ("scaled", "outside", "virtual"):
            with self.subTest(field=field):
                self.run_remedy(self.fail("inspect", self.path("odd.h5") + "#" + field, naming=field))
                self.check(self.path("odd-new.h5") + "#" + field, [data])
                os.remove(self.path("odd-new.h5"))

    def test_what_lzf_made_is_read_whatever_it_is(self):
        generator = np.random.default_rng(1)
        for number, data in enumerate((np.zeros((100, 900), "u1"), generator.bytes(90000),
                                       np.repeat(generator.integers(0, 9, 9000), 10).astype("<i8"),
                                       np.tile(np.arange(700), 100).astype("<u2"))):
            array = np.frombuffer(data, "u1") if isinstance(data, bytes) else data
            array = array.reshape(100, -1)
            with self.new_file(f"lzf{number}.h5") as file:
                file.create_dataset("x", data=array, compression="lzf", chunks=True)
            self.check_file(f"lzf{number}.h5", "x")

    def test_unequal_row_counts(self):
        with self.new_file("unequal.h5") as file:
            file["x"], file["y"] = values((5, 2), "<f4"), values((6,), "<i4")
        self.refuse("unequal.h5", "5 rows", "has 6", code=2)
        self.refuse("unequal.h5", "5 rows", "has 6", fields="#x,y", code=2)

    def test_every_cut_is_an_error_before_any_sample(self):
        with self.new_file("whole.h5") as file:
            file["x"] = values((50, 20), "<f4")
            file.create_dataset("y", data=values((50, 20), "<f4"), chunks=(5, 20),
                                compression="gzip")
        with open(self.path("whole.h5"), "rb") as file:
            whole = file.read()
        for length in list(range(8, len(whole), len(whole) // 40)) + [len(whole) - 1]:
            self.write("cut.h5", whole[:length])
            self.fail("inspect", self.path("cut.h5"), "--dump", "0", naming="cut.h5")

    def test_a_damaged_chunk_is_named(self):
        for name, options in (("gzip", FILTERS["gzip"]), ("sum", FILTERS["fletcher"])):
            with self.new_file("damaged.h5") as file:
                x = file.create_dataset("x", data=values((50, 20), "<f4"), chunks=(5, 20), **options)
                offset = x.id.get_chunk_info(4).byte_offset
                size = x.id.get_chunk_info(4).size
            with open(self.path("damaged.h5"), "r+b") as file:
                file.seek(offset + size // 2)
                file.write(b"\xff\x00\xff\x00\xff\x00")
            with self.subTest(name):
                self.dump(self.path("damaged.h5"), "0,1,2")
                self.fail("inspect", self.path("damaged.h5"), "--dump", "20",
                          naming=["damaged.h5", f"offset {offset}", "sample 20"])


class Hdf5Samples(Formats):
    """Data sets of which each sample has its own: never an axis taken for samples."""

    COMPRESSED = {"compression": "gzip", "chunks": (3, 2, 3)}

    def notes(self, dataset):
        return " | ".join(self.succeed_json("inspect", dataset).get("notes", []))

    def test_a_group_a_sample(self):
        for number, options in enumerate(({}, self.COMPRESSED)):
            images = [values((6, 5, 3), ">u2", i) for i in range(12)]
            with self.new_file(f"g{number}.h5") as file:
                for i in range(12):
                    group = file.create_group(f"{i + 1:04d}" if number else str(i + 1))
                    group.create_dataset("image", data=images[i], **options)
                    group["label"] = np.int64(i % 7)
                file["classes"] = np.arange(7)
            path = self.path(f"g{number}.h5")
            report = self.succeed_json("inspect", path)
            self.assertEqual((report["entries"], report["schema"]),
                             (12, "image:u16[6x5x3],label:i64[]"))
            for word in ("*/image,*/label", "12 samples", "classes"):
                self.assertIn(word, " | ".join(report["notes"]))
            self.check(path, [np.stack(images), np.arange(12) % 7])
            self.check(path + "#y=*/label", [np.arange(12) % 7])

    def test_a_data_set_a_sample(self):
        # In the order of numbers, wherever they stand in names.
        arrays = [values((4, 4), "<f4", i) for i in range(11)]
        for name in ("img_{}", "data/{}.raw", "{}", "a/b/{}_x"):
            with self.new_file("d.h5") as file:
                for i in reversed(range(11)):
                    file[name.format(i)] = arrays[i]
            with self.subTest(name=name):
                self.check(self.path("d.h5"), [np.stack(arrays)])
                self.assertIn(name.format("*"), self.notes(self.path("d.h5")))
        with self.new_file("d.h5") as file:
            for i in range(11):
                file[f"img_{i}"] = arrays[i]
        self.assertEqual(self.succeed_json("inspect", self.path("d.h5"))["schema"], "img:f32[4x4]")
        self.check(self.path("d.h5") + "#z=img_*", [np.stack(arrays)])
        # Named rows are rows.
        self.check(self.path("d.h5") + "#img_3,img_10", [arrays[3], arrays[10]])

    def test_names_that_are_no_numbers(self):
        with self.new_file("n.h5") as file:
            for i in range(26):
                file[f"images/{chr(97 + i)}.png"] = values((5, 3), "<i2", i)
        self.check(self.path("n.h5"), [np.stack([values((5, 3), "<i2", i) for i in range(26)])])
        self.assertIn("images/*", self.notes(self.path("n.h5")))

    def test_layouts_of_every_kind_a_sample(self):
        with self.new_file("k.h5") as file:
            for i in range(9):
                data = values((6, 2, 3), "<i4", i)
                if i % 3 == 0:
                    file[f"s{i}"] = data
                elif i % 3 == 1:
                    file.create_dataset(f"s{i}", data=data, chunks=(4, 2, 2), compression="lzf")
                else:
                    file.create_dataset(f"s{i}", data=data, chunks=(6, 2, 3), shuffle=True)
        self.check(self.path("k.h5"), [np.stack([values((6, 2, 3), "<i4", i) for i in range(9)])])

    def test_what_may_be_either_is_refused_with_what_was_seen(self):
        with self.new_file("u.h5") as file:
            for i in range(5):
                file[f"img_{i}"] = values((32, 32), "u1", i)
        line = self.fail("inspect", self.path("u.h5"), code=2,
                         naming=["u.h5", "img_*", "5 of each", "'img_0' to 'img_4'"])
        for choice in re.findall(r"'[^']*u\.h5(#[^']+)'", line):
            self.succeed("inspect", self.path("u.h5") + choice)
        self.check(self.path("u.h5") + "#img_*",
                   [np.stack([values((32, 32), "u1", i) for i in range(5)])])
        with self.new_file("f.h5") as file:
            for i in range(3):
                file[f"fold{i}/x"], file[f"fold{i}/y"] = values((20, 4), "<f4", i), np.arange(20)
        line = self.fail("inspect", self.path("f.h5"), code=2,
                         naming=["fold*/x,fold*/y", "rows of one of them", "fold*/x[:],fold*/y[:]"])
        for choice in re.findall(r"'[^']*f\.h5(#[^']+)'", line):
            self.succeed("inspect", self.path("f.h5") + choice)

    def test_columns_with_numbers_stay_columns(self):
        with self.new_file("c.h5") as file:
            file["x1"], file["x2"] = values((20, 3), "<f4"), values((20, 3), "<f4", 1)
        self.check_file("c.h5", "x1", "x2")
        self.assertEqual(self.succeed_json("inspect", self.path("c.h5"))["schema"],
                         "x1:f32[3],x2:f32[3]")
        with self.new_file("c.h5") as file:
            for i in range(4):
                file[f"x{i}"] = values((20, 3), "<f4", i)
            file["label"] = np.arange(20)
        self.assertEqual(self.succeed_json("inspect", self.path("c.h5"))["entries"], 20)
        with self.new_file("c.h5") as file:
            for name in ("x1", "x2", "x3", "y1", "y2"):
                file[name] = values((20,), "<f4")
        self.assertEqual(self.succeed_json("inspect", self.path("c.h5"))["entries"], 20)

    def choices(self, path, *naming):
        """What a refusal proposes, as printed; each works."""
        line = self.fail("inspect", path, code=2, naming=[os.path.basename(path), *naming])
        found = re.findall(r"'[^']*\.h5(#[^']+)'", line)
        for choice in found:
            self.succeed("inspect", path + choice)
        return found

    def test_many_columns_are_no_samples_and_none_is_lost(self):
        for columns, rows in ((30, 100), (40, 20), (25, 25)):
            arrays = [values((rows,), "<f8", i) for i in range(columns)]
            with self.new_file("c.h5") as file:
                for i in range(columns):
                    file[f"feat{i}"] = arrays[i]
            path = self.path("c.h5")
            with self.subTest(columns=columns):
                self.assertEqual(self.choices(path, f"{columns} of each", "'feat0'"),
                                 ["#feat*", "#feat*[:]"])
                self.check(path + "#feat*", [np.stack(arrays)])
                self.check(path + "#feat*[:]", arrays)
            # What has as many rows beside them decides.
            with h5py.File(path, "a") as file:
                file["y"] = np.arange(rows)
            report = self.succeed_json("inspect", path)
            self.assertEqual((report["entries"], len(report["fields"])), (rows, columns + 1))
            self.assertIn("each row is taken for a sample, and feat* for fields",
                          " | ".join(report["notes"]))
            self.check(path + "#y,feat*[:]", [np.arange(rows), *arrays])
            self.fail("inspect", path + "#x=feat*[:]", code=2, naming=["feat*[:]"])

    def test_two_data_sets_with_numbers_are_fields_and_that_is_told(self):
        with self.new_file("t.h5") as file:
            file["img_0"], file["img_1"] = values((4, 4, 3), "u1"), values((4, 4, 3), "u1", 1)
        self.check_file("t.h5", "img_0", "img_1")
        path = self.path("t.h5")
        self.assertEqual(self.succeed_json("inspect", path)["notes"],
                         ["each row is taken for a sample, and img_* for fields; where each of "
                          f"these is a sample: '{path}#img_*'"])

    def test_splits_are_no_fields(self):
        """Each is a data set, with fields that are called the same in all."""
        x = {split: values((10, 3), "<f4", i) for i, split in enumerate(("train", "test", "val"))}
        path = self.path("s.h5")
        layouts = {"{split}/{name}": "#train", "data/{split}/{name}": "#data/train",
                   "{name}_{split}": "#x=x_train,y=y_train",
                   "my-{split}/{name}": "#my-.x=my-train/x,my-.y=my-train/y",
                   "{name}/{split}": "#x=x/train,y=y/train"}
        for layout, choice in layouts.items():
            for names in (["train", "test"], ["train", "val", "test"]):
                with self.new_file("s.h5") as file:
                    for split in names:
                        file[layout.format(split=split, name="x")] = x[split]
                        file[layout.format(split=split, name="y")] = np.arange(10)
                with self.subTest(layout=layout, names=names):
                    found = self.choices(path, layout.format(split="train", name="x"),
                                         layout.format(split="test", name="y"), "splits")
                    self.assertEqual(found, [choice, "#/[:]"])
                    self.check(path + choice, [x["train"], np.arange(10)])
                    self.check(path + choice.replace("train", "test"), [x["test"], np.arange(10)])
                    report = self.succeed_json("inspect", path + "#/[:]")
                    self.assertEqual(len(report["fields"]), 2 * len(names))

    def test_splits_of_other_lengths_and_of_samples(self):
        path = self.path("s.h5")
        with self.new_file("s.h5") as file:
            for split, rows in (("train", 20), ("test", 10)):
                file[f"{split}/x"], file[f"{split}/y"] = values((rows, 3), "<f4"), np.arange(rows)
            del file["test/y"]
        self.assertEqual(self.choices(path, "train/x, train/y, test/x"), ["#train"])
        self.check(path + "#train", [values((20, 3), "<f4"), np.arange(20)])
        self.assertEqual(self.succeed_json("inspect", path + "#train")["schema"], "x:f32[3],y:i64[]")
        images = [values((4, 5), "u1", i) for i in range(20)]
        folds = [values((8, 3), "<f4", i) for i in range(9)]
        with self.new_file("s.h5") as file:
            for i in range(9):
                file[f"fold_{i}/train/x"], file[f"fold_{i}/test/x"] = folds[i], folds[i][:2]
        self.assertEqual(self.choices(path, "fold_*/train/x"),
                         ["#x=fold_*/train/x", "#fold_.train.x=fold_*/train/x,fold_.test.x=fold_*/test/x"])
        self.check(path + "#x=fold_*/train/x", [np.stack(folds)])
        with self.new_file("s.h5") as file:
            file["a,b=c_train"], file["a,b=c_test"] = folds[0], folds[1]
        self.assertEqual(self.choices(path, "splits"), [r"#a_b_c=a\,b\=c_train", "#/[:]"])
        self.check(path + r"#z=a\,b\=c_train,a\,b\=c_test", folds[:2])
        with self.new_file("s.h5") as file:
            for split in ("Train", "Test"):
                for i in range(20):
                    file[f"{split}/{i}/x"], file[f"{split}/{i}/y"] = images[i], i
        self.assertEqual(self.choices(path, "Train/*/x", "Test/*/y")[0], "#Train")
        self.check(path + "#Train", [np.stack(images), np.arange(20)])
        self.assertEqual(self.succeed_json("inspect", path + "#Test")["schema"], "x:u8[4x5],y:i64[]")

    def test_groups_of_the_same_names_are_refused_with_what_was_seen(self):
        path = self.path("g.h5")
        left, right = values((10, 3), "<f4"), values((10, 3), "<f4", 1)
        with self.new_file("g.h5") as file:
            for side, image in (("left", left), ("right", right)):
                file[f"{side}/image"], file[f"{side}/y"] = image, np.arange(10)
        self.assertEqual(self.choices(path, "left/image, left/y, right/image, right/y"),
                         ["#left", "#/[:]"])
        self.check(path + "#right", [right, np.arange(10)])
        self.check(path + "#/[:]", [left, np.arange(10), right, np.arange(10)])
        # Other types tell that they are parts of one thing.
        with self.new_file("g.h5") as file:
            file["rgb/data"], file["label/data"] = values((10, 4, 4), "u1"), np.arange(10)
        self.check(path, [np.arange(10), values((10, 4, 4), "u1")])
        self.assertIn("label, rgb hold data sets of the same names", self.notes(path))

    def test_classes_are_no_fields(self):
        path = self.path("k.h5")
        pictures = {cls: [values((4, 4, 3), "u1", i + seed) for i in range(30)]
                    for cls, seed in (("cat", 0), ("dog", 50))}
        for dogs, proposed in ((30, ["#cat", "#*/*", "#cat=cat/*,dog=dog/*"]),
                               (22, ["#cat", "#*/*"]), (8, ["#cat", "#*/*"])):
            with self.new_file("k.h5") as file:
                for i in range(30):
                    file[f"cat/{i:03}"] = pictures["cat"][i]
                    if i < dogs:
                        file[f"dog/{i:03}"] = pictures["dog"][i]
            with self.subTest(dogs=dogs):
                self.assertEqual(self.choices(path, "cat/*, dog/*", "classes"), proposed)
                self.check(path + "#dog", [np.stack(pictures["dog"][:dogs])])
                self.check(path + "#*/*", [np.stack(pictures["cat"] + pictures["dog"][:dogs])])
        with self.new_file("k.h5") as file:
            for cls, arrays in pictures.items():
                for i in range(25):
                    file[f"{cls}/{cls}_{i}"] = arrays[i]
        self.assertEqual(self.choices(path, "cat/cat_*, dog/dog_*"),
                         ["#cat", "#*/*", "#cat.cat=cat/cat_*,dog.dog=dog/dog_*"])
        self.check(path + "#*/*", [np.stack(pictures["cat"][:25] + pictures["dog"][:25])])
        with self.new_file("k.h5") as file:
            for cls, count in (("cat", 30), ("dog", 22)):
                for i in range(count):
                    file[f"{cls}/{i:03}/x"], file[f"{cls}/{i:03}/y"] = pictures[cls][i], i
        self.assertEqual(self.choices(path, "dog/*/x"), ["#cat", "#*/*/x,*/*/y"])
        self.check(path + "#*/*/x,*/*/y", [np.stack(pictures["cat"] + pictures["dog"][:22]),
                                           np.concatenate([np.arange(30), np.arange(22)])])

    def test_numbers_may_be_those_of_classes_too(self):
        path = self.path("n.h5")
        for classes, count, name, all_there in ((100, 5, "{:04}/{}", True), (40, 5, "p{}/img_{:02}", False),
                                               (5, 40, "{}/{}", True)):
            arrays = {name.format(c, i): values((6, 5), "u1", 100 * c + i) for c in range(classes)
                      for i in range(count) if all_there or c % 3 == 0 or i < 4}
            with self.new_file("n.h5") as file:
                for key, array in arrays.items():
                    file[key] = array
            with self.subTest(name=name, classes=classes):
                found = self.choices(path)
                self.assertIn("#*/*", found)
                self.assertEqual(len(found), 1 + all_there + (classes == 5), found)
                self.check(path + "#*/*", [np.stack(list(arrays.values()))])
        # Other types tell that these are parts of one thing.
        with self.new_file("n.h5") as file:
            for c in range(30):
                file[f"{c}/0"], file[f"{c}/1"] = values((6, 5), "u1", c), c
        self.check(path, [np.stack([values((6, 5), "u1", c) for c in range(30)]), np.arange(30)])

    def ragged(self, names, **more):
        """A file whose data sets are called so, the first filled with 0, the next with 1, ..."""
        path = self.path("ragged.h5")
        with self.new_file("ragged.h5") as file:
            for i, name in enumerate(names):
                file[name] = np.full((2, 3), i)
            for name, data in more.items():
                file[name] = data
        return path

    def test_of_several_numbers_in_a_name_none_is_taken_for_samples(self):
        """Data sets that do not belong together would be fields of one sample."""
        grid = [(c, s) for c in range(3) for s in range(4)]
        uneven = [(c, s) for c, count in ((0, 4), (1, 2), (2, 5)) for s in range(count)]
        for name, each in (("case{:02}_slice{:03}", "#case*"), ("s{}_{}", "#s*"), ("({}, {})", "#(*)"),
                           ("12:{:02}:{:02}", "#12:*")):
            for pairs in (grid, uneven):
                path = self.ragged([name.format(*pair) for pair in pairs])
                with self.subTest(name=name, pairs=len(pairs)):
                    found = self.choices(path, "several numbers")
                    self.assertEqual(found[0], each)
                    self.assertEqual(len(found), 2 + (pairs is grid), found)
                    self.assertEqual(found[-1], each + "[:]")
                    self.check(path + each, [np.stack([np.full((2, 3), i) for i in range(len(pairs))])])
                    if pairs is grid:  # a sample of each second number
                        self.check(path + found[1], [np.stack([np.full((2, 3), 4 * c + s)
                                                               for s in range(4)]) for c in range(3)])

    def test_of_several_numbers_in_the_name_of_a_group_none_is_taken_either(self):
        for pairs in ([(c, s) for c in range(3) for s in range(4)], [(0, 0), (0, 1), (1, 0)]):
            names = [f"case_{c}_slice_{s}/{part}" for part in ("image", "label") for c, s in pairs]
            path, count = self.ragged(names), len(pairs)
            found = self.choices(path, "several numbers")
            self.assertEqual(found[0], "#case_*/image,case_*/label")
            self.check(path + found[0], [np.stack([np.full((2, 3), i + at) for i in range(count)])
                                         for at in (0, count)])
        path = self.ragged([f"p{p}/scan{s}/{part}" for part in ("image", "label")
                            for p in range(5) for s in range(3)])
        found = self.choices(path, "a sample each, or hold a sample in each group")
        self.assertEqual(found[0], "#*/*/image,*/*/label")
        self.assertEqual(len(found), 2)
        self.check(path + found[0], [np.stack([np.full((2, 3), 15 * at + i) for i in range(15)])
                                     for at in (0, 1)])

    def test_a_number_may_be_a_decimal_or_negative(self):
        for names in ([f"t_{i / 4:.2f}" for i in range(12)], [f"{i / 2}" for i in range(12)],
                      [f"{i / 8:g}" for i in range(12)], [f"{i}" for i in range(-6, 6)],
                      [f"x_{i}" for i in range(-6, 6)], [f"{i / 4}" for i in range(-6, 6)],
                      [f"{i}_{i * 7 % 3}" for i in range(12)]):
            path = self.ragged(names)
            with self.subTest(name=names[0]):
                self.check(path, [np.stack([np.full((2, 3), i) for i in range(12)])])
                self.assertIn("(12 samples)", self.notes(path))

    def test_other_types_tell_that_numbers_are_those_of_fields(self):
        with self.new_file("t.h5") as file:
            for i in range(9):
                file[f"cam0_{i}"], file[f"cam1_{i}"] = values((4, 4, 3), "u1", i), values((4, 4), "<f4", i)
        self.check(self.path("t.h5"), [np.stack([values((4, 4, 3), "u1", i) for i in range(9)]),
                                       np.stack([values((4, 4), "<f4", i) for i in range(9)])])

    def test_a_name_of_its_own_is_none_of_a_pattern(self):
        path = self.ragged([str(i) for i in range(12)], labels=np.arange(12) * 5, more=np.arange(7))
        images = np.stack([np.full((2, 3), i) for i in range(12)])
        self.check(path, [images])
        self.assertIn("left out, as they belong to no sample: labels, more", self.notes(path))
        with h5py.File(path, "a") as file:
            del file["more"]
        self.assertIn(f"with a row for each of labels: '{path}#*,labels'", self.notes(path))
        self.check(path + "#*,labels", [images, np.arange(12) * 5])
        self.check(path + "#y=labels,x=*", [np.arange(12) * 5, images])
        # Hexadecimal numbers are like the others.
        path = self.ragged([f"{i:02x}" for i in range(12)])
        self.assertEqual(self.succeed_json("inspect", path)["entries"], 12)

    def test_remedies_that_cannot_work_are_not_printed(self):
        path = self.path("robo.h5")
        with self.new_file("robo.h5") as file:
            for i in range(12):
                file[f"data/demo_{i}/actions"] = values((5 + i, 2), "<f4", i)
                file[f"data/demo_{i}/obs/x"] = values((5 + i, 2), "<f4", i + 20)
        found = self.choices(path, "not read where their shapes differ")
        self.assertEqual(found, ["#data/demo_0/actions,data/demo_0/obs/x"])
        self.check(path + found[0], [values((5, 2), "<f4"), values((5, 2), "<f4", 20)])
        path = self.ragged([f"{i}/x" for i in range(6)] + [f"{i}/y" for i in range(5)])
        line = self.fail("inspect", path, naming=["sample '5' has no '*/y'"])
        for choice in re.findall(r"'[^']*\.h5(#[^']+)'", line):
            self.succeed("inspect", path + choice)
        self.assertIn("#*/x'", line)

    def test_groups_of_other_types_are_parts_of_samples(self):
        path = self.path("p.h5")
        images, depths = ([values(shape, dtype, i) for i in range(30)]
                          for shape, dtype in (((4, 4, 3), "u1"), ((4, 4), "<f4")))
        with self.new_file("p.h5") as file:
            for i in range(30):
                file[f"image/{i:03}"], file[f"depth/{i:03}"] = images[i], depths[i]
        self.check(path, [np.stack(depths), np.stack(images)])
        self.assertIn("depth/*,image/* (30 samples)", self.notes(path))

    def test_a_group_is_a_data_set_for_itself(self):
        path = self.path("o.h5")
        with self.new_file("o.h5") as file:
            file["a/x"], file["a/deep/y"], file["b"] = values((5, 2), "<f4"), np.arange(5), np.arange(7)
            file["a/one"] = 3
            for i in range(6):
                file[f"s/img_{i}"] = values((2, 3), "u1", i)
        for choice in ("#a", "#/a/", "#a[:]"):
            self.check(path + choice, [np.arange(5), values((5, 2), "<f4")])
            report = self.succeed_json("inspect", path + choice)
            self.assertEqual(report["schema"], "deep.y:i64[],x:f32[2]")
            self.assertEqual(report["notes"], ["left out, as single values: a/one"])
        self.check(path + "#s", [np.stack([values((2, 3), "u1", i) for i in range(6)])])
        self.assertEqual(self.succeed_json("inspect", path + "#s")["schema"], "img:u8[2x3]")
        self.check(path + "#s[:]", [values((2, 3), "u1", i) for i in range(6)])
        self.fail("inspect", path + "#z=a", code=2, naming=["'a' is a group", "'z'"])
        self.fail("inspect", path + "#b,a", code=2, naming=["'a' is a group"])
        self.fail("inspect", path + "#c", naming=["no data set 'c'"])

    def test_a_sample_that_lacks_something_is_named(self):
        with self.new_file("l.h5") as file:
            for i in range(9):
                file[f"{i}/image"] = values((6, 5), "u1", i)
                if i != 4:
                    file[f"{i}/label"] = i
        self.fail("inspect", self.path("l.h5"), naming=["sample '4' has no '*/label'", "8 of 9"])
        self.check(self.path("l.h5") + "#*/image",
                   [np.stack([values((6, 5), "u1", i) for i in range(9)])])
        self.fail("inspect", self.path("l.h5") + "#*/mask", naming=["'*/mask'"])
        with self.new_file("l.h5") as file:
            file["img_0"], file["img_1"], file["img_2"] = (values((rows, 5), "u1") for rows in (2, 3, 3))
        self.fail("inspect", self.path("l.h5"),
                  naming=["different shapes", "'img_0' is img:u8[2x5] but 'img_1' is img:u8[3x5]"])

    def test_rows_beside_samples_may_be_named(self):
        with self.new_file("r.h5") as file:
            for i in range(7):
                file[f"img_{i}"] = values((3, 2), "u1", i)
            file["labels"], file["more"] = np.arange(7) * 5, np.arange(8)
        images = np.stack([values((3, 2), "u1", i) for i in range(7)])
        self.check(self.path("r.h5") + "#y=labels,x=img_*", [np.arange(7) * 5, images])
        self.check(self.path("r.h5"), [images])
        self.assertIn("labels, more", self.notes(self.path("r.h5")))
        self.fail("inspect", self.path("r.h5") + "#img_*,more", code=2, naming=["7 rows", "has 8"])

    def test_names_with_a_star_are_names(self):
        with self.new_file("s.h5") as file:
            for i in range(5):
                file[f"img*{i}"] = values((6, 2), "u1", i)
        self.check_file("s.h5", "img*3", "img*1")
        self.assertEqual(self.succeed_json("inspect", self.path("s.h5"))["entries"], 6)

    def test_samples_of_different_lengths_are_parts(self):
        for labels in (True, False):
            with self.new_file("v.h5", libver="latest") as file:
                for i in range(20):
                    group = file.create_group(f"s{i}")
                    group["image"] = np.frombuffer(png(3, 4, 5, bytes(range(60))) + bytes(i), "u1")
                    group["track"] = values((i, ), "<f4", i)
                    if labels:
                        group["label"] = np.int64(i)
            path = self.path("v.h5")
            report = self.succeed_json("inspect", path)
            self.assertEqual([part["name"] for part in report["parts"]],
                             ["image", *["label"] * labels, "track"])
            self.assertEqual(report["schema"],
                             "image:u8[3x4x5]" + (",label:i64[]" if labels else ""))
            self.assertEqual(report["entries"], 20)
            self.succeed("verify", path)
            got = self.dump(path + "#*/track", "all")
            self.assertEqual(got, b"".join(values((i,), "<f4", i).tobytes() for i in range(20)))
        with self.new_file("v.h5") as file:
            for i in range(20):
                file.create_dataset(f"s{i}", data=values((i + 2,), "<f4", i), chunks=(2,))
        self.fail("inspect", self.path("v.h5"), naming=["different lengths", "'s0'", "contiguous"])


class Hdf5Links(Formats):
    def setUp(self):
        super().setUp()
        os.makedirs(self.path("set/more"))
        with self.new_file("set/more/b.h5", userblock_size=512) as file:
            file["deep/y"] = values((9,), ">i4")
            file.create_dataset("z", data=values((9, 2), "<f4"), chunks=(4, 2), compression="lzf")
        with self.new_file("out.h5") as file:
            file["y"] = values((9,), ">i4")
        with self.new_file("set/a.h5") as file:
            file["x"] = values((9, 3), "<f4")

    def link(self, **links):
        with h5py.File(self.path("set/a.h5"), "a") as file:
            for name, (target, place) in links.items():
                file[name] = h5py.ExternalLink(target, place)
        return self.path("set/a.h5")

    def test_links_inside_of_the_folder_are_followed(self):
        path = self.link(y=("more/b.h5", "/deep/y"), z=(self.path("set/more/b.h5"), "z"),
                         group=("more/b.h5", "/deep"))
        arrays = [values((9, 3), "<f4"), values((9,), ">i4"), values((9, 2), "<f4")]
        self.check(path, arrays)
        self.check(path + "#y,x", [arrays[1], arrays[0]])
        self.check(path + "#q=group/y", [arrays[1]])
        report = self.succeed_json("inspect", path)
        self.assertEqual(report["schema"], "x:f32[3],y:i32[],z:f32[2]")
        self.assertIn("'group'", report["notes"][0])
        self.assertEqual(len(report["files"]), 2)
        self.succeed("verify", path)

    def test_others_are_named_as_left_out(self):
        os.symlink(self.path("out.h5"), self.path("set/sly.h5"))
        path = self.link(up=("../out.h5", "y"), sly=("sly.h5", "y"), gone=("gone.h5", "y"),
                         none=("more/b.h5", "none"), itself=("a.h5", "itself"))
        self.check(path, [values((9, 3), "<f4")])
        notes = self.succeed_json("inspect", path)["notes"]
        for name, why in (("up", "outside"), ("sly", "outside"), ("gone", "not there"),
                          ("none", "none"), ("itself", "itself")):
            self.assertEqual(sum(f"'{name}'" in note and why in note for note in notes), 1, notes)
            self.fail("inspect", path + "#" + name, naming=[f"'{name}' is a link", why])

    def test_soft_links_to_nothing_are_named(self):
        path = self.path("set/a.h5")
        with h5py.File(path, "a") as file:
            file["gone"] = h5py.SoftLink("/nowhere")
            file["group/gone"] = h5py.SoftLink("none/of it")
            file["alias"] = h5py.SoftLink("/x")
        self.check(path, [values((9, 3), "<f4")])
        self.assertEqual(self.succeed_json("inspect", path)["notes"],
                         ["left out, as other names of what is read: alias; name them for it: "
                          f"'{path}#alias'",
                          "left out, as soft links to what is not in this file: gone, group/gone"])
        self.check(path + "#alias", [values((9, 3), "<f4")])
        for name, target in (("gone", "/nowhere"), ("gone/y", "/nowhere"),
                             ("group/gone", "none/of it")):
            self.fail("inspect", path + "#" + name, naming=[f"no data set '{name}'", f"'{target}'"])

    def test_second_names_are_named_wherever_data_are_opened(self):
        path = self.path("set/a.h5")
        with h5py.File(path, "a") as file:
            file["y"] = values((9,), "<i4")
            file["z/labels"], file["z/group"] = file["x"], file.create_group("first")
            file["first/w"] = values((9, 2), "<f4")
        note = ("left out, as other names of what is read: z/group, z/labels; name them for it: "
                f"'{path}#z/group'")
        self.check(path, [values((9, 2), "<f4"), values((9, 3), "<f4"), values((9,), "<i4")])
        told = [self.run_command(*command) for command in
                (("inspect", path), ("verify", path),
                 ("samples", path, "--batch", 3, "--epochs", 1, "--output", "/dev/null"))]
        for result in told:
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertEqual((result.stdout + result.stderr).count(note), 1, result)
        self.check(path + "#z/group", [values((9, 2), "<f4")])
        self.check(path + "#labels=z/labels,y", [values((9, 3), "<f4"), values((9,), "<i4")])

    def test_attributes_are_told_as_left_out(self):
        path = self.path("set/a.h5")
        with h5py.File(path, "a") as file:
            file.attrs["written"] = "today"
            file["x"].attrs["scale"] = 2.5
            file.create_group("g").attrs["source"] = "somewhere"
            file["y"] = np.arange(9)
        told = "left out, as attributes are not read: those of {}; write them as data sets to have them"
        self.assertEqual(self.succeed_json("inspect", path)["notes"], [told.format("g, x")])
        with self.new_file("set/each.h5") as file:
            for i in range(20):
                file[f"img_{i:02}"] = values((4, 5), "u1", i)
                if i % 9 == 4:
                    file[f"img_{i:02}"].attrs["label"] = i
        self.assertIn(told.format("img_04, img_13"),
                      self.succeed_json("inspect", self.path("set/each.h5"))["notes"])

    def test_links_among_data_sets_of_samples_are_named(self):
        links = {"5": h5py.SoftLink("/nowhere"), "6": h5py.ExternalLink("b.h5", "y"),
                 "7": h5py.SoftLink("/s1")}
        with self.new_file("each.h5") as file, self.new_file("groups.h5") as groups:
            for i in range(30):
                file[f"s{i}"] = links.get(str(i), np.arange(i + 3))
                if str(i) in links:
                    groups[f"s{i}"] = links[str(i)]
                    continue
                if i == 8:  # hard links: second names
                    del file["s8"]
                    file["s8"], groups["s8"] = file["s1"], groups["s1"]
                    continue
                groups[f"s{i}/image"] = values((4, 5), "<f4")
                groups[f"s{i}/label"] = i
        for name, choice in (("each.h5", "#s*"), ("groups.h5", "#s*/image,s*/label")):
            path = self.path(name)
            report = self.succeed_json("inspect", path)
            self.assertEqual(report["entries"], 26)
            self.assertIn("left out, as links are no samples: s8, s5, s7, s6; with second names of "
                          f"samples: '{path}{choice}'", report["notes"])
            report = self.succeed_json("inspect", path + choice)
            self.assertEqual(report["entries"], 27)
            self.assertIn("left out, as links are no samples: s5, s7, s6", report["notes"])
        with h5py.File(self.path("groups.h5")) as file:
            images = [file[f"s{i}/image"][()] for i in range(30) if str(i) not in links]
        self.check(self.path("groups.h5") + "#*/image", [np.stack(images)])
        with h5py.File(self.path("groups.h5"), "a") as groups:
            del groups["s9/label"]
            groups["s9/label"] = h5py.SoftLink("/nowhere")
        self.fail("inspect", self.path("groups.h5"),
                  naming=["sample '9' has no 's*/label'", "links are no samples: ", "s9/label"])


class Npy(Formats):
    def test_every_type_and_version(self):
        for number, (dtype, version) in enumerate(
                itertools.product(TYPES, ((1, 0), (2, 0), (3, 0)))):
            array = values((13, 2, 3), dtype)
            path = self.path(f"array{number}.npy")
            with open(path, "wb") as file:
                np.lib.format.write_array(file, array, version=version)
            with self.subTest(dtype=dtype, version=version):
                self.check(path, [array])

    def test_samples_without_values_are_told_by_their_shape(self):
        np.save(self.path("n.npy"), np.zeros((4, 0)))
        self.assertEqual(self.succeed_json("inspect", self.path("n.npy"))["entries"], 4)
        self.fail("samples", self.path("n.npy"), "--batch", 2, "--epochs", 1, naming=["data:f64[0]"])

    def test_what_cannot_be_written_is_told_with_the_reason(self):
        np.save(self.path("w.npy"), values((3000, 50), "<f8"))
        for more in ((), ("--group", 1), ("--dump", "all"), ("--dump", "all", "--group", 1)):
            with open("/dev/full", "w", encoding="ascii") as full:
                result = subprocess.run([COMMAND, "inspect", self.path("w.npy"), *map(str, more)],
                                        stdout=full, stderr=subprocess.PIPE, text=True, timeout=60,
                                        check=False)
            self.assertEqual(result.returncode, 1)
            self.assertIn("No space left on device", result.stderr)

    def test_many_files_and_few_rows(self):
        arrays = [values((rows, 4), ">i4", rows) for rows in (3, 0, 1, 9)]
        for number, array in enumerate(arrays):
            np.save(self.path(f"a{number}.npy"), array)
        self.check(self.path("a*.npy"), [np.concatenate(arrays)])
        report = self.succeed_json("inspect", self.path("a*.npy#image=data"))
        self.assertEqual(report["schema"], "image:i32[4]")

    def test_what_is_not_read_is_refused(self):
        for array, word in ((np.asfortranarray(values((4, 3), "f4")), "Fortran"),
                            (np.array([{}, 1], object), "'|O'"),
                            (np.zeros(3, [("a", "i4")]), "structures"),
                            (np.zeros(3, "c8"), "'<c8'"), (np.zeros(3, "U4"), "'<U4'"),
                            (np.float32(3), "single value")):
            np.save(self.path("odd.npy"), array)
            self.fail("inspect", self.path("odd.npy"), naming=["odd.npy", word])

    def write_arrays(self, name, *arrays):
        with open(self.path(name), "wb") as file:
            for array in arrays:
                np.save(file, array)
        return self.path(name)

    def test_bytes_behind_the_array_are_an_error(self):
        first, second = values((4, 3), "<f4"), values((7, 2), ">i2", 1)
        path = self.write_arrays("two.npy", first, second)
        end = 128 + first.nbytes
        line = self.fail("inspect", path, naming=["two.npy", "several arrays", f"byte {end} of "])
        self.run_remedy(line)
        self.check(self.path("two-0.npy"), [first])
        self.check(self.path("two-1.npy"), [second])
        self.fail("inspect", self.write_arrays("t.npy", values((9,), "<u2"), values((9,), "<u2")),
                  "--length", 3, naming=["several arrays"])
        with open(self.write_arrays("more.npy", first), "ab") as file:
            file.write(b"\n")
        self.fail("inspect", self.path("more.npy"),
                  naming=[f"1 bytes follow the array, which ends at byte {end} of {end + 1}"])

    def test_an_order_that_makes_no_difference_is_taken(self):
        for number, shape in enumerate(((5,), (5, 1), (1, 5), (1, 1, 4), (0, 3), (3, 0, 2))):
            array, path = values(shape, ">i4"), self.path(f"order{number}.npy")
            with open(path, "wb") as file:
                np.lib.format.write_array_header_1_0(
                    file, {"descr": ">i4", "fortran_order": True, "shape": shape})
                file.write(array.tobytes())
            with self.subTest(shape=shape):
                self.assertTrue(np.array_equal(np.load(path), array))
                self.check(path, [array])

    def test_a_matrix_in_fortran_order_has_a_line_that_rewrites_it(self):
        array = np.asfortranarray(values((4, 3, 2), ">i4"))
        np.save(self.path("f.npy"), array)
        self.run_remedy(self.fail("inspect", self.path("f.npy"), naming=["Fortran"]))
        self.check(self.path("f-c.npy"), [array])
        np.savez(self.path("f.npz"), x=array, y=np.arange(4))
        self.run_remedy(self.fail("inspect", self.path("f.npz"), naming=["'x'", "Fortran"]))
        self.check(self.path("f-c.npz"), [array, np.arange(4)])

    def test_every_cut_is_an_error(self):
        np.save(self.path("whole.npy"), values((10, 3), "<f4"))
        with open(self.path("whole.npy"), "rb") as file:
            whole = file.read()
        for length in range(6, len(whole), 3):
            self.write("cut.npy", whole[:length])
            self.fail("inspect", self.path("cut.npy"), naming="cut.npy")


class Npz(Formats):
    def test_arrays_are_fields_stored_or_compressed(self):
        for save in (np.savez, np.savez_compressed):
            for one, two in (("u1", ">i2"), (">u2", "?"), ("<i4", "u1"), (">f8", "<f4"), ("S7", ">i8")):
                arrays = {"x": values((40, 3, 2), one), "y": values((40,), two, 1)}
                save(self.path("a.npz"), **arrays)
                with self.subTest(save=save.__name__, types=(one, two)):
                    self.check(self.path("a.npz"), list(arrays.values()))
                    self.check(self.path("a.npz") + "#label=y", [arrays["y"]])
                    self.check(self.path("a.npz") + "#y,x", [arrays["y"], arrays["x"]])
        report = self.succeed_json("inspect", self.path("a.npz"))
        self.assertEqual((report["format"], report["schema"]), ("npy", "x:u8[3x2x7],y:i64[]"))

    def test_files_may_be_large_ones(self):
        x, y = values((30, 4), "<f4"), values((30,), "<i8")
        with zipfile.ZipFile(self.path("z.npz"), "w") as archive:
            for name, array in (("x", x), ("y", y)):
                with archive.open(name + ".npy", "w", force_zip64=True) as member:
                    np.save(member, array)
        with open(self.path("z.npz"), "rb") as file:
            plain = file.read()
        self.check(self.path("z.npz"), [x, y])
        # What is in front is counted by no offset: those of the directory are 64 bits wide here.
        self.write("front.npz", plain)
        with zipfile.ZipFile(self.path("front.npz"), "a") as archive:
            archive.writestr("notes.txt", "more")
        self.assertIn("notes.txt", self.succeed_json("inspect", self.path("front.npz"))["notes"][0])
        self.check(self.path("front.npz"), [x, y])

    def test_several_files_are_one_data_set(self):
        x = [values((rows, 5), "<f4", rows) for rows in (3, 0, 9)]
        for number, array in enumerate(x):
            (np.savez if number % 2 else np.savez_compressed)(self.path(f"p{number}.npz"), x=array)
        self.check(self.path("p*.npz"), [np.concatenate(x)])

    def test_splits_are_no_fields_of_one_sample(self):
        path = self.path("mnist.npz")
        arrays = {f"{name}_{split}": values((10, 2), "<f4", seed) for seed, (name, split) in
                  enumerate(itertools.product("xy", ("train", "test")))}
        np.savez(path, **arrays)
        line = self.fail("inspect", path, code=2, naming=["x_train", "y_test", "splits"])
        found = re.findall(r"'[^']*\.npz(#[^']+)'", line)
        self.assertEqual(found, ["#x=x_train,y=y_train", "#x_train,x_test,y_train,y_test"])
        self.check(path + found[0], [arrays["x_train"], arrays["y_train"]])
        self.check(path + found[1], list(arrays.values()))

    def test_what_is_no_array_of_that_length_is_named(self):
        path = self.path("m.npz")
        train, test, names = values((9, 2), "<f4"), values((4, 2), "<f4"), np.array(["a", "b"])
        np.savez(path, x_train=train, x_test=test, classes=np.int64(7))
        self.fail("inspect", path, code=2,
                  naming=["m.npz", "'x_train' has 9 rows but 'x_test' has 4", "FILE#"])
        self.check(path + "#x_test", [test])
        self.fail("inspect", path + "#x_train,classes", naming=["'classes'", "single value"])
        self.fail("inspect", path + "#y", naming=["no array 'y'", "x_train, x_test, classes"])
        np.savez_compressed(path, x=train, n=np.int64(7))
        self.assertIn("n", self.succeed_json("inspect", path)["notes"][0])
        self.check(path, [train])
        np.savez(path, x=train, names=names)
        self.fail("inspect", path, naming=["'names'", "'<U1'", "FILE#"])
        self.check(path + "#x", [train])
        np.savez(path, n=np.int64(7))
        self.fail("inspect", path, naming=["no arrays"])

    def test_damage_is_found(self):
        for save in (np.savez, np.savez_compressed):
            save(self.path("d.npz"), x=values((50, 8), "<f4"))
            with open(self.path("d.npz"), "rb") as file:
                whole = file.read()
            for length in range(4, len(whole), 197):
                self.write("d.npz", whole[:length])
                self.fail("inspect", self.path("d.npz"), "--dump", "0", naming="d.npz")
        self.write("d.npz", whole[:300] + bytes([whole[300] ^ 1]) + whole[301:])
        self.fail("inspect", self.path("d.npz"), naming=["d.npz", "'x'"])

    def test_verify_checks_the_bytes_of_stored_arrays(self):
        """Reading does not: a sample would cost the whole array."""
        x, y = values((500, 8), "<f4"), values((500,), ">i8")
        np.savez(self.path("x.npz"), x=x, y=y)
        self.assertTrue(self.succeed_json("verify", self.path("x.npz"))["sound"])
        with zipfile.ZipFile(self.path("x.npz")) as archive, \
                open(self.path("x.npz"), "rb") as file:
            whole = file.read()
            begins = {entry.filename: entry.header_offset for entry in archive.infolist()}
        for name, sound in (("x", "y"), ("y", "x")):
            at = begins[name + ".npy"] + 30 + len(name + ".npy") + 128 + 777
            path = self.write("flip.npz", whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1:])
            result = self.run_command("verify", path, "--json")
            report = json.loads(result.stdout)
            self.assertEqual((result.returncode, report["fault_count"]), (1, 1))
            for word in path, f"array '{name}'", "CRC-32", "offset":
                self.assertIn(word, report["faults"][0]["text"])
            beside = "one={0}#{1}&two={0}#{2}".format(path, sound, name)
            for text, faults in ((path + "#" + sound, 0), (path + "#" + name, 1), (beside, 1)):
                result = self.run_command("verify", text, "--json")
                self.assertEqual(json.loads(result.stdout)["fault_count"], faults, text)
            self.assertEqual(len(self.dump(path, "all")), 500 * (32 + 8))
        self.write("two.npz", whole)
        result = self.run_command("verify", self.path("[ft][lw][io]*.npz"))
        self.assertIn("flip.npz", result.stdout)
        self.assertIn("1 faults", result.stdout)

    def test_archives_of_samples_may_still_be_asked_for(self):
        np.savez(self.path("s.npz"), a=values((3,), "u1"), b=values((4,), "u1"))
        report = self.succeed_json("inspect", self.path("s.npz"), "--format", "zip")
        self.assertEqual((report["format"], report["entries"]), ("zip", 2))


class Beside(Formats):
    def test_arrays_beside_each_other_are_fields_of_one_sample(self):
        x, y = values((20, 3), "<f4"), values((20,), ">i2")
        np.save(self.path("a.npy"), x)
        np.save(self.path("b.npy"), y)
        name = f"x={self.path('a.npy')}&y={self.path('b.npy')}"
        self.check(name, [x, y])
        report = self.succeed_json("inspect", name)
        self.assertEqual((report["format"], report["schema"]), ("npy", "x:f32[3],y:i16[]"))
        self.assertEqual(len(report["files"]), 2)
        with self.new_file("c.h5") as file:
            file["deep/image"], file["mask"] = values((20, 2, 2), "<i4"), values((20, 2), "u1")
        np.savez_compressed(self.path("d.npz"), w=values((20,), "<f8"))
        mixed = f"{name}&z={self.path('c.h5')}&w={self.path('d.npz')}"
        self.check(mixed, [x, y, values((20, 2, 2), "<i4"), values((20, 2), "u1"),
                           values((20,), "<f8")])
        self.assertEqual(self.succeed_json("inspect", mixed)["schema"],
                         "x:f32[3],y:i16[],z.deep.image:i32[2x2],z.mask:u8[2],w:f64[]")
        self.check(f"y={self.path('b.npy')}&m={self.path('c.h5#mask')}", [y, values((20, 2), "u1")])

    def test_many_files_lie_beside_as_many(self):
        x = [values((rows, 3), "<f4", rows) for rows in (5, 0, 8)]
        y = [values((rows,), "<i8", rows) for rows in (5, 0, 8)]
        for number in range(3):
            np.save(self.path(f"x{number}.npy"), x[number])
            np.save(self.path(f"y{number}.npy"), y[number])
        self.check(f"x={self.path('x*.npy')}&y={self.path('y*.npy')}",
                   [np.concatenate(x), np.concatenate(y)])
        self.fail("inspect", f"x={self.path('x*.npy')}&y={self.path('y0.npy')}", code=2,
                  naming=["'x' has 3 files but 'y' has 1"])
        self.fail("inspect", f"x={self.path('x0.npy')}&y={self.path('y2.npy')}", code=2,
                  naming=["'x' has 5 samples but 'y' has 8"])
        self.fail("inspect", f"x={self.path('x0.npy')}&y={self.path('no.npy')}", naming=["no.npy"])
        self.fail("inspect", f"x={self.path('x0.npy')}&x={self.path('y0.npy')}", code=2,
                  naming=["two parts are called 'x'"])

    def test_archives_lie_beside_nothing(self):
        np.save(self.path("a.npy"), values((2, 3), "<f4"))
        with zipfile.ZipFile(self.path("z.zip"), "w") as archive:
            archive.writestr("1.txt", "one")
            archive.writestr("2.txt", "two")
        self.fail("inspect", f"x={self.path('a.npy')}&y={self.path('z.zip')}", code=2,
                  naming=["'y' is of format zip"])


class Unknown(Formats):
    """Files that no format recognises: the message says what they are, and speaks of no other."""

    def table(self):
        text = io.BytesIO()
        np.save(text, values((3,), "u1"))
        return {"gzip": (b"\x1f\x8b\x08" + bytes(60), "compressed by gzip"),
                "parquet": (b"PAR1" + bytes(60), "Parquet"),
                "arrow": (b"ARROW1\0\0" + bytes(60), "Arrow"),
                "pickle": (b"\x80\x04\x95" + bytes(60), "pickle"),
                "sqlite": (b"SQLite format 3\0" + bytes(60), "SQLite"),
                "csv": (b"a,b,c\n1,2,3\n" * 20, "text"),
                "utf8": ("Größe\n".encode() * 9, "text"),
                "jpeg": (b"\xff\xd8\xff\xe0" + bytes(60), "JPEG"),
                "idx": (b"\0\0\x08\x03" + bytes(60), "IDX"),
                "zeros": (bytes(5000), "begins with zeros"),
                "bytes": (bytes(range(1, 9)) * 600, "01 02 03 04 05 06 07 08"),
                "short": (b"\x01\x80", "01 80"),
                "empty": (b"", "the file is empty")}

    def test_what_it_begins_with_is_told(self):
        for name, (data, word) in self.table().items():
            path = self.write(name, data)
            for command in ("inspect", "verify", "samples"):
                with self.subTest(name, command=command):
                    line = self.fail(command, path, *(["--batch", 2] if command == "samples" else []),
                                     naming=[name, word])
                    self.assertNotIn("LMDB", line)
                    self.assertNotIn("meta page", line)

    def test_files_of_pytorch_are_no_archives_of_samples(self):
        with zipfile.ZipFile(self.path("model.pt"), "w") as archive:
            for name in ("data.pkl", "byteorder", "data/0", "version"):
                archive.writestr("model/" + name, b"\x80\x02}q\x00.")
        self.fail("inspect", self.path("model.pt"), naming=["model.pt", "PyTorch", "numpy.save"])
        self.succeed("inspect", self.path("model.pt"), "--format", "zip")
        with zipfile.ZipFile(self.path("other.zip"), "w") as archive:
            for number in range(3):
                archive.writestr(f"set/{number}/data.pkl", b"x")
        self.succeed("inspect", self.path("other.zip"))

    def test_folders_without_data_are_told(self):
        os.mkdir(self.path("empty"))
        self.write("some/b.csv", b"x")
        self.write("some/a.txt", b"x")
        self.assertNotIn("LMDB", self.fail("inspect", self.path("empty"), naming=["is empty"]))
        line = self.fail("inspect", self.path("some"), naming=["2 entries", "'a.txt'", "--format"])
        self.assertNotIn("LMDB", line)

    def test_a_damaged_database_is_one_all_the_same(self):
        for name, data in (("x.mdb", bytes(9000)), ("data.mdb", b"")):
            self.fail("inspect", self.write(name, data), naming=[name])
        self.assertIn("LMDB", self.fail("inspect", self.path("x.mdb")))


class Records(Formats):
    def test_cifar10_is_recognized(self):
        labels, images = [], []
        for number, count in enumerate((5, 8)):
            label = (np.arange(count) % 10).astype("u1")
            image = values((count, 3, 32, 32), "u1", number)
            self.write(f"data_batch_{number}.bin",
                       b"".join(label[i:i + 1].tobytes() + image[i].tobytes() for i in range(count)))
            labels.append(label)
            images.append(image)
        self.check(self.path("data_batch_*.bin"), [np.concatenate(labels), np.concatenate(images)])
        report = self.succeed_json("inspect", self.path("data_batch_*.bin"))
        self.assertEqual((report["format"], report["schema"]),
                         ("cifar10", "label:u8[],image:u8[3x32x32]"))
        self.check(self.path("data_batch_0.bin#image"), [images[0]])

    def test_declared_records_behind_a_header(self):
        x, y = values((20, 3), ">f4"), values((20,), ">i2")
        self.write("r.bin", b"HEAD!" + b"".join(x[i].tobytes() + y[i:i + 1].tobytes() + b"##"
                                                for i in range(20)))
        options = ["--format", "raw", "--schema", "x:f32[3],y:i16[]", "--header-bytes", 5,
                   "--record-bytes", 16, "--big-endian"]
        self.check(self.path("r.bin"), [x, y], *options)
        self.fail("inspect", self.path("r.bin"), *options[:4], naming=["r.bin", "14-byte records"])

    def test_a_sample_that_does_not_exist(self):
        self.write("r.bin", bytes(12))
        self.fail("inspect", self.path("r.bin"), "--format", "raw", "--schema", "x:u8[4]", "--dump",
                  "3", code=2, naming=["no sample 3", "has 3"])


if __name__ == "__main__":
    unittest.main()
