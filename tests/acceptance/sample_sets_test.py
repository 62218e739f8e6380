#!/usr/bin/python3
"""`forebay samples` over HDF5, .npy and record files: the bytes of every sample are h5py's and NumPy's.

Which sample goes where is the order's matter and tested elsewhere; here every line is compared with
the array that it stands for, an epoch is the data set, and neither strategy nor engine nor roots
change a line. Data sets, orders and ways are drawn at random; FOREBAY_TEST_SCALE=k draws k times as
many.
"""

import collections
import ctypes
import ctypes.util
import json
import os
import random
import shutil
import time

import h5py
import launch
import numpy as np

_xxhash = ctypes.CDLL(ctypes.util.find_library("xxhash") or "libxxhash.so.0")
_xxhash.XXH3_64bits.restype = ctypes.c_uint64
_xxhash.XXH3_64bits.argtypes = (ctypes.c_char_p, ctypes.c_size_t)

TYPES = ("u1", "<i4", ">i2", "<f4", ">f8", "<u8", "<f2")
LAYOUTS = ({}, {"chunks": 10}, {"chunks": 16, "compression": "gzip"},
           {"chunks": 7, "compression": "gzip", "shuffle": True},
           {"chunks": 12, "fletcher32": True})
WAYS = ((), ("--engine", "mmap"), ("--engine", "pread", "--depth", 2), ("--engine", "uring"),
        ("--strategy", "lmm-dio"), ("--strategy", "lmm-dio-prov-coal-stag"), ("--buffers", 1),
        ("--gap-bytes", 0), ("--decode-threads", 3), ("--stage-bytes", "2MiB"))


def digest(value):
    return f"{_xxhash.XXH3_64bits(value, len(value)):016x}"


def native_bytes(array):
    return array.astype(array.dtype.newbyteorder("=")).tobytes()


class DataSet:
    """What to name on the command line, and the bytes of each sample."""

    def __init__(self, name, flags, fields):
        self.name, self.flags = name, flags
        self.samples = [b"".join(native_bytes(array[i:i + 1]) for array in fields)
                        for i in range(len(fields[0]))]


def random_values(generator, shape, dtype):
    return np.array([generator.randrange(200) for _ in range(int(np.prod(shape)))]
                    ).astype(dtype).reshape(shape)


def random_hdf5(generator, path):
    """One or several files with one to three fields."""
    shapes = {name: tuple(generator.randint(1, 6) for _ in range(generator.randint(0, 3)))
              for name in ("x", "y", "zeta")[:generator.randint(1, 3)]}
    types = {name: generator.choice(TYPES) for name in shapes}
    layouts = {name: dict(generator.choice(LAYOUTS)) for name in shapes}
    arrays = collections.defaultdict(list)
    files = generator.choice((1, 1, 3))
    for number in range(files):
        rows = generator.randint(20, 140)
        with h5py.File(f"{path}-{number}.h5", "w") as file:
            for name, shape in shapes.items():
                values = random_values(generator, (rows, *shape), types[name])
                layout = dict(layouts[name])
                if "chunks" in layout:
                    layout["chunks"] = (min(rows, layout["chunks"]), *shape)
                file.create_dataset(name, data=values, **layout)
        with h5py.File(f"{path}-{number}.h5", "r") as file:
            for name in shapes:
                arrays[name].append(file[name][()])
    chosen = generator.sample(sorted(shapes), generator.randint(1, len(shapes)))
    fields = [np.concatenate(arrays[name]) for name in chosen]
    return DataSet(f"{path}-*.h5#" + ",".join(chosen), (), fields)


def random_npy(generator, path):
    values = random_values(generator, (generator.randint(20, 200), generator.randint(1, 9)),
                           generator.choice(TYPES))
    np.save(path + ".npy", values)
    return DataSet(path + ".npy", (), [values])


def random_records(generator, path):
    """Records of two numbers and some bytes, behind a header."""
    order, rows, header = generator.choice("<>"), generator.randint(20, 200), generator.randrange(40)
    kind = np.dtype([("a", order + "u2"), ("b", order + "f4"), ("c", "u1", (5,))])
    records = np.zeros(rows, kind)
    for name in kind.names:
        records[name] = random_values(generator, records[name].shape, records[name].dtype)
    with open(path + ".bin", "wb") as file:
        file.write(bytes(header) + records.tobytes())
    flags = ["--format", "raw", "--schema", "a:u16[],b:f32[],c:u8[5]", "--header-bytes", header]
    if order == ">":
        flags.append("--big-endian")
    return DataSet(path + ".bin", flags, [records[name] for name in kind.names])


