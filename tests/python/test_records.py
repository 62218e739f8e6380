"""Zip archives, TFRecord files and tokens: what zipfile, tfrecord and NumPy say of them."""

import struct
import zipfile

import forebay
import numpy as np
import pytest

COUNT = 50


@pytest.fixture(scope="module")
def archive(data):
    rng = np.random.default_rng(5)
    with zipfile.ZipFile(data / "a.zip", "w") as file:
        for i in range(COUNT):
            how = zipfile.ZIP_DEFLATED if i % 2 else zipfile.ZIP_STORED
            file.writestr(f"d/{i:03d}.bin", rng.bytes(int(rng.integers(0, 3000))), how)
            file.writestr(f"d/{i:03d}.cls", str(i % 7), how)
    return data / "a.zip"


def test_a_zip_archive_is_what_zipfile_reads(archive):
    ds = forebay.Dataset(archive)
    with zipfile.ZipFile(archive) as file:
        for i in range(COUNT):
            assert bytes(ds[i]["bin"]) == file.read(f"d/{i:03d}.bin")
            assert int(ds[i]["cls"]) == i % 7
    assert ds.key(3) == b"d/003"
    for batch in forebay.Loader(archive, batch_size=8, order="shuffled", end="exact"):
        for i, sample in enumerate(batch["sample"]):
            assert batch["bin"][i].tobytes() == bytes(ds[int(sample)]["bin"])


def test_what_is_left_out_is_logged_once(data, caplog):
    for i in range(4):
        path = data / "told" / "ab"[i % 2] / f"{i}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"no image")
    (data / "told" / "README").write_text("not one")
    for _ in range(2):
        assert len(forebay.Dataset(data / "told", decode=False)) == 4
        forebay.Loader(data / "told", batch_size=2, codec="bytes").close()
    told = [record for record in caplog.records if record.name == "forebay"]
    assert [record.levelname for record in told] == ["WARNING"]
    assert "README" in told[0].getMessage() or "left out" in told[0].getMessage()
    assert "--" not in told[0].getMessage()


def test_images_in_folders_of_an_archive_are_labelled(data):
    names = ["r/dog/2.png", "r/cat/1.jpg", "r/dog/more/1.jpg", "r/cat/0.jpg"]
    with zipfile.ZipFile(data / "c.zip", "w") as file:
        for name in names:
            file.writestr(name, name)
        file.writestr("README", "not one")
    ds = forebay.Dataset(data / "c.zip", decode=False)
    expected = ["cat/0.jpg", "cat/1.jpg", "dog/2.png", "dog/more/1.jpg"]
    assert ds.keys() == [key.encode() for key in expected]
    assert [bytes(ds[i]["label"]) for i in range(4)] == [b"0", b"0", b"1", b"1"]
    assert [bytes(ds[i]["image"]).decode() for i in range(4)] == [f"r/{key}" for key in expected]
    assert ds.info()["labels"] == ["cat", "dog"]


def test_only_hidden_members_of_an_archive_are_no_data(data):
    with zipfile.ZipFile(data / "d.zip", "w") as archive:
        for name in ("./a.txt", "x/../b.txt", "c.txt", ".hidden.txt", "x/.git/d.txt"):
            archive.writestr(name, name)
    found = forebay.Dataset(data / "d.zip", codec="bytes", decode=False)
    assert len(found) == 3


def test_npz_files_are_fields(data):
    x = np.arange(COUNT * 6, dtype=">f4").reshape(COUNT, 2, 3)
    y = np.arange(COUNT) % 7
    for save in (np.savez, np.savez_compressed):
        save(data / "a.npz", x=x, y=y)
        for batch in forebay.Loader(data / "a.npz", batch_size=8, order="shuffled", end="exact"):
            assert np.array_equal(batch["x"], x[batch["sample"]])
            assert np.array_equal(batch["y"], y[batch["sample"]])


