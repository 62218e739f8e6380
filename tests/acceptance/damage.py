"""Breaks LMDB files on purpose, one lie at a time.

The parts of the file format that this needs (64-bit, version 0.9, little endian):

  page   0 number:8  8 pad:2  10 flags:2  12 lower:2  14 upper:2 (overflow: 12 pages:4)  16 slots
  meta   the page's body: 0 magic:4  4 version:4  16 mapsize:8  24 free database  72 main database
         120 last page:8  128 transaction:8
  database (48 bytes)  6 depth:2  8 branches:8  16 leaves:8  24 overflows:8  32 entries:8  40 root:8
  node   0 low:2  2 high:2  4 flags:2  6 key size:2  8 key, then data
         branch: child = low | high << 16 | flags << 32; leaf: data size = low | high << 16
"""

import os
import struct

PAGE = 4096
HEADER = 16
BRANCH, LEAF, OVERFLOW = 0x01, 0x02, 0x04
BIG_DATA = 0x01


class DataFile:
    """A data.mdb held in memory; save() writes it back."""

    def __init__(self, directory):
        self.path = os.path.join(directory, "data.mdb")
        with open(self.path, "rb") as file:
            self.bytes = bytearray(file.read())

    def save(self):
        with open(self.path, "wb") as file:
            file.write(self.bytes)

    def get(self, form, offset):
        return struct.unpack_from("<" + form, self.bytes, offset)[0]

    def set(self, form, offset, value):
        struct.pack_into("<" + form, self.bytes, offset, value)

    def metas(self):
        """Offsets of the bodies of both meta pages, the newer first."""
        bodies = [HEADER, PAGE + HEADER]
        return sorted(bodies, key=lambda body: self.get("Q", body + 128), reverse=True)

    def root(self):
        return self.get("Q", self.metas()[0] + 72 + 40)

    def flags(self, page):
        return self.get("H", page * PAGE + 10)

    def nodes(self, page):
        """Offsets in the file of the nodes of a branch or leaf page."""
        begin = page * PAGE
        count = (self.get("H", begin + 12) - HEADER) // 2
        return [begin + self.get("H", begin + HEADER + 2 * slot) for slot in range(count)]

    def child(self, node):
        return self.get("H", node) | self.get("H", node + 2) << 16 | self.get("H", node + 4) << 32

    def set_child(self, node, page):
        for shift, offset in ((0, 0), (16, 2), (32, 4)):
            self.set("H", node + offset, page >> shift & 0xFFFF)

    def leaf(self, number):
        """The page number of the leaf `number` levels of luck away: children of the root in order."""
        page = self.root()
        while self.flags(page) & BRANCH:
            nodes = self.nodes(page)
            page = self.child(nodes[min(number, len(nodes) - 1)])
        return page


def cut_in_half(data):
    del data.bytes[len(data.bytes) // 2 // PAGE * PAGE:]


def zero_a_leaf(data):
    leaf = data.leaf(1)
    data.bytes[leaf * PAGE:(leaf + 1) * PAGE] = bytes(PAGE)


def loop_a_branch(data):
    root = data.root()
    data.set_child(data.nodes(root)[1], root)


def point_past_the_end(data):
    data.set_child(data.nodes(data.root())[1], 1 << 30)


def move_nodes_off_the_page(data):
    leaf = data.leaf(1) * PAGE
    count = (data.get("H", leaf + 12) - HEADER) // 2
    for slot in range(count):
        data.set("H", leaf + HEADER + 2 * slot, 0xFFF8)


def lie_about_lower(data):
    data.set("H", data.leaf(1) * PAGE + 12, 0xFFFE)


def lie_about_a_value_size(data):
    node = data.nodes(data.leaf(1))[0]
    data.set("H", node + 2, 0x7FFF)


def spoil_the_magic(data):
    for body in data.metas():
        data.set("I", body, 0x12345678)


def raise_the_version(data):
    for body in data.metas():
        data.set("I", body + 4, 2)


def lie_about_entries(data):
    for body in data.metas():
        data.set("Q", body + 72 + 32, data.get("Q", body + 72 + 32) + 1000)


def root_out_of_range(data):
    for body in data.metas():
        data.set("Q", body + 72 + 40, 1 << 40)


def swap_two_leaves(data):
    """Both leaves are sound, but the keys are out of order."""
    first, second = data.leaf(1) * PAGE, data.leaf(2) * PAGE
    one, other = data.bytes[first:first + PAGE], data.bytes[second:second + PAGE]
    one[:8], other[:8] = other[:8], one[:8]
    data.bytes[first:first + PAGE], data.bytes[second:second + PAGE] = other, one


def point_an_overflow_run_at_a_leaf(data):
    node = data.nodes(data.leaf(1))[0]
    size = data.get("H", node + 6)
    assert data.get("H", node + 4) & BIG_DATA
    data.set("Q", node + 8 + size, data.leaf(0))
