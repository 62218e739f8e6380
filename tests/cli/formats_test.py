"""Files with fields: the bytes of every sample are those that h5py and NumPy read.

One file a case, so that a failure names its layout; `forebay inspect --dump` writes samples' bytes.
"""

import itertools
import os
import random
import subprocess
import unittest

import h5py
import numpy as np

from command import COMMAND, CommandTest

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
            file.create_dataset("lzf", (3, 2), "f4", compression="lzf", chunks=(3, 2))
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
                            ("reference", "references"), ("lzf", "lzf"), ("scaled", "filter"),
                            ("outside", "external"), ("virtual", "virtual"),
                            ("single", "single value"), ("elsewhere", "another file"),
                            ("dangling", "no data set"), ("missing", "good, lzf")):
            with self.subTest(field=field):
                self.refuse("odd.h5", word, field, fields="#x=good,y=" + field)
        self.refuse("odd.h5", "leave", code=1)
        self.succeed("inspect", self.path("odd.h5") + "#good")

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

    def test_every_cut_is_an_error(self):
        np.save(self.path("whole.npy"), values((10, 3), "<f4"))
        with open(self.path("whole.npy"), "rb") as file:
            whole = file.read()
        for length in range(6, len(whole), 3):
            self.write("cut.npy", whole[:length])
            self.fail("inspect", self.path("cut.npy"), naming="cut.npy")


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
