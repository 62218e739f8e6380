"""Data sets of every format with the right bytes of each sample, as other software reads them.

Beside what the other acceptance tests draw: large enough that a fault comes in the middle of a run.
"""

import os
import tarfile
from dataclasses import dataclass, field

import archives_test
import launch
import liblmdb
import numpy as np
import sample_sets_test

digest = archives_test.digest


@dataclass
class DataSet:
    """What to name, with which options, the file that faults happen to, and what is right.

    `right` has for each sample what a line of it says of its bytes: (bytes, digest), or of a sample of
    parts {part: (bytes, digest)}.
    """

    kind: str
    folder: str
    name: str
    file: str
    right: list
    flags: tuple = field(default=())

    def path(self, of):
        """The name below folder `of`, which serves what this data set's folder has."""
        return self.name.replace(self.folder, of)


def said_of(value):
    return (len(value), digest(value))


def _lmdb(generator, folder):
    sizes = generator.choice(((300, 3000), (100, 9000), (40000, 60000)))
    count = generator.randint(100, 9_000_000 // sizes[1])
    values = [generator.randbytes(generator.randint(*sizes)) for _ in range(count)]
    path = os.path.join(folder, "data")
    liblmdb.write(path, [(b"%08d" % number, value) for number, value in enumerate(values)])
    return DataSet(
        "lmdb", folder, path, os.path.join(path, "data.mdb"), [said_of(v) for v in values]
    )


def _arrays(make, kind, ending):
    def made(generator, folder):
        found = make(generator, os.path.join(folder, "data"))
        return DataSet(
            kind,
            folder,
            found.name,
            os.path.join(folder, "data" + ending),
            [said_of(sample) for sample in found.samples],
            tuple(found.flags),
        )

    return made


def _npy(generator, folder):
    path = os.path.join(folder, "data.npy")
    shape = (generator.randint(500, 3000), generator.choice((64, 700, 3072)))
    array = np.frombuffer(generator.randbytes(shape[0] * shape[1]), "u1").reshape(shape)
    np.save(path, array)
    return DataSet("npy", folder, path, path, [said_of(row.tobytes()) for row in array])


def _tokens(generator, folder):
    path, length = os.path.join(folder, "data.bin"), generator.choice((64, 500))
    tokens = np.frombuffer(generator.randbytes(2 * length * generator.randint(400, 4000)), "<u2")
    tokens.tofile(path)
    right = [said_of(row.tobytes()) for row in tokens.reshape(-1, length)]
    return DataSet(
        "tokens",
        folder,
        path,
        path,
        right,
        ("--format", "tokens", "--length", length, "--schema", "u16"),
    )


def _archives(kind):
    def made(generator, folder):
        write, samples_of = archives_test.KINDS[kind]
        parts = generator.choice((("jpg",), ("jpg", "cls"), ("seg.png", "txt", "json")))
        paths = write(generator, folder, parts)
        right = []
        for _, content in samples_of(paths):
            said = {part.lower(): said_of(content[part.lower()]) for part in parts}
            right.append(said if len(parts) > 1 else said[parts[0]])
        name = os.path.join(folder, f"part-*.{kind}")
        return DataSet(kind, folder, name, generator.choice(paths), right, ("--codec", "bytes"))

    return made


def _folder(generator, folder):
    right, last = [], ""
    classes = sorted(("cat", "dog", "a bird"))
    for name in classes:
        os.mkdir(os.path.join(folder, name))
        for number in range(generator.randint(20, 90)):
            last = os.path.join(folder, name, f"{number:03}.jpg")
            value = b"\xff\xd8\xff" + generator.randbytes(generator.randint(300, 30000))
            with open(last, "wb") as file:
                file.write(value)
            label = str(classes.index(name)).encode()
            right.append({"image": said_of(value), "label": said_of(label)})
    return DataSet("folder", folder, folder, last, right, ("--codec", "bytes"))


MAKERS = {
    "lmdb": _lmdb,
    "npy": _npy,
    "tokens": _tokens,
    "folder": _folder,
    "hdf5": _arrays(sample_sets_test.random_hdf5, "hdf5", "-0.h5"),
    "raw": _arrays(sample_sets_test.random_records, "raw", ".bin"),
    **{kind: _archives(kind) for kind in archives_test.KINDS},
}


def make(kind, generator, folder):
    """A data set that has more samples than a few ranks, in a folder of its own."""
    while True:
        os.makedirs(folder)
        found = MAKERS[kind](generator, folder)
        if len(found.right) >= 30 and any(one != (0, digest(b"")) for one in found.right):
            return found
        launch.shutil.rmtree(folder)
