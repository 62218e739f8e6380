"""Names of data sets, which are bytes, and of classes, whose numbers agree."""

import os
import pickle
import shutil
import struct
import subprocess
import zlib

import forebay
import numpy as np
import pytest
from conftest import read_lmdb, write_lmdb

#: Names that mean something else in patterns, lists and texts of fields, or are no text.
ODD = [
    b"a[1].npy",
    b"[a-z].npy",
    b"with space.npy",
    b"a,b.npy",
    b"a#b.npy",
    b"a&b.npy",
    b"x=1.npy",
    b"x=1&y=2.npy",
    b"{a,b}.npy",
    b"{1.npy",
    b"star*?.npy",
    b"back\\[slash.npy",
    b"caf\xe9.npy",
    "日本.npy".encode(),
]


class BytesPath:
    """An os.PathLike whose path is bytes."""

    def __init__(self, path):
        self.path = path

    def __fspath__(self):
        return self.path


@pytest.fixture
def arrays(tmp_path):
    """A file of two rows under each odd name, beside one that patterns would match."""
    for number, name in enumerate([*ODD, b"a1.npy", b"b.npy"]):
        with open(os.path.join(os.fsencode(tmp_path), name), "wb") as file:
            np.save(file, np.array([[number, 1], [number, 2]], np.int32))
    return os.fsencode(tmp_path)


@pytest.mark.parametrize("number", range(len(ODD)))
def test_a_file_that_exists_is_named_as_it_is(arrays, number):
    path = os.path.join(arrays, ODD[number])
    plain = os.path.join(arrays, b"b.npy")
    for name in (path, os.fsdecode(path), BytesPath(path)):
        ds = forebay.Dataset(name)
        assert np.array_equal(ds[:]["data"], [[number, 1], [number, 2]])
        assert pickle.loads(pickle.dumps(ds))[1]["data"][0] == number
        assert os.fsencode(ds.path) == path
        assert isinstance(ds.info()["path"], str)
        both = forebay.Dataset([plain, name, plain])
        assert (
            both[:]["data"][:, 0].tolist() == [len(ODD) + 1] * 2 + [number] * 2 + [len(ODD) + 1] * 2
        )
        beside = forebay.Dataset({"x": name, "y": plain})
        assert beside[1]["x"].tolist() == [number, 2]
        assert beside[1]["y"][0] == len(ODD) + 1
    with forebay.Loader([path, plain], batch_size=2, order="sequential", ranks="single") as loader:
        assert [batch["data"][0, 0] for batch in loader] == [number, len(ODD) + 1]
        assert isinstance(loader.explain(), str)


def test_marks_are_escaped_and_folders_are_no_patterns(arrays):
    folder = os.path.join(arrays, b"run[1],a#2&b={c}")
    os.mkdir(folder)
    for name in (b"x1.npy", b"x2.npy"):
        shutil.copy(os.path.join(arrays, b"a[1].npy"), os.path.join(folder, name))
    assert len(forebay.Dataset(os.path.join(folder, b"x*.npy"))) == 4
    assert len(forebay.Dataset(os.path.join(folder, b"x{1,2}.npy") + b"#v=data")[0]["v"]) == 2
    text = os.path.join(folder, b"x1.npy") + b"," + os.path.join(folder, b"x2.npy")
    assert len(forebay.Dataset(text)) == 4
    sides = b"x=" + os.path.join(folder, b"x1.npy") + b"&y=" + os.path.join(folder, b"x2.npy")
    assert len(forebay.Dataset(sides)) == 2
    for escaped, number in (
        (rb"a\[1\].npy", 0),
        (rb"a\,b.npy", 3),
        (rb"a\#b.npy", 4),
        (rb"\{a\,b\}.npy", 8),
    ):
        ds = forebay.Dataset(os.path.join(arrays, escaped))
        assert ds[0]["data"][0] == number
        two = forebay.Dataset(os.path.join(arrays, escaped) + b"," + os.path.join(arrays, b"b.npy"))
        assert two[0]["data"][0] == number
    comma, plain = os.path.join(arrays, b"a,b.npy"), os.path.join(arrays, b"b.npy")
    for text in (comma + b"," + plain, plain + b"," + comma, comma + b"," + comma):
        assert len(forebay.Dataset(text)) == 4
    ampersand = os.path.join(arrays, b"a&b.npy")
    beside = forebay.Dataset(b"x=" + ampersand + b"&y=" + plain + b"&z=" + ampersand)
    assert [beside[0][side][0] for side in "xyz"] == [5, len(ODD) + 1, 5]
    os.unlink(os.path.join(arrays, b"a[1].npy"))
    pattern = forebay.Dataset(os.path.join(arrays, b"a[1].npy"))
    assert pattern[0]["data"][0] == len(ODD)
    with pytest.raises(forebay.NotFoundError):
        forebay.Dataset(os.path.join(arrays, rb"a\[1\].npy"))