def test_samples_without_values_are_told_by_their_shape(data):
    np.save(data / "n.npy", np.zeros((4, 0)))
    for open_it in (forebay.Dataset, lambda path: forebay.Loader(path, batch_size=2)):
        with pytest.raises(forebay.UnsupportedError, match=r"data:f64\[0\]"):
            open_it(data / "n.npy")
    assert len(forebay.Dataset(data / "n.npy", codec="bytes", decode=False)) == 4
    np.savez(data / "n.npz", none=np.zeros((4, 0)), y=np.arange(4))
    with pytest.raises(forebay.UnsupportedError, match=r"'none' have no values.*none:f64\[0\]"):
        forebay.Dataset(data / "n.npz")
    assert forebay.Dataset(f"{data}/n.npz#y")[3]["y"] == 3


def test_arrays_beside_each_other_are_fields(data):
    x = np.arange(COUNT * 6, dtype="f4").reshape(COUNT, 2, 3)
    y = np.arange(COUNT) % 7
    np.save(data / "x.npy", x)
    np.save(data / "y.npy", y)
    paths = {"x": data / "x.npy", "y": data / "y.npy"}
    for batch in forebay.Loader(paths, batch_size=8, order="shuffled", end="exact"):
        assert np.array_equal(batch["x"], x[batch["sample"]])
        assert np.array_equal(batch["y"], y[batch["sample"]])
    np.save(data / "y.npy", y[1:])
    with pytest.raises(forebay.UsageError, match=r"'x' has 50 samples but 'y' has 49"):
        forebay.Dataset(paths)


def test_data_sets_of_one_sample_each_are_samples(data):
    h5py = pytest.importorskip("h5py")
    images = np.random.default_rng(7).integers(0, 99, (COUNT, 4, 3)).astype(">u2")
    with h5py.File(data / "s.h5", "w") as file:
        for i in range(COUNT):
            how = {"compression": "lzf"} if i % 2 else {}
            file.create_dataset(f"{i}/image", data=images[i], **how)
            file[f"{i}/label"] = i * 3
            file[f"track_{i}"] = np.arange(i, dtype="f4")
    fields = f"{data / 's.h5'}#*/image,*/label"
    for options in ({"order": "strided"}, {"order": "shuffled"}, {"order": "grouped", "group": 7}):
        seen = 0
        for batch in forebay.Loader(fields, batch_size=8, epochs=1, **options):
            ids = batch["sample"]
            assert np.array_equal(batch["image"], images[ids])
            assert np.array_equal(batch["label"], ids * 3)
            seen += len(ids)
        assert seen >= COUNT - 8
    tracks = forebay.Dataset(f"{data / 's.h5'}#track_*")
    assert len(tracks) == COUNT
    for i in (0, 9, 10, COUNT - 1):
        assert tracks.key(i) == str(i).encode()
        assert np.array_equal(tracks[i]["value"], np.arange(i, dtype="f4"))


