#!/usr/bin/python3
"""`forebay samples` over tar shards and folders of files: what tarfile and the file system hold.

Archives are drawn at random: GNU, PAX and ustar headers, long names, folders, samples of one to three
parts of any size. FOREBAY_TEST_SCALE=k draws k times as many.
"""

import collections
import ctypes
import ctypes.util
import io
import json
import os
import random
import re
import tarfile

import launch

_xxhash = ctypes.CDLL(ctypes.util.find_library("xxhash") or "libxxhash.so.0")
_xxhash.XXH3_64bits.restype = ctypes.c_uint64
_xxhash.XXH3_64bits.argtypes = (ctypes.c_char_p, ctypes.c_size_t)

FORMATS = (tarfile.GNU_FORMAT, tarfile.PAX_FORMAT, tarfile.USTAR_FORMAT)
WAYS = ((), ("--engine", "mmap"), ("--engine", "pread", "--depth", 2), ("--engine", "uring"),
        ("--buffers", 1), ("--gap-bytes", 0), ("--stage-bytes", "32MiB"), ("--roots", 2))


def digest(value):
    return f"{_xxhash.XXH3_64bits(value, len(value)):016x}"


def samples_of(paths):
    """[(key, {extension: bytes})] as WebDataset groups the members of its shards."""
    samples = []
    for path in paths:
        before = None
        with tarfile.open(path) as archive:
            for member in archive:
                found = re.match(r"^((?:.*/|)[^.]+)[.]([^/]*)$", member.name)
                if not member.isfile() or not found:
                    continue
                if found[1] != before:
                    samples.append((found[1], {}))
                before = found[1]
                samples[-1][1][found[2].lower()] = archive.extractfile(member).read()
    return samples


def write_shards(generator, folder, parts):
    """Shards with the same parts in every sample, and what else archives have."""
    paths = []
    longest = generator.choice((40, 3000, 100000))
    kind = generator.choice(FORMATS)
    deep = "x" * 90 + "/" + "y" * 40 + "/" if generator.random() < 0.3 else ""
    if generator.random() < 0.3 and kind != tarfile.USTAR_FORMAT:
        deep += "é" * 120 + "/"
    for shard in range(generator.randint(1, 4)):
        paths.append(os.path.join(folder, f"part-{shard:03}.tar"))
        with tarfile.open(paths[-1], "w", format=kind) as archive:
            for number in range(generator.randint(1, 60)):
                if generator.random() < 0.1:
                    entry = tarfile.TarInfo(f"{deep}folder{number}")
                    entry.type = tarfile.DIRTYPE
                    archive.addfile(entry)
                for part in parts:
                    entry = tarfile.TarInfo(f"{deep}{shard:03}-{number:05}.{part}")
                    content = generator.randbytes(generator.choice((0, 1, 511, 512, 513, generator.randrange(longest))))
                    entry.size = len(content)
                    archive.addfile(entry, io.BytesIO(content))
    return paths