def test_errors_tell_names_that_are_no_text(arrays):
    path = os.path.join(arrays, b"gone\xff.npy")
    with pytest.raises(forebay.NotFoundError) as caught:
        forebay.Dataset(path)
    assert "gone" in str(caught.value)
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00")
    with pytest.raises(forebay.CorruptError) as caught:
        forebay.Dataset(path)
    assert os.fsencode(caught.value.file) == path


def png(value):
    def chunk(kind, data):
        return (
            struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        )

    rows = (b"\0" + bytes([value]) * 6) * 2
    header = struct.pack(">IIBBBBB", 2, 2, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + chunk(b"IDAT", zlib.compress(rows))
        + chunk(b"IEND", b"")
    )


@pytest.fixture
def splits(tmp_path):
    """A training set of four classes and a test set of two of them, packed and as folders."""
    for split, names in (
        ("train", b"ant bee cat\xff dog"),
        ("test", b"bee dog"),
        ("head", b"ant bee"),
    ):
        for name in names.split():
            os.makedirs(os.path.join(os.fsencode(tmp_path), split.encode(), name))
            with open(
                os.path.join(os.fsencode(tmp_path), split.encode(), name, b"1.png"), "wb"
            ) as file:
                file.write(png(len(name)))
    for split in ("train", "test", "head"):
        pack(tmp_path, split, split + ".lmdb")
    pack(tmp_path, "test", "agrees.lmdb", "--classes", tmp_path / "train.lmdb")
    return tmp_path


def pack(folder, source, packed, *options):
    command = ["forebay", "pack", folder / source, folder / packed, "--from", "folder", *options]
    subprocess.run(command, check=True, capture_output=True)


def test_classes_have_names(splits):
    names = ["ant", "bee", os.fsdecode(b"cat\xff"), "dog"]
    for place in ("train", "train.lmdb", "agrees.lmdb"):
        assert forebay.Dataset(splits / place).classes == names
    with forebay.Loader(splits / "train.lmdb", batch_size=2, ranks="single") as loader:
        assert loader.classes == names
    ds = forebay.Dataset(splits / "agrees.lmdb")
    assert [names[label] for label in ds[:]["label"].ravel()] == ["bee", "dog"]
    assert forebay.Dataset(splits / "test.lmdb").classes == ["bee", "dog"]


@pytest.mark.parametrize("kind", [".lmdb", ""])
def test_a_test_set_that_is_numbered_otherwise_is_refused(splits, kind):
    train = splits / f"train{kind}"
    with forebay.Loader(train, batch_size=2, ranks="single") as loader:
        for wanted in (train, os.fsencode(train), forebay.Dataset(train), loader, loader.classes):
            for test in ("agrees.lmdb", "head", "head.lmdb"):
                forebay.Dataset(splits / test, classes=wanted)
            with pytest.raises(forebay.UsageError, match="'bee' is number 0 here, and number 1"):
                forebay.Dataset(splits / f"test{kind}", classes=wanted)
            with pytest.raises(forebay.UsageError, match="numbered otherwise"):
                forebay.Loader(
                    splits / f"test{kind}",
                    batch_size=2,
                    ranks="single",
                    classes=wanted,
                    order="sequential",
                )
    with forebay.Loader(
        splits / "agrees.lmdb", batch_size=2, ranks="single", classes=train
    ) as test:
        assert next(iter(test))["label"].ravel().tolist() in ([1, 3], [3, 1])
    with pytest.raises(forebay.UsageError, match=r"write these names to FILE.*--classes FILE"):
        forebay.Dataset(splits / f"test{kind}", classes=["ant", "bee"])
    with pytest.raises(forebay.UsageError, match="missing"):
        forebay.Dataset(train, classes=splits / "head.lmdb")
    write_lmdb(splits / "unnamed.lmdb", read_lmdb(splits / "train.lmdb"))
    unnamed = forebay.Dataset(splits / "unnamed.lmdb")
    for test, wanted in (("unnamed.lmdb", train), ("train.lmdb", unnamed)):
        with pytest.raises(forebay.UsageError, match="does not name its classes"):
            forebay.Dataset(splits / test, classes=wanted)


def test_what_is_left_out_is_told_once(splits, caplog):
    root = os.path.join(os.fsencode(splits), b"gel\xf6scht")
    os.rename(splits / "train", root)
    with open(os.path.join(root, b"ant", b"notes\xff.txt"), "wb") as file:
        file.write(b"no image")
    os.symlink("/nowhere", os.path.join(root, b"ant", b"2.png"))
    for _ in range(2):
        ds = forebay.Dataset(root)
        forebay.Loader(root, batch_size=2, ranks="single").close()
    line = f"{os.fsdecode(root)}: 2 left out: 1 not an image, 1 broken link; such as "
    assert [record.getMessage().startswith(line) for record in caplog.records] == [True]
    assert ds.info()["notes"][0].startswith("2 left out")