class SampleSets(launch.AcceptanceCase):

    def samples(self, dataset, ranks, *flags):
        result = launch.run("samples", dataset.name, *dataset.flags, *flags, ranks=ranks)
        self.assertEqual(result.code, 0, result.err)
        return [json.loads(line) for line in result.out.splitlines()]

    def check_bytes(self, dataset, lines):
        for line in lines:
            value = dataset.samples[line["sample"]]
            self.assertEqual((line["key"], line["bytes"], line["xxh3"], line["decoded"]),
                             ("", len(value), digest(value), digest(value)), line)

    def orders_of(self, generator, entries, ranks):
        """Flags of orders, and whether an epoch of them is the data set."""
        ids = self.path("ids")
        with open(ids, "w", encoding="ascii") as file:
            file.write(" ".join(str(generator.randrange(entries)) for _ in range(entries)))
        orders = [(("strided", "--coalesce", generator.randint(1, 5), "--roots", 2), True),
                  (("shuffled", "--keep", generator.randint(1, 4)), True),
                  (("grouped", "--group", generator.randint(1, entries // max(1, ranks))), True),
                  (("listed", "--list", ids), False)]
        if ranks <= 1:
            orders.append((("in_memory",), True))
        return orders

    def test_every_order_on_random_data_sets(self):
        makers = (random_hdf5, random_hdf5, random_npy, random_records)
        for seed in range(6 * launch.SCALE):
            generator = random.Random(seed)
            dataset = makers[seed % len(makers)](generator, self.path(f"d{seed}"))
            entries, ranks = len(dataset.samples), generator.choice((0, 2, 3))
            batch = generator.randint(max(2, ranks), 30)
            orders = self.orders_of(generator, entries, ranks)
            chosen = launch.some(generator.sample(orders, 3), every=1, on_mpich=3)
            for order, whole in chosen:
                flags = ("--order", *order, "--batch", batch, "--epochs", 2, "--seed", seed)
                way = generator.choice(WAYS)
                with self.subTest(dataset=dataset.name, ranks=ranks, flags=flags, way=way):
                    lines = self.samples(dataset, ranks, "--decode", *flags, *way)
                    self.check_bytes(dataset, lines)
                    if whole:
                        times = collections.Counter((line["epoch"], line["sample"])
                                                    for line in lines)
                        self.assertEqual(set(times.values()), {1})
                        self.assertEqual(len(times), 2 * entries)

    def test_how_samples_are_read_changes_no_line(self):
        dataset = random_hdf5(random.Random(99), self.path("ways"))
        for order in (("strided", "--coalesce", 3), ("shuffled",)):
            flags = ("--order", *order, "--batch", 9, "--seed", 3)
            expected = self.samples(dataset, 3, *flags)
            ways = (*WAYS[1:], ("--roots", 3), ("--stagger", 1))
            shuffled = random.Random(order[0]).sample(ways, len(ways))
            for way in launch.some(shuffled, every=2, on_mpich=5):
                with self.subTest(order=order, way=way):
                    self.assertEqual(self.samples(dataset, 3, *flags, *way), expected)

    def test_statistics_tell_of_reads_and_chunks(self):
        rows = np.arange(400 * 3000, dtype="<i4").reshape(400, 3000)
        with h5py.File(self.path("plain.h5"), "w") as file:
            file["x"], file["y"] = rows, rows[:, :500].copy()
        with h5py.File(self.path("zipped.h5"), "w") as file:
            file.create_dataset("x", data=rows, chunks=(10, 3000), compression="gzip")
        for name, fields in (("plain.h5", 2), ("zipped.h5", 1)):
            result = launch.run("samples", self.path(name), "--order", "grouped", "--group", 40,
                                "--batch", 20, "--stats", "--output", os.devnull, ranks=2)
            self.assertEqual(result.code, 0, result.err)
            figures = json.loads(result.err.splitlines()[-1])["all"]
            # Beside the reads of the groups: the first value, and a cut of each request at 1 MiB.
            self.assertLessEqual(figures["requests"], 2 * 10 * fields + 2)
            self.assertEqual(figures["chunks_decoded"], 40 if name == "zipped.h5" else 0)
            self.assertEqual(figures["bytes_decoded"],
                             rows.nbytes if name == "zipped.h5" else 0)

    def test_verify_reads_everything(self):
        rows = np.random.default_rng(1).integers(0, 9, (100, 50), dtype="u2")
        with h5py.File(self.path("v.h5"), "w") as file:
            file.create_dataset("x", data=rows, chunks=(10, 50), compression="gzip")
            chunk = file["x"].id.get_chunk_info(3)
        report = json.loads(launch.run("verify", self.path("v.h5"), "--json").out)
        self.assertTrue(report["sound"])
        self.assertEqual((report["samples"], report["chunks_decoded"]), (100, 10))
        with open(self.path("v.h5"), "r+b") as file:
            file.seek(chunk.byte_offset + 20)
            file.write(b"\xff" * 30)
        result = launch.run("verify", self.path("v.h5"), "--json")
        self.assertEqual(result.code, 1)
        report = json.loads(result.out)
        self.assertEqual([fault["sample"] for fault in report["faults"]], list(range(30, 40)))

    def bad_cases(self):
        good = self.path("good.h5")
        with h5py.File(good, "w") as file:
            file["x"] = np.zeros((100, 500), "<i4")
            file["short"] = np.zeros((99,), "u1")
            file.create_dataset("scaled", data=np.zeros((100, 50), "<i4"), scaleoffset=4)
        cut = self.path("cut.h5")
        shutil.copy(good, cut)
        os.truncate(cut, os.path.getsize(good) // 2)
        yield "missing field", (good + "#nothing",), "no data set 'nothing'"
        yield "unequal rows", (good + "#x,short",), "99"
        yield "filter", (good + "#scaled",), "filter"
        yield "truncated", (cut,), "truncated"
        yield "large group", (good + "#x", "--order", "grouped", "--group", 101), "larger than"
        yield "few groups", (good + "#x", "--order", "grouped", "--group", 60), "2 groups"
        yield "strategy", (good + "#x", "--strategy", "lmdb"), "LMDB"
        yield "locate", (good + "#x", "--locate", "scan"), "--locate"
        yield "schema", (good + "#x", "--schema", "x:u8[3]"), "--schema"

    def test_bad_input_is_told_at_once(self):
        for what, arguments, word in self.bad_cases():
            with self.subTest(what):
                begin = time.monotonic()
                result = launch.run("samples", *arguments, "--batch", 9, ranks=3, timeout=20)
                self.assertIn(result.code, (1, 2), result.err)
                self.assertIn(word, result.err)
                self.assertEqual(len(result.error_lines()), 1, result.err)
                self.assertLess(time.monotonic() - begin, 10, "5 s, and the launcher's start")


if __name__ == "__main__":
    launch.main()
