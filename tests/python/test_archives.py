"""Tar shards and folders of files: what tarfile, torchvision and webdataset say of them."""

import io
import tarfile
import zipfile

import forebay
import numpy as np
import pytest
from conftest import write_lmdb

COUNT = 50


@pytest.fixture(scope="module")
def shards(data):
    """Two shards of 25 samples: bytes of any size, a class, and a part with a dot in its name."""
    rng = np.random.default_rng(3)
    folder = data / "shards"
    folder.mkdir()
    samples = []
    for shard in range(2):
        with tarfile.open(folder / f"s-{shard:03d}.tar", "w") as archive:
            for i in range(COUNT // 2):
                parts = {
                    "bin": rng.bytes(int(rng.integers(0, 3000))),
                    "cls": str(i % 7).encode(),
                    "seg.bin": rng.bytes(i),
                }
                for name, content in parts.items():
                    member = tarfile.TarInfo(f"{shard}{i:05d}.{name}")
                    member.size = len(content)
                    archive.addfile(member, io.BytesIO(content))
                samples.append((f"{shard}{i:05d}", parts))
    return str(folder / "s-{000..001}.tar"), samples


def test_shards_are_looked_up(shards):
    path, samples = shards
    ds = forebay.Dataset(path)
    assert len(ds) == COUNT
    assert ds.keys() == [key.encode() for key, _ in samples]
    for i in (0, 31, COUNT - 1):
        assert bytes(ds[i]["bin"]) == samples[i][1]["bin"]
        assert bytes(ds[i]["seg.bin"]) == samples[i][1]["seg.bin"]
        assert int(ds[i]["cls"]) == int(samples[i][1]["cls"])
    assert [int(c) for c in ds[:]["cls"]] == [int(parts["cls"]) for _, parts in samples]


@pytest.mark.parametrize("order", ["shuffled", "sequential"])
def test_shards_are_loaded(shards, order):
    path, samples = shards
    loader = forebay.Loader(f"{path}#label=cls,bin", batch_size=8, order=order, end="exact")
    for _ in range(2):
        seen = []
        for batch in loader:
            for i, sample in enumerate(batch["sample"]):
                assert batch["bin"][i].tobytes() == samples[sample][1]["bin"]
                assert batch["label"][i] == int(samples[sample][1]["cls"])
                seen.append(int(sample))
        assert sorted(seen) == list(range(COUNT))


def test_shards_are_what_webdataset_reads(shards):
    webdataset = pytest.importorskip("webdataset")
    path, samples = shards
    read = list(webdataset.WebDataset(path, shardshuffle=False))
    assert [sample["__key__"] for sample in read] == [key for key, _ in samples]
    ds = forebay.Dataset(path, decode=False)
    for i, sample in enumerate(read):
        for part in ("bin", "cls", "seg.bin"):
            assert bytes(ds[i][part]) == sample[part]


@pytest.fixture(scope="module")
def folder(data):
    rng = np.random.default_rng(4)
    root = data / "folder"
    for name in ("b/1.jpg", "b/deep/0.PNG", "a/2.jpg", "a/10.jpg", "c d/x.jpeg", "a/.hidden.jpg"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(rng.bytes(int(rng.integers(1, 2000))))
    return root


def test_a_folder_is_in_the_order_of_its_names(folder):
    ds = forebay.Dataset(folder, decode=False)
    keys = ["a/10.jpg", "a/2.jpg", "b/1.jpg", "b/deep/0.PNG", "c d/x.jpeg"]
    assert ds.keys() == [key.encode() for key in keys]
    for i, key in enumerate(keys):
        assert bytes(ds[i]["image"]) == (folder / key).read_bytes()
    assert [bytes(ds[i]["label"]) for i in range(5)] == [b"0", b"0", b"1", b"1", b"2"]
    assert ds.info()["labels"] == ["a", "b", "c d"]
    images = forebay.Dataset(f"{folder}#label")
    assert [int(images[i]["number"]) for i in range(5)] == [0, 0, 1, 1, 2]


def test_a_folder_is_what_torchvision_reads(folder):
    datasets = pytest.importorskip("torchvision.datasets")
    expected = datasets.ImageFolder(str(folder)).samples
    expected = [(path, label) for path, label in expected if "/." not in path]
    ds = forebay.Dataset(folder, decode=False)
    found = [
        (str(folder / key.decode()), int(bytes(ds[i]["label"]))) for i, key in enumerate(ds.keys())
    ]
    assert found == expected


def image(value):
    """A PGM file that decodes nowhere is enough where nothing is decoded."""
    return b"P5 1 1 255 " + bytes([value])


def zipped(path, members, **options):
    with zipfile.ZipFile(path, "w", **options) as archive:
        for name, content in members:
            archive.writestr(name, content)
    return path


def test_folders_without_images_are_classes_of_a_zip_archive_as_of_a_folder(tmp_path):
    members = [("a/", b""), ("b/1.pgm", image(1)), ("d/notes.txt", b"-"), ("e/1.pgm", image(3))]
    members += [("__MACOSX/", b""), (".git/", b""), ("f/deep/", b"")]
    archive = zipped(tmp_path / "x.zip", members)
    with zipfile.ZipFile(archive) as reader:
        reader.extractall(tmp_path / "folder")
    read = [forebay.Dataset(path, decode=False) for path in (archive, tmp_path / "folder")]
    for ds in read:
        assert ds.classes == ["a", "b", "d", "e", "f"]
        assert [bytes(ds[i]["label"]) for i in range(len(ds))] == [b"1", b"3"]
        notes = [note for note in ds.info()["notes"] if "has a number and no samples" in note]
        assert [note.split("'")[1] for note in notes] == ["a", "d", "f"]
    assert read[0].keys() == read[1].keys()


def test_splits_that_are_taken_for_classes_are_told(tmp_path):
    members = [(f"{split}/{name}/1.pgm", image(1)) for split in ("train", "test") for name in "ab"]
    archive = zipped(tmp_path / "x.zip", members)
    with zipfile.ZipFile(archive) as reader:
        reader.extractall(tmp_path / "folder")
    for path, name in ((archive, "zip"), (tmp_path / "folder", "folder")):
        ds = forebay.Dataset(path, format=name, decode=False)
        assert ds.classes == ["test", "train"]
        assert [
            note for note in ds.info()["notes"] if "'test', 'train' are taken for classes" in note
        ]
    assert forebay.Dataset(tmp_path / "folder" / "train", decode=False).classes == ["a", "b"]


def test_a_member_of_a_zip_archive_that_is_there_twice_is_refused(tmp_path):
    members = [("a/1.pgm", image(1)), ("b/1.pgm", image(2)), ("a/1.pgm", image(3))]
    with pytest.warns(UserWarning, match="Duplicate"):
        zipped(tmp_path / "x.zip", members)
    with pytest.raises(forebay.CorruptError, match=r"x\.zip.*'a/1\.pgm' is there twice"):
        forebay.Dataset(tmp_path / "x.zip")
    # In archives of their own they are samples of their own.
    for name in "yz":
        zipped(tmp_path / f"{name}.zip", members[:2])
    assert len(forebay.Dataset(tmp_path / "[yz].zip", decode=False)) == 4


def test_parts_that_are_taken_for_classes_are_told(tmp_path):
    archive = zipped(
        tmp_path / "x.zip", [(f"{kind}/1.pgm", image(1)) for kind in ("images", "masks")]
    )
    with zipfile.ZipFile(archive) as reader:
        reader.extractall(tmp_path / "folder")
    for path in (archive, tmp_path / "folder"):
        ds = forebay.Dataset(path, decode=False)
        (note,) = [note for note in ds.info()["notes"] if "are taken for classes" in note]
        assert note.endswith("put them into a tar archive as NAME.images.png, NAME.masks.png")


def tarred(path, members, **options):
    with tarfile.open(path, "w", **options) as archive:
        for name, content in members:
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return path


def test_archives_that_were_joined_by_bytes_are_told(tmp_path):
    members = [("1.bin", b"one"), ("2.bin", b"two")]
    for make, end, word, first in (
        (tarred, "tar", "behind the end", b"one"),
        (zipped, "zip", "in front", b"x"),
    ):
        content = make(tmp_path / f"a.{end}", members).read_bytes()
        other = make(tmp_path / f"b.{end}", [("3.bin", b"x"), ("4.bin", b"y")]).read_bytes()
        (tmp_path / f"c.{end}").write_bytes(content + other)
        ds = forebay.Dataset(tmp_path / f"c.{end}")
        assert len(ds) == 2  # as tarfile and zipfile have it
        assert bytes(ds[0]["value"]) == first
        (note,) = ds.info()["notes"]
        assert f"{word} of an archive are left out" in note
    (tmp_path / "zeros.tar").write_bytes((tmp_path / "a.tar").read_bytes() + bytes(20480))
    (tmp_path / "program.zip").write_bytes(b"#!/bin/sh\n" + (tmp_path / "a.zip").read_bytes())
    for name in ("zeros.tar", "program.zip"):
        assert forebay.Dataset(tmp_path / name).info().get("notes", []) == []


def test_two_arrays_of_one_name_are_refused(tmp_path):
    arrays = []
    for begin in (0, 10):
        array = io.BytesIO()
        np.save(array, np.arange(begin, begin + 3))
        arrays.append(("x.npy", array.getvalue()))
    with pytest.warns(UserWarning, match="Duplicate"):
        zipped(tmp_path / "x.npz", arrays)
    for text in ("x.npz", "x.npz#x"):
        with pytest.raises(forebay.CorruptError, match=r"x\.npz.*'x\.npy' is there twice"):
            forebay.Dataset(tmp_path / text)


def test_what_systems_leave_behind_is_no_data_of_any_archive(tmp_path):
    members = [("1.bin", b"one"), ("1.cls", b"0"), ("2.bin", b"two"), ("2.cls", b"1")]
    behind = ["__MACOSX/._1.bin", "__MACOSX/x.bin", ".git/3.bin", "._2.bin", ".DS_Store"]
    everything = [*members[:2], *[(name, b"-") for name in behind], *members[2:]]
    zipped(tmp_path / "x.zip", everything)
    tarred(tmp_path / "x.tar", everything)
    for name in ("x.zip", "x.tar"):
        ds = forebay.Dataset(tmp_path / name)
        assert [bytes(ds[i]["bin"]) for i in range(len(ds))] == [b"one", b"two"]
        assert [int(ds[i]["cls"]) for i in range(2)] == [0, 1]
        assert ds.info()["notes"] == [
            "5 hidden members are left out, the first is '__MACOSX/._1.bin'"
        ]


def test_an_archive_without_samples_is_an_error_as_a_folder_is(tmp_path):
    zipped(tmp_path / "x.zip", [])
    zipped(tmp_path / "hidden.zip", [(".x", b"-")])
    tarfile.open(tmp_path / "x.tar", "w").close()
    for name, word in [("x.zip", ""), ("x.tar", ""), ("hidden.zip", "1 hidden members")]:
        with pytest.raises(forebay.NotFoundError, match=f"{name}.*holds no sample.*{word}"):
            forebay.Dataset(tmp_path / name)


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
@pytest.mark.parametrize("name", ["arrays", "arrays.zip", "arrays.bin"])
def test_arrays_of_savez_are_arrays_whatever_their_file_is_called(tmp_path, save, name):
    x, y = np.arange(12, dtype=np.float32).reshape(4, 3), np.arange(4)
    with open(tmp_path / name, "wb") as file:
        save(file, x=x, y=y)
    ds = forebay.Dataset(tmp_path / name)
    assert len(ds) == 4
    np.testing.assert_array_equal(ds[:]["x"], x)
    np.testing.assert_array_equal(ds[:]["y"], y)


def test_arrays_in_an_archive_that_savez_has_not_written_are_members(tmp_path):
    array = io.BytesIO()
    np.save(array, np.arange(3))
    zipped(tmp_path / "x.zip", [(f"{i}.npy", array.getvalue()) for i in range(3)])
    ds = forebay.Dataset(tmp_path / "x.zip", decode=False)
    assert [bytes(ds[i]["value"]) for i in range(len(ds))] == [array.getvalue()] * 3


def test_a_pointer_of_git_lfs_is_named(tmp_path):
    pointer = b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 12345\n"
    (tmp_path / "data.bin").write_bytes(pointer)
    with pytest.raises(forebay.UnsupportedError, match=r"pointer of Git LFS.*git lfs pull"):
        forebay.Dataset(tmp_path / "data.bin")


def png(value):
    pillow = pytest.importorskip("PIL.Image")
    buffer = io.BytesIO()
    pillow.new("RGB", (5, 4), (value, 0, 0)).save(buffer, "PNG")
    return buffer.getvalue()


def stored(kind, path, images):
    """A data set of these images, with numbers beside them, and the name of their field."""
    if kind == "folder":
        for i, content in enumerate(images):
            file = path / "ab"[i * 2 // len(images)] / f"{i:03d}.png"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)
        return path, "image"
    if kind == "classes.zip":
        members = [(f"{'ab'[i * 2 // len(images)]}/{i:03d}.png", x) for i, x in enumerate(images)]
        return zipped(path, members), "image"
    if kind == "lmdb":
        records = [(b"%08d" % i, content) for i, content in enumerate(images)]
        return write_lmdb(path, records), "image"
    if kind == "grouped.lmdb":
        records = [(b"image-%08d" % i, content) for i, content in enumerate(images)]
        records += [(b"label-%08d" % i, b"a caption") for i in range(len(images))]
        return write_lmdb(path, sorted(records)), "image"
    members = []
    for i, content in enumerate(images):
        members += [(f"{i:03d}.x.jpg", content), (f"{i:03d}.txt", b"a caption")]
    return (tarred if kind == "tar" else zipped)(path, members), "x.jpg"


def equal_images(found, ids, images):
    from PIL import Image

    expected = [np.asarray(Image.open(io.BytesIO(images[i]))).transpose(2, 0, 1) for i in ids]
    return found.dtype == np.uint8 and np.array_equal(found, expected)


@pytest.mark.parametrize("empty", [b"", b"<html>404"])
@pytest.mark.parametrize("bad", [[0], [0, 1, 2, 3, 4], [0, 1, 2, 3, 4, 5, 6, 7, 8], [4]])
@pytest.mark.parametrize("kind", ["folder", "classes.zip", "lmdb", "grouped.lmdb", "tar", "zip"])
def test_a_bad_image_makes_no_bytes_of_the_others(tmp_path, kind, bad, empty):
    images = [empty if i in bad else png(i) for i in range(10)]
    path, name = stored(kind, tmp_path / "set", images)
    good = [i for i in range(10) if i not in bad]
    for options in ({}, {"codec": "auto:rgb"}):
        ds = forebay.Dataset(path, **options)
        assert equal_images(ds[good][name], good, images)
        assert ds[good[-1]][name].shape == (3, 4, 5)
        for i in bad:
            with pytest.raises(forebay.CorruptError) as caught:
                ds[i]
            assert caught.value.sample == i
            assert "set" in str(caught.value)
        with pytest.raises(forebay.CorruptError) as caught:
            list(forebay.Loader(path, batch_size=4, order="sequential", end="exact", **options))
        assert caught.value.sample == bad[0]
        loader = forebay.Loader(path, batch_size=4, on_error="skip", end="exact", **options)
        seen = []
        for batch in loader:
            ids = batch["sample"].tolist()
            assert len(ids) == 0 or equal_images(batch[name], ids, images)
            seen += ids
        assert sorted(seen) == good
        assert sorted(i for i, _, _ in loader.skipped()) == bad


def test_samples_that_are_left_out_need_not_decode(tmp_path):
    images = [png(i) for i in range(10)]
    images[0] = b"<html>404"
    path, _ = stored("folder", tmp_path / "set", images)
    ids = list(range(1, 10))
    loader = forebay.Loader(path, batch_size=3, order="listed", ids=ids, end="exact")
    assert sorted(i for batch in loader for i in batch["sample"].tolist()) == ids


def test_what_is_called_an_image_and_is_read_by_nobody_is_named(tmp_path):
    path, name = stored("tar", tmp_path / "set", [image(i) for i in range(3)])
    with pytest.raises(forebay.CorruptError, match=r"set: sample 0: key 000: part 'x.jpg'"):
        forebay.Dataset(path)
    assert forebay.Dataset(path, decode=False)[2][name].tobytes() == image(2)
    assert forebay.Dataset(path, codec=f"{name}=bytes")[2][name].tobytes() == image(2)


def cut_arrays(kind, path, parts):
    values = [np.array([i, 2], "f4").tobytes() for i in range(4)]
    values[1] = values[1][:7]
    if kind == "lmdb":
        return write_lmdb(path, [(b"%08d" % i, value) for i, value in enumerate(values)])
    members = []
    for i, value in enumerate(values):
        members.append((f"{i}.emb", value))
        if parts:
            members.append((f"{i}.cls", b"1"))
    return tarred(path, members)


@pytest.mark.parametrize("kind, parts", [("lmdb", False), ("tar", False), ("tar", True)])
def test_a_cut_array_does_not_shift_those_behind_it(tmp_path, kind, parts):
    path = cut_arrays(kind, tmp_path / "set", parts)
    name = "emb" if parts else "value"
    codec = "emb=f32" if parts else "f32"
    wrong = rf"set: sample 1: key .*{'part .emb.: ' if parts else ''}7 bytes are no array of f32"
    for fields in (None, [name]):
        ds = forebay.Dataset(path, fields, codec=codec)
        for i in (0, 2, 3):
            assert ds[i][name].tolist() == [i, 2]
        assert [value.tolist() for value in ds[2:4][name]] == [[2, 2], [3, 2]]
        for index in (1, slice(0, 4), [3, 1]):
            with pytest.raises(forebay.CorruptError, match=wrong):
                ds[index]
        with pytest.raises(forebay.CorruptError, match=wrong):
            list(forebay.Loader(forebay.Dataset(path, fields, codec=codec), batch_size=4))
        loader = forebay.Loader(
            forebay.Dataset(path, fields, codec=codec), batch_size=4, end="exact", on_error="skip"
        )
        found = {
            i: value.tolist()
            for batch in loader
            for i, value in zip(batch["sample"].tolist(), batch[name])
        }
        assert found == {i: [i, 2] for i in (0, 2, 3)}
        assert [i for i, _, _ in loader.skipped()] == [1]
    whole = forebay.Dataset(path, decode=False, codec=codec)
    assert whole[1][name].tobytes() == np.array([1, 2], "f4").tobytes()[:7]