@pytest.fixture(scope="module")
def records(data):
    tfrecord = pytest.importorskip("tfrecord")
    rng = np.random.default_rng(6)
    samples = []
    for file in range(2):
        writer = tfrecord.TFRecordWriter(str(data / f"r-{file}.tfrecord"))
        for i in range(COUNT // 2):
            sample = {
                "image/encoded": rng.bytes(int(rng.integers(1, 3000))),
                "label": file * 100 + i,
                "point": rng.random(3).astype(np.float32),
                "ids": rng.integers(-9, 1 << 40, i % 5),
            }
            kinds = {"image/encoded": "byte", "label": "int", "point": "float", "ids": "int"}
            writer.write({name: (value, kinds[name]) for name, value in sample.items()})
            samples.append(sample)
        writer.close()
    return data / "r-{0..1}.tfrecord", samples


def check(found, sample):
    assert bytes(found["image.encoded"]) == sample["image/encoded"]
    assert found["label"] == sample["label"]
    assert found["point"].dtype == np.float32 and np.array_equal(found["point"], sample["point"])
    assert found["ids"].dtype == np.int64 and np.array_equal(found["ids"], sample["ids"])


def test_records_are_arrays(records):
    path, samples = records
    ds = forebay.Dataset(path)
    assert len(ds) == COUNT
    for i in range(COUNT):
        check(ds[i], samples[i])
    for batch in forebay.Loader(path, batch_size=8, order="shuffled", end="exact"):
        assert batch["label"].dtype == np.int64 and batch["point"].shape[1:] == (3,)
        for i, sample in enumerate(batch["sample"]):
            names = ("image.encoded", "label", "point", "ids")
            check({name: batch[name][i] for name in names}, samples[sample])


def test_records_are_what_tfrecord_reads(records):
    tfrecord = pytest.importorskip("tfrecord")
    path, _ = records
    ds = forebay.Dataset(path)
    read = [
        record
        for file in range(2)
        for record in tfrecord.reader.tfrecord_loader(
            str(path).replace("{0..1}", str(file)), None, None
        )
    ]
    assert len(read) == COUNT
    for i, record in enumerate(read):
        assert bytes(ds[i]["image.encoded"]) == bytes(record["image/encoded"])
        assert np.array_equal(np.atleast_1d(ds[i]["label"]), record["label"])
        assert np.array_equal(ds[i]["point"], record["point"])


def test_features_are_chosen_and_may_have_any_length(records):
    path, samples = records
    ds = forebay.Dataset(f"{path}#xyz=point[],label")
    assert isinstance(ds[:3]["xyz"], forebay.Ragged)
    assert np.array_equal(ds[1]["xyz"], samples[1]["point"])
    with pytest.raises(forebay.NotFoundError, match="image/encoded"):
        forebay.Dataset(f"{path}#nothing")


@pytest.fixture(scope="module")
def stream(data):
    tokens = np.random.default_rng(7).integers(0, 50000, 1003).astype(np.uint16)
    tokens.tofile(data / "t.bin")
    np.save(data / "t.npy", tokens.astype(">i4"))
    sizes = [500, 3, 500]
    tokens.astype(np.int32).tofile(data / "m.bin")
    with open(data / "m.idx", "wb") as index:
        index.write(b"MMIDIDX\0\0" + struct.pack("<QBQQ", 1, 4, 3, 4))
        index.write(np.array(sizes, np.int32).tobytes())
        index.write((np.cumsum([0, *sizes[:-1]]) * 4).astype(np.int64).tobytes())
        index.write(np.arange(4, dtype=np.int64).tobytes())
    return tokens


@pytest.mark.parametrize("name", ["t.bin", "t.npy", "m.bin"])
@pytest.mark.parametrize("step", [None, 5, 20])
def test_windows_are_what_numpy_cuts(data, stream, name, step):
    options = {"length": 16, "schema": "u16" if name == "t.bin" else None}
    if step is not None:
        options["step"] = step
    windows = np.lib.stride_tricks.sliding_window_view(stream, 16)[:: step or 16]
    ds = forebay.Dataset(data / name, **options)
    assert np.array_equal(ds[:]["tokens"], windows)
    seen = []
    for batch in forebay.Loader(
        data / name, batch_size=8, order="shuffled", end="exact", **options
    ):
        assert np.array_equal(batch["tokens"], windows[batch["sample"]])
        seen.extend(batch["sample"].tolist())
    assert sorted(seen) == list(range(len(windows)))


def test_an_index_that_does_not_fit_its_tokens_is_refused(data, stream):
    with open(data / "m.bin", "ab") as file:
        file.write(bytes(4))
    with pytest.raises(forebay.CorruptError, match=r"m\.idx lists"):
        forebay.Dataset(data / "m.bin", length=16)


def test_the_type_of_tokens_has_to_be_known(data, stream):
    with pytest.raises(forebay.UsageError, match="schema u16"):
        forebay.Dataset(data / "t.bin", length=16)
    with pytest.raises(forebay.UsageError, match="length"):
        forebay.Dataset(data / "m.bin")
