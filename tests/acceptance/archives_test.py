#!/usr/bin/python3
"""`forebay samples` over tar, zip, TFRecord, tokens and folders of files: what tarfile, zipfile, this
file and the file system hold.

Archives are drawn at random: GNU, PAX and ustar headers, stored and deflated members, packed and single
numbers, long names, folders, samples of one to three parts of any size. FOREBAY_TEST_SCALE=k draws k times
as many.
"""

import collections
import ctypes
import ctypes.util
import io
import json
import os
import random
import re
import struct
import tarfile
import zipfile

import launch

_xxhash = ctypes.CDLL(ctypes.util.find_library("xxhash") or "libxxhash.so.0")
_xxhash.XXH3_64bits.restype = ctypes.c_uint64
_xxhash.XXH3_64bits.argtypes = (ctypes.c_char_p, ctypes.c_size_t)

FORMATS = (tarfile.GNU_FORMAT, tarfile.PAX_FORMAT, tarfile.USTAR_FORMAT)
WAYS = ((), ("--engine", "mmap"), ("--engine", "pread", "--depth", 2), ("--engine", "uring"),
        ("--buffers", 1), ("--gap-bytes", 0), ("--stage-bytes", "32MiB"), ("--roots", 2))


def digest(value):
    return f"{_xxhash.XXH3_64bits(value, len(value)):016x}"


def crc32c(content):
    crc = 0xFFFFFFFF
    for byte in content:
        crc = crc >> 8 ^ CRC_TABLE[(crc ^ byte) & 0xFF]
    return crc ^ 0xFFFFFFFF


def crc_of_byte(byte):
    for _ in range(8):
        byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
    return byte


CRC_TABLE = [crc_of_byte(byte) for byte in range(256)]


def varint(number):
    number &= (1 << 64) - 1
    content = b""
    while number >= 128:
        content += bytes([number & 127 | 128])
        number >>= 7
    return content + bytes([number])


def field(number, content):
    return varint(number << 3 | 2) + varint(len(content)) + content


def record_of(content):
    length = struct.pack("<Q", len(content))

    def masked(of):
        crc = crc32c(of)
        return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)

    return length + masked(length) + content + masked(content)


def samples_of_tar(paths):
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