class Archives(launch.AcceptanceCase):

    def samples(self, dataset, ranks, *flags):
        result = launch.run("samples", dataset, "--codec", "bytes", *flags, ranks=ranks)
        self.assertEqual(result.code, 0, result.err)
        return [json.loads(line) for line in result.out.splitlines()]

    def check(self, lines, expected, parts):
        for line in lines:
            key, content = expected[line["sample"]]
            self.assertEqual(bytes.fromhex(line["key"]).decode(), key)
            if len(parts) == 1:
                self.assertEqual((line["bytes"], line["xxh3"]),
                                 (len(content[parts[0]]), digest(content[parts[0]])), key)
                continue
            self.assertEqual(list(line["parts"]), [part.lower() for part in parts])
            for part in parts:
                value = content[part.lower()]
                self.assertEqual(line["parts"][part.lower()],
                                 {"bytes": len(value), "xxh3": digest(value)}, (key, part))

    def test_every_order_on_random_archives(self):
        for seed in range(8 * launch.SCALE):
            generator = random.Random(seed)
            parts = generator.choice((("jpg",), ("jpg", "cls"), ("seg.png", "txt", "JSON")))
            folder = self.path(f"d{seed}")
            os.mkdir(folder)
            paths = write_shards(generator, folder, parts)
            expected = samples_of(paths)
            name = generator.choice((os.path.join(folder, "part-*.tar"), ",".join(paths),
                                     os.path.join(folder, f"part-{{000..{len(paths) - 1:03}}}.tar")))
            ranks = generator.choice((0, 2, 3))
            batch = generator.randint(max(2, ranks), 20)
            orders = (("strided", "--coalesce", generator.randint(1, 5)), ("shuffled",),
                      ("shuffled", "--keep", 3), ("grouped", "--group", max(1, len(expected) // 4)))
            for order in launch.some(generator.sample(orders, 2), every=1, on_mpich=2):
                way = generator.choice(WAYS)
                with self.subTest(seed=seed, parts=parts, order=order, way=way, ranks=ranks):
                    lines = self.samples(name, ranks, "--order", *order, "--batch", batch,
                                         "--epochs", 2, "--seed", seed, *way)
                    self.check(lines, expected, parts)
                    times = collections.Counter((line["epoch"], line["sample"]) for line in lines)
                    self.assertEqual(set(times.values()), {1})
                    self.assertEqual(len(times), 2 * len(expected))

    def test_parts_are_chosen_and_renamed_and_what_is_left_out_is_said(self):
        path = self.path("mixed.tar")
        with tarfile.open(path, "w") as archive:
            for number in range(10):
                for part in ("jpg", "cls") + (("txt",) if number % 3 == 0 else ()):
                    content = f"{number}{part}".encode()
                    entry = tarfile.TarInfo(f"{number}.{part}")
                    entry.size = len(content)
                    archive.addfile(entry, io.BytesIO(content))
        result = launch.run("samples", path, "--codec", "bytes", "--batch", 2, "--epochs", 1)
        self.assertEqual(list(json.loads(result.out.splitlines()[0])["parts"]), ["jpg", "cls"])
        self.assertEqual(result.err.count("txt (4 of 10)"), 1, result.err)
        lines = self.samples(path + "#label=cls,image=jpg", 0, "--batch", 2, "--epochs", 1)
        self.assertEqual(list(lines[3]["parts"]), ["label", "image"])
        self.assertEqual(lines[3]["parts"]["label"]["xxh3"], digest(b"3cls"))
        for fields, word in (("#txt", "have no part 'txt'"), ("#png", "there is no part 'png'")):
            result = launch.run("samples", path + fields, "--batch", 2, "--epochs", 1)
            self.assertNotEqual(result.code, 0)
            self.assertIn(word, result.err)

    def test_damaged_archives_are_refused_with_their_place(self):
        generator = random.Random(5)
        folder = self.path("sound")
        os.mkdir(folder)
        path = write_shards(generator, folder, ("jpg", "cls"))[0]
        with open(path, "rb") as file:
            sound = file.read()
        expected = samples_of([path])
        damaged = self.path("damaged.tar")
        for case in range(30 * launch.SCALE):
            content = bytearray(sound)
            if case % 2:
                del content[generator.randrange(600, len(content)):]
            else:
                content[generator.randrange(0, 512)] ^= generator.randrange(1, 256)
            with open(damaged, "wb") as file:
                file.write(content)
            result = launch.run("samples", damaged, "--format", "tar", "--codec", "bytes", "--batch", 2,
                                "--epochs", 1)
            with self.subTest(case=case):
                if result.code != 0:
                    self.assertIn("damaged.tar", result.err)
                    continue
                # What was damaged says nothing of samples: all of them are there.
                lines = [json.loads(line) for line in result.out.splitlines()]
                self.check(lines, expected, ("jpg", "cls"))
                self.assertEqual(len(lines), len(expected))

    def test_a_folder_of_images(self):
        root = self.path("images")
        expected = []
        generator = random.Random(3)
        for label, name in enumerate(("a b", "cat", "dog")):
            for below in ("", "more/", "z/"):
                os.makedirs(os.path.join(root, name, below))
                for number in range(generator.randint(1, 5)):
                    key = f"{name}/{below}{number}.{generator.choice(('jpg', 'PNG', 'jpeg'))}"
                    content = generator.randbytes(generator.randrange(5000))
                    with open(os.path.join(root, key), "wb") as file:
                        file.write(content)
                    expected.append((key, {"image": content, "label": str(label).encode()}))
        for odd in (".hidden/1.jpg", "cat/.thumb.jpg", "dog/notes.txt", "README"):
            os.makedirs(os.path.dirname(os.path.join(root, odd)), exist_ok=True)
            with open(os.path.join(root, odd), "wb") as file:
                file.write(b"no sample")

        def place(sample):
            folder, file = os.path.split(sample[0])
            return (sample[0].split("/")[0], folder, file)

        expected.sort(key=place)
        for ranks, order in ((0, "strided"), (3, "shuffled")):
            lines = self.samples(root, ranks, "--order", order, "--batch", 6, "--epochs", 1)
            self.assertEqual(sorted(line["sample"] for line in lines), list(range(len(expected))))
            self.check(lines, expected, ("image", "label"))
        result = launch.run("samples", root, "--codec", "bytes", "--batch", 2, "--epochs", 1)
        self.assertIn("notes.txt", result.err)
        self.assertIn("README", result.err)


if __name__ == "__main__":
    launch.main()
