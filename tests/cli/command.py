"""What the command-line tests share: running `forebay`, and small sources to pack.

FOREBAY_COMMAND names the executable; tests/cli/CMakeLists.txt sets it.
"""

import gzip
import json
import os
import struct
import subprocess
import sys
import tempfile
import unittest
import zlib

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "acceptance"))

import liblmdb  # noqa: E402  (the oracle that the acceptance tests use)

COMMAND = os.environ.get("FOREBAY_COMMAND", "build/release/src/forebay")


def records(path):
    """[(key, value)] of a database in key order, read by liblmdb itself."""
    environment = liblmdb.Environment(path, liblmdb.RDONLY | liblmdb.NOLOCK)
    try:
        with environment.transaction(write=False) as transaction:
            return [(key, liblmdb.ctypes.string_at(address, size) if size else b"")
                    for key, address, size in transaction.records()]
    finally:
        environment.close()


def write_records(path, pairs, flags=0):
    """A database that holds the (key, value) pairs."""
    environment = liblmdb.Environment(path, flags)
    try:
        with environment.transaction() as transaction:
            for key, value in pairs:
                transaction.put(key, value)
    finally:
        environment.close()


def datum(value):
    """Field number -> value of a Datum, by the rules of Protocol Buffers."""
    fields, at = {}, 0
    while at < len(value):
        tag, at = _varint(value, at)
        number, at = _varint(value, at)
        if tag & 7 == 2:
            fields[tag >> 3], at = value[at:at + number], at + number
        else:
            fields[tag >> 3] = number
    return fields


def _varint(value, at):
    result = shift = 0
    while True:
        byte = value[at]
        result |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return result, at


def encode_datum(channels, height, width, pixels, label):
    """A raw Datum; the numbers must be small."""
    def field(number, value):
        return bytes([number << 3]) + _to_varint(value)
    return (field(1, channels) + field(2, height) + field(3, width) + b"\x22" +
            _to_varint(len(pixels)) + pixels + field(5, label))


def _to_varint(value):
    out = b""
    while value > 127:
        out, value = out + bytes([value & 127 | 128]), value >> 7
    return out + bytes([value])


def idx(dimensions, data):
    return bytes([0, 0, 8, len(dimensions)]) + struct.pack(f">{len(dimensions)}I",
                                                           *dimensions) + data


def png(channels, height, width, pixels):
    """A PNG file of interleaved pixels, by Python's own zlib."""
    def chunk(kind, data):
        return (struct.pack(">I", len(data)) + kind + data +
                struct.pack(">I", zlib.crc32(kind + data)))
    row = channels * width
    lines = b"".join(b"\0" + pixels[y * row:(y + 1) * row] for y in range(height))
    header = struct.pack(">IIBBBBB", width, height, 8, 2 if channels == 3 else 0, 0, 0, 0)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(lines)) +
            chunk(b"IEND", b""))


class CommandTest(unittest.TestCase):
    """A scratch directory a test, and runs of the command in it."""

    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="forebay-cli-")
        self.addCleanup(scratch.cleanup)
        self.root = scratch.name

    def path(self, *parts):
        return os.path.join(self.root, *parts)

    def write(self, name, data):
        path = self.path(name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(data)
        return path

    def run_command(self, *arguments, **options):
        return subprocess.run([COMMAND, *map(str, arguments)], capture_output=True, text=True,
                              timeout=60, check=False, **options)

    def succeed(self, *arguments, **options):
        result = self.run_command(*arguments, **options)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout

    def succeed_json(self, *arguments):
        return json.loads(self.succeed(*arguments, "--json"))

    def fail(self, *arguments, code=1, naming=(), **options):
        """The error line of a run that must fail with one line that says `naming`."""
        result = self.run_command(*arguments, **options)
        self.assertEqual(result.returncode, code, result.stdout + result.stderr)
        lines = result.stderr.splitlines()
        self.assertEqual(len(lines), 1, result.stderr)
        self.assertTrue(lines[0].startswith("forebay: error: "), lines[0])
        for word in [naming] if isinstance(naming, str) else naming:
            self.assertIn(word, lines[0])
        return lines[0]

    def as_someone_else(self):
        """Options of a run whose permissions count: root's do not."""
        if os.geteuid() != 0:
            return {}
        os.chmod(self.root, 0o755)
        options = {"user": 65534, "group": 65534, "extra_groups": []}
        try:
            self.run_command("--version", **options)
        except PermissionError:
            self.skipTest("nobody but root may run the command")
        return options

    def idx_source(self, count=25, height=4, width=5, zipped=False):
        """A directory of MNIST's layout; returns it with the images and labels."""
        pixels = bytes((i * 7 + i // 20) % 251 for i in range(count * height * width))
        labels = bytes(i % 10 for i in range(count))
        suffix, pack = (".gz", gzip.compress) if zipped else ("", bytes)
        self.write("mnist/train-images-idx3-ubyte" + suffix, pack(idx([count, height, width],
                                                                      pixels)))
        self.write("mnist/train-labels-idx1-ubyte" + suffix, pack(idx([count], labels)))
        size = height * width
        return self.path("mnist"), [pixels[i * size:(i + 1) * size] for i in range(count)], labels