def write_zips(generator, folder, parts):
    paths = []
    longest = generator.choice((40, 3000, 100000))
    for number in range(generator.randint(1, 4)):
        paths.append(os.path.join(folder, f"part-{number:03}.zip"))
        folder_of = f"folder/{'n' * generator.choice((1, 200))}"
        members = [f"{folder_of}{number:03}-{sample:05}.{part}"
                   for sample in range(generator.randint(1, 60)) for part in parts]
        if generator.random() < 0.5:
            generator.shuffle(members)
        with zipfile.ZipFile(paths[-1], "w") as archive:
            if generator.random() < 0.3:
                archive.mkdir("folder") if hasattr(archive, "mkdir") else archive.writestr("folder/", b"")
            for name in members:
                size = generator.choice((0, 1, generator.randrange(longest)))
                content = generator.choice((generator.randbytes(size), b"ab" * (size // 2)))
                info = zipfile.ZipInfo(name)
                info.compress_type = generator.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))
                with archive.open(info, "w", force_zip64=generator.random() < 0.2) as member:
                    member.write(content)
    return paths


def samples_of_zip(paths):
    samples = []
    for path in paths:
        of_file = {}
        with zipfile.ZipFile(path) as archive:
            for name in archive.namelist():
                if not name.endswith("/"):
                    key, _, part = name.partition(".")
                    of_file.setdefault(key, {})[part.lower()] = archive.read(name)
        samples += of_file.items()
    return samples


def write_records(generator, folder, parts):
    """Files of Examples: the first part is bytes, the others floats and integers; and what they hold,
    which no package of this machine can tell."""
    paths = []
    samples = RECORDS[folder] = []
    longest = generator.choice((40, 3000, 30000))
    for number in range(generator.randint(1, 4)):
        paths.append(os.path.join(folder, f"part-{number:03}.tfrecord"))
        with open(paths[-1], "wb") as file:
            for _ in range(generator.randint(1, 60)):
                sample = {parts[0].lower(): generator.randbytes(generator.randrange(longest))}
                lists = [field(1, field(1, sample[parts[0].lower()]))]
                for place, part in enumerate(parts[1:]):
                    packed = generator.random() < 0.5
                    if place == 0:
                        numbers = [struct.pack("<f", generator.random()) for _ in range(generator.randrange(9))]
                        value = b"".join(numbers)
                        content = field(1, value) if packed else b"".join(b"\x0d" + one for one in numbers)
                    else:
                        numbers = [generator.randrange(-(1 << 63), 1 << 63) for _ in range(generator.randrange(9))]
                        value = struct.pack(f"<{len(numbers)}q", *numbers)
                        varints = [varint(one) for one in numbers]
                        content = field(1, b"".join(varints)) if packed else b"".join(b"\x08" + one for one in varints)
                    sample[part.lower()] = value
                    lists.append(field(2 + place, content))
                entries = [field(1, field(1, part.lower().encode()) + field(2, one))
                           for part, one in zip(parts, lists)]
                generator.shuffle(entries)
                file.write(record_of(field(1, b"".join(entries))))
                samples.append(("", sample))
    return paths


RECORDS = {}


def samples_of_records(paths):
    return RECORDS[os.path.dirname(paths[0])]


KINDS = {"tar": (write_shards, samples_of_tar), "zip": (write_zips, samples_of_zip),
         "tfrecord": (write_records, samples_of_records)}


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
                value = content[parts[0].lower()]
                self.assertEqual((line["bytes"], line["xxh3"]), (len(value), digest(value)), key)
                continue
            self.assertEqual(sorted(line["parts"]), sorted(part.lower() for part in parts))
            for part in parts:
                value = content[part.lower()]
                self.assertEqual(line["parts"][part.lower()],
                                 {"bytes": len(value), "xxh3": digest(value)}, (key, part))

    def test_every_order_on_random_archives(self):
        for seed in range(8 * launch.SCALE):
            for kind in launch.some(KINDS, every=1, on_mpich=2):
                self.every_order(seed, kind)

    def every_order(self, seed, kind):
        write, samples_of = KINDS[kind]
        generator = random.Random(f"{seed}{kind}" if kind != "tar" else seed)
        parts = generator.choice((("jpg",), ("jpg", "cls"), ("seg.png", "txt", "JSON")))
        folder = self.path(f"{kind}{seed}")
        os.mkdir(folder)
        paths = write(generator, folder, parts)
        expected = samples_of(paths)
        if not any(value for _, content in expected for value in content.values()):
            return  # which is refused: there is nothing to read
        end = f".{kind}"
        name = generator.choice((os.path.join(folder, "part-*" + end), ",".join(paths),
                                 os.path.join(folder, f"part-{{000..{len(paths) - 1:03}}}{end}")))
        ranks = generator.choice((0, 2, 3))
        if len(expected) < 4 * ranks:
            ranks = 0  # there are fewer groups
        batch = generator.randint(max(2, ranks), 20)
        orders = (("strided", "--coalesce", generator.randint(1, 5)), ("shuffled",),
                  ("shuffled", "--keep", min(3, len(expected))), ("grouped", "--group", max(1, len(expected) // 4)))
        for order in launch.some(generator.sample(orders, 2), every=1, on_mpich=2):
            way = generator.choice(WAYS)
            with self.subTest(kind=kind, seed=seed, parts=parts, order=order, way=way, ranks=ranks):
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
        for command in ("inspect", "verify"):
            result = launch.run(command, path)
            self.assertIn("txt (4 of 10)", result.out, command)
            notes = json.loads(launch.run(command, path, "--json").out)["notes"]
            self.assertIn("txt (4 of 10)", notes[0], command)
        for fields, word in (("#txt", "have no part 'txt'"), ("#png", "there is no part 'png'")):
            result = launch.run("samples", path + fields, "--batch", 2, "--epochs", 1)
            self.assertNotEqual(result.code, 0)
            self.assertIn(word, result.err)

    def test_damaged_archives_are_refused_with_their_place(self):
        for kind in KINDS:
            self.refused_or_whole(kind)

    def refused_or_whole(self, kind):
        write, samples_of = KINDS[kind]
        generator = random.Random(5)
        folder = self.path(f"sound-{kind}")
        os.mkdir(folder)
        parts = ("jpg", "cls") if kind != "tfrecord" else ("jpg", "txt", "cls")
        path = write(generator, folder, parts)[0]
        with open(path, "rb") as file:
            sound = file.read()
        expected = samples_of([path])
        damaged = self.path(f"damaged.{kind}")
        for case in range(30 * launch.SCALE):
            content = bytearray(sound)
            if case % 2:
                del content[generator.randrange(600, len(content)):]
            else:
                # Of tar, headers alone have checksums.
                content[generator.randrange(0, 512 if kind == "tar" else len(content))] ^= generator.randrange(1, 256)
            with open(damaged, "wb") as file:
                file.write(content)
            result = launch.run("samples", damaged, "--format", kind, "--codec", "bytes", "--batch", 2,
                                "--epochs", 1)
            with self.subTest(kind=kind, case=case):
                if result.code != 0:
                    self.assertIn(f"damaged.{kind}", result.err)
                    continue
                # What was damaged says nothing of samples, or ended between two records.
                lines = [json.loads(line) for line in result.out.splitlines()]
                if kind != "zip":
                    self.check(lines, expected, parts)
                else:  # names have no checksums
                    known = {digest(value) for _, sample in expected for value in sample.values()}
                    for line in lines:
                        values = line["parts"].values() if "parts" in line else (line,)
                        self.assertLessEqual({value["xxh3"] for value in values}, known)
                if kind == "tar":
                    self.assertEqual(len(lines), len(expected))

    def test_tokens_in_every_order(self):
        # Windows of 7 tokens, 5 apart, of two files each.
        generator = random.Random(11)
        for name, code, width, header in (("u16", "H", 2, 0), ("u32", "I", 4, 8), ("npy", "i", 4, None),
                                          ("idx", "i", 4, None)):
            expected, paths = [], []
            for number in range(2):
                tokens = [generator.randrange(1 << 15) for _ in range(generator.randint(100, 400))]
                content = struct.pack(f"<{len(tokens)}{code}", *tokens)
                paths.append(self.path(f"{name}-{number}.{'npy' if name == 'npy' else 'bin'}"))
                with open(paths[-1], "wb") as file:
                    if name == "npy":
                        shape = f"{{'descr': '<i4', 'fortran_order': False, 'shape': ({len(tokens)},), }}"
                        file.write(b"\x93NUMPY\x01\x00\x76\x00" + shape.ljust(117).encode() + b"\n")
                    file.write(bytes(header or 0) + content)
                if name == "idx":
                    sizes = [len(tokens) - 40, 3, 37]
                    with open(paths[-1][:-3] + "idx", "wb") as file:
                        file.write(b"MMIDIDX\0\0" + struct.pack("<QBQQ", 1, 4, 3, 3))
                        file.write(struct.pack("<3i3q3q", *sizes, 0, sizes[0] * 4, (sizes[0] + 3) * 4, 0, 1, 3))
                expected += [("", {"tokens": content[at * width:(at + 7) * width]})
                             for at in range(0, len(tokens) - 6, 5)]
            flags = ["--schema", name] if header is not None else []
            flags += ["--header-bytes", header] if header else []
            for ranks, order in ((0, "strided"), (2, "grouped"), (3, "shuffled"), (4, "shuffled")):
                with self.subTest(name=name, ranks=ranks, order=order):
                    result = launch.run("samples", ",".join(paths), "--length", 7, "--step", 5, "--order", order,
                                        "--batch", 8, "--epochs", 1, *flags, ranks=ranks)
                    self.assertEqual(result.code, 0, result.err)
                    lines = [json.loads(line) for line in result.out.splitlines()]
                    self.assertEqual(sorted(line["sample"] for line in lines), list(range(len(expected))))
                    for line in lines:
                        value = expected[line["sample"]][1]["tokens"]
                        self.assertEqual((line["bytes"], line["xxh3"]), (len(value), digest(value)))

    def test_links_in_zip_archives_are_no_samples(self):
        path = self.path("links.zip")
        with zipfile.ZipFile(path, "w") as archive:
            for number in range(4):
                info = zipfile.ZipInfo(f"{number}.txt")
                info.external_attr = (0o120777 if number == 2 else 0o100644) << 16
                archive.writestr(info, "0.txt" if number == 2 else str(number))
        result = launch.run("samples", path, "--codec", "bytes", "--batch", 3, "--epochs", 1)
        keys = {bytes.fromhex(json.loads(line)["key"]).decode() for line in result.out.splitlines()}
        self.assertEqual(keys, {"0", "1", "3"})
        self.assertEqual(result.err.count("1 links are left out, the first is '2.txt'"), 1, result.err)

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
