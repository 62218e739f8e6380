"""The data sets of the golden corpus: small, the same bytes every time, and a few of every kind."""

import os

import h5py
import numpy as np

import liblmdb

ENTRIES = 60


def value(number, size, seed=1):
    """`size` bytes that look random and are the same everywhere."""
    words, state = bytearray(), number * 2654435761 + seed
    while len(words) < size:
        state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
        words += state.to_bytes(8, "little")
    return bytes(words[:size])


def varint(number):
    out = bytearray()
    while number >= 128:
        out.append(number % 128 + 128)
        number //= 128
    return bytes(out + bytes([number]))


def datum(number):
    """A Caffe Datum of 3x4x5 bytes and a label, by the rules of its wire format."""
    pixels = value(number, 60)
    return (b"\x08\x03\x10\x04\x18\x05" + b"\x22" + varint(len(pixels)) + pixels
            + b"\x28" + varint(number % 10))


def write(path, records, name=None, flags=liblmdb.CREATE):
    os.makedirs(path, exist_ok=True)
    with liblmdb.Environment(path, liblmdb.NOSYNC, 64 << 20) as environment:
        with environment.transaction(name=name, flags=flags if name else 0) as transaction:
            for key, content in records:
                transaction.put(key, content)


def numbered(count, seed, longest=7000):
    return [(str(i).encode(), value(i, 0 if i % 5 == 0 else i * 131 % longest, seed))
            for i in range(count)]


def lmdb_sets():
    write("datum", [(b"%08d" % i, datum(i)) for i in range(ENTRIES)])
    write("mixed", [(b"%08d" % i, value(i, i * 977 % 9001)) for i in range(ENTRIES)])
    write("named", [(b"k%03d" % i, value(i, 40 + i % 3)) for i in range(ENTRIES)], "train")
    write("grouped", [pair for i in range(1, ENTRIES + 1) for pair in
                      ((b"image-%09d" % i, value(i, 100 + i * 37 % 3000)),
                       (b"label-%09d" % i, b"word %d" % i))] + [(b"num-samples", b"%d" % ENTRIES)])
    write("numbers", numbered(ENTRIES, 3))
    write("listed.lmdb", numbered(ENTRIES, 4))
    with open("listed.lmdb/meta_info.txt", "w", encoding="ascii") as file:
        for i in range(ENTRIES):
            file.write(f"{(i * 7 + 3) % ENTRIES}.png (1,1,3) 1\n")
    for part in range(3):
        write(f"part-{part}", numbered(15 + part * 11, 10 + part))
    write("a", numbered(ENTRIES, 20))
    write("b", numbered(ENTRIES, 21))


def array_sets():
    x = np.frombuffer(value(5, ENTRIES * 24), "u1").reshape(ENTRIES, 2, 3, 4)
    y = np.arange(ENTRIES, dtype=">i4") * 3 - 7
    for number, rows in enumerate((slice(0, 25), slice(25, ENTRIES))):
        with h5py.File(f"set-{number}.h5", "w") as file:
            file.create_dataset("x", data=x[rows], track_times=False)
            file.create_dataset("y", data=y[rows], chunks=(8,), compression="gzip", shuffle=True,
                                track_times=False)
    np.save("floats.npy", np.frombuffer(value(6, ENTRIES * 28), "u1").view("<i4").reshape(-1, 7))
    records = np.zeros(ENTRIES, [("a", ">u2"), ("b", ">f4"), ("c", "u1", (5,))])
    records["a"], records["b"] = np.arange(ENTRIES) * 11, np.arange(ENTRIES) / 4
    records["c"] = np.frombuffer(value(7, ENTRIES * 5), "u1").reshape(-1, 5)
    with open("records.bin", "wb") as file:
        file.write(bytes(13) + records.tobytes())
    with open("data_batch_1.bin", "wb") as file:
        for i in range(ENTRIES):
            file.write(bytes([i % 10]) + value(i, 3072))


# Name, what to open, options of the loader, flags of the command; whether samples are decoded too.
# The first of each family has every order and strategy, the others a few.
SETS = (
    ("datum", "datum", "", (), True),
    ("mixed", "mixed", "codec=bytes", ("--codec", "bytes"), False),
    ("named", "named#train", "codec=bytes", ("--codec", "bytes"), False),
    ("grouped", "grouped", "codec=bytes", ("--codec", "bytes"), False),
    ("by number", "numbers", "codec=bytes,order-by=number", ("--codec", "bytes", "--order-by", "number"), False),
    ("meta info", "listed.lmdb", "codec=bytes", ("--codec", "bytes"), False),
    ("joined", "part-*", "codec=bytes", ("--codec", "bytes"), False),
    ("pairs", "lq=a&gt=b", "codec=bytes", ("--codec", "bytes"), False),
    ("hdf5", "set-*.h5", "", (), True),
    ("hdf5 fields", "set-*.h5#z=y", "", (), True),
    ("npy", "floats.npy", "", (), True),
    ("raw", "records.bin", 'format=raw,schema="a:u16[],b:f32[],c:u8[5]",header-bytes=13,big-endian=on',
     ("--format", "raw", "--schema", "a:u16[],b:f32[],c:u8[5]", "--header-bytes", "13", "--big-endian"), True),
    ("cifar10", "data_batch_1.bin", "format=cifar10", ("--format", "cifar10"), True),
)


def make():
    lmdb_sets()
    array_sets()
    with open("ids", "w", encoding="ascii") as file:
        file.write(" ".join(str(i * 17 % ENTRIES) for i in range(ENTRIES)))
