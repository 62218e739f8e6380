"""Dataset against the libraries that wrote the files; conventions; processes."""

import io
import multiprocessing
import os
import pickle
import struct
import subprocess
import sys
import uuid

import forebay
import h5py
import numpy as np
import pytest
from conftest import SAMPLES, read_lmdb, write_lmdb


def test_samples_one_by_one_and_together(images):
    path, pixels, labels = images
    ds = forebay.Dataset(path)
    assert len(ds) == SAMPLES
    assert [f.name for f in ds.schema] == ["image", "label"]
    for i in (0, 1, SAMPLES - 1, -1):
        np.testing.assert_array_equal(ds[i]["image"], pixels[i])
        assert ds[i]["label"] == labels[i]
    np.testing.assert_array_equal(ds[[5, 1, 5, 0]]["image"], pixels[[5, 1, 5, 0]])
    np.testing.assert_array_equal(ds[10:40:3]["label"], labels[10:40:3])
    np.testing.assert_array_equal(ds[np.arange(SAMPLES) % 2 == 0]["label"], labels[::2])
    assert len(ds[[]]["label"]) == 0
    assert [int(s["label"]) for s in ds] == labels.tolist()
    with pytest.raises(IndexError):
        ds[SAMPLES]
    with pytest.raises(IndexError):
        ds[[0, SAMPLES]]
    with pytest.raises(forebay.UsageError):
        forebay.Dataset(path, fields=["pixels"])
    assert list(forebay.Dataset(path, fields=["label"])[3]) == ["label"]


def test_keys_and_stored_values_equal_py_lmdb(values):
    path, _ = values
    records = read_lmdb(path)
    ds = forebay.Dataset(path, decode=False)
    assert ds.keys() == [key for key, _ in records]
    assert ds.key(7) == records[7][0]
    assert ds[:]["value"].tobytes() == [value for _, value in records]
    assert ds[0]["value"].size == 0  # a zero-length value
    assert bytes(ds[-1]["value"]) == records[-1][1]


def test_hdf5_equals_h5py(data):
    rng = np.random.default_rng(5)
    path = data / "dataset.h5"
    with h5py.File(path, "w") as file:
        file["a"] = rng.random((30, 3))
        file["b"] = rng.integers(0, 99, 30)
    ds = forebay.Dataset(f"{path}#x=a,y=b")
    with h5py.File(path) as file:
        np.testing.assert_array_equal(ds[[4, 4, 29, 0]]["x"], file["a"][:][[4, 4, 29, 0]])
        np.testing.assert_array_equal(ds[:]["y"], file["b"][:])


def test_metadata_records_are_no_samples(data):
    plain = [(f"{i:05d}".encode(), struct.pack("<i", i)) for i in range(20)]
    for name, extra in (
        ("without", []),
        ("length", [(b"__len__", pickle.dumps(20)), (b"__keys__", pickle.dumps([b"x"]))]),
        ("samples", [(b"num-samples", b"20")]),
    ):
        path = write_lmdb(data / f"{name}.lmdb", sorted(plain + extra))
        ds = forebay.Dataset(path, decode=False)
        assert ds.keys() == [key for key, _ in plain], name
        loader = forebay.Loader(path, batch_size=7, decode=False, end="exact", keys=True)
        assert sorted(key for b in loader for key in b["key"]) == [key for key, _ in plain]
    wrong = write_lmdb(data / "wrong.lmdb", sorted([*plain, (b"num-samples", b"21")]))
    with pytest.raises(forebay.Error, match=r"2[01].*2[01]"):
        forebay.Dataset(wrong)


KEYS = {
    "numbers": lambda i: f"{i}",
    "negative": lambda i: f"{i - 20}",
    "uuids": lambda i: str(uuid.UUID(int=i * 12345678901234567890123456789012345 % 2**128)),
    "hex": lambda i: f"{i * 2654435761 % 2**32:08x}",
    "paths": lambda i: f"n0144{i % 5:04}/n0144_{i}.JPEG",
    "folders": lambda i: f"{'abcd'[i % 4]}/{chr(97 + i % 26)}{chr(98 + i // 26)}",
    "words with numbers": lambda i: f"word{i}",
    "frames": lambda i: f"{i // 10:03}_{i % 10:08}",
    "splits": lambda i: f"{('train', 'val')[i % 2]}_{i // 2}",
    "words": lambda i: f"w{chr(97 + i % 26)}{chr(97 + i // 26)}",
}


@pytest.mark.parametrize("kind", KEYS)
def test_what_is_bookkeeping_beside_keys_of_any_kind(tmp_path, kind, caplog):
    keys = sorted({KEYS[kind](i).encode() for i in range(40)})
    assert len(keys) == 40

    def dataset(name, more, **options):
        path = write_lmdb(tmp_path / name, [*((key, b"value") for key in keys), *more])
        assert [key for key, _ in read_lmdb(path)] == sorted([*keys, *(key for key, _ in more)])
        return forebay.Dataset(path, decode=False, **options)

    for name, value in (("size", b"40"), ("count", struct.pack("<Q", 40)), ("n", pickle.dumps(40))):
        assert dataset(name, [(name.encode(), value)]).keys() == keys
        assert f"no samples: {name} (40)" in caplog.records[-1].getMessage()
    assert dataset("info", [(b"__info__", b"{}")]).keys() == keys
    for name in ("total", "num_examples"):
        with pytest.raises(forebay.Error, match="counts 45 samples, but there are 40"):
            dataset(name, [(name.encode(), b"45")])
    version = [(b"version", b"45")]
    alike = kind == "words"
    assert len(dataset("version", version)) == 40 + alike
    assert len(dataset("kept", version, keep_records="version")) == 41
    assert not [record for record in caplog.records if "--" in record.getMessage()]


def test_words_are_samples_and_prefixes_that_may_be_classes_are_told(tmp_path, caplog):
    words = ["apple", "depth", "length", "mass", "n", "size", "time", "total", "width"]
    for number, value in enumerate(
        (lambda i: b"vector %d" % i, lambda i: struct.pack("<f", i + 1.5))
    ):
        records = [(word.encode(), value(i)) for i, word in enumerate(words)]
        path = write_lmdb(tmp_path / f"words{number}", records)
        assert forebay.Dataset(path, decode=False).keys() == [key for key, _ in records]
    assert not caplog.records
    pets = [f"{pet}_{i:04}".encode() for pet in ("cat", "dog", "owl") for i in range(50)]
    path = write_lmdb(tmp_path / "pets", [(key, b"pixels") for key in pets])
    assert forebay.Dataset(path, decode=False).keys() == pets
    (told,) = caplog.records
    assert "cat_0000, dog_0000, owl_0000" in told.getMessage()
    assert "--" not in told.getMessage()
    assert "convention" in told.getMessage()
    assert len(forebay.Dataset(path, decode=False, convention="grouped")) == 50
    assert len(forebay.Dataset(path, decode=False, convention="plain")) == 150
    assert len(caplog.records) == 1


@pytest.fixture(scope="module")
def text_lines(data):
    """As text recognition has them: image-000000001, label-000000001, and num-samples."""
    rng = np.random.default_rng(7)
    images = [rng.bytes(int(rng.integers(1, 3000))) for _ in range(30)]
    labels = [f"word {i}" * (i % 4) for i in range(30)]
    records = [(b"num-samples", b"30")]
    for i in range(30):
        records.append((f"image-{i + 1:09d}".encode(), images[i]))
        records.append((f"label-{i + 1:09d}".encode(), labels[i].encode()))
    return write_lmdb(data / "text.lmdb", sorted(records)), images, labels


def test_grouped_keys_are_one_sample_of_several_fields(text_lines):
    path, images, labels = text_lines
    ds = forebay.Dataset(path)
    assert len(ds) == 30
    for i in (0, 13, 29):
        assert bytes(ds[i]["image"]) == images[i]
        assert bytes(ds[i]["label"]).decode() == labels[i]
    assert "image" in str(ds.info())
    for order in ("shuffled", "sequential"):
        loader = forebay.Loader(ds, batch_size=8, order=order, end="exact")
        seen = []
        for batch in loader:
            for i, sample in enumerate(batch["sample"]):
                assert batch["image"][i].tobytes() == images[sample]
                assert batch["label"][i].tobytes().decode() == labels[sample]
                seen.append(int(sample))
        assert sorted(seen) == list(range(30))
    # Text and images for the user's own code, by part.
    loader = forebay.Loader(
        path, batch_size=8, decode=lambda parts: {"text": bytes(parts["label"]).decode()}
    )
    for batch in loader:
        assert batch["text"] == [labels[i] for i in batch["sample"]]


def test_databases_one_after_the_other_and_beside_each_other(data):
    for name, first in (("a", 0), ("b", 100)):
        write_lmdb(
            data / f"{name}.lmdb",
            ((f"{i:04d}".encode(), struct.pack("<i", first + i)) for i in range(20)),
        )
    a, b = str(data / "a.lmdb"), str(data / "b.lmdb")
    both = forebay.Dataset([a, b], codec="raw", schema="x:i32[]")
    assert both[:]["x"].tolist() == [*range(20), *range(100, 120)]
    pairs = forebay.Dataset({"lq": a, "gt": b}, codec="raw", schema="", decode=False)
    assert len(pairs) == 20
    sample = pairs[7]
    assert struct.unpack("<i", sample["lq"].tobytes()) == (7,)
    assert struct.unpack("<i", sample["gt"].tobytes()) == (107,)
    short = write_lmdb(data / "short.lmdb", ((f"{i:04d}".encode(), b"x") for i in range(19)))
    with pytest.raises(forebay.Error, match="0019"):
        forebay.Dataset({"lq": a, "gt": short})


def test_numeric_keys_without_padding(data):
    path = write_lmdb(
        data / "unpadded.lmdb",
        sorted((str(i).encode(), struct.pack("<i", i)) for i in range(25)),
    )
    by_key = forebay.Dataset(path, codec="raw", schema="x:i32[]")
    by_number = forebay.Dataset(path, codec="raw", schema="x:i32[]", order_by="number")
    assert by_key[:]["x"].tolist() == sorted(range(25), key=str)
    assert by_number[:]["x"].tolist() == list(range(25))


def test_records_that_are_no_samples(data):
    numbers = [(str(i).encode(), b"v") for i in range(20)]
    path = write_lmdb(
        data / "ase.lmdb", sorted([*numbers, (b"deleted_ids", b"x"), (b"nextid", b"y")])
    )
    dataset = forebay.Dataset(path)
    assert len(dataset) == 20
    metadata = dataset.info()["databases"][0]["metadata"]
    assert [record["key"] for record in metadata] == ["deleted_ids", "nextid"]
    assert len(forebay.Dataset(path, keep_records=["nextid"])) == 21
    assert len(forebay.Dataset(path, keep_records="*")) == 22
    assert len(forebay.Dataset(path, leave_out=["1?", "nextid"])) == 10
    assert len(forebay.Dataset(path, leave_out="nextid", keep_records="*")) == 21
    commas = write_lmdb(data / "commas.lmdb", [(b"ey", b"z"), (b"k", b"y"), (b"k,ey", b"x")])
    for keys in (["k,ey"], "k\\,ey"):
        assert forebay.Dataset(commas, leave_out=keys, decode=False).keys() == [b"ey", b"k"]
    assert len(forebay.Dataset(commas, leave_out=["k", "ey"], decode=False)) == 1
    with pytest.raises(forebay.UsageError, match="nothing"):
        forebay.Dataset(path, leave_out=["nothing"])


def test_a_pickled_data_set_reopens(images):
    path, pixels, _ = images
    ds = pickle.loads(pickle.dumps(forebay.Dataset(path)))
    np.testing.assert_array_equal(ds[3]["image"], pixels[3])


def _right(ds, expected):
    for _ in range(3):
        ids = np.random.permutation(len(ds))
        if not np.array_equal(ds[ids]["label"], expected[ids]):
            os._exit(2)
    os._exit(0)


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_opened_before_used_after(images, method):
    path, _, labels = images
    ds = forebay.Dataset(path)
    ds[0]
    context = multiprocessing.get_context(method)
    children = [context.Process(target=_right, args=(ds, labels)) for _ in range(4)]
    for child in children:
        child.start()
    np.testing.assert_array_equal(ds[:]["label"], labels)
    for child in children:
        child.join(60)
        assert child.exitcode == 0


def test_two_hundred_processes_on_one_database(images, tmp_path):
    """LMDB's table of readers has 126 places: we need none."""
    path, _, labels = images
    ds = forebay.Dataset(path)
    before = sorted(os.listdir(path))
    children = []
    ready, start = os.pipe()
    for _ in range(200):
        child = os.fork()
        if child == 0:
            os.close(start)
            os.read(ready, 1)  # until the parent closes its end: all exist at once
            fresh = forebay.Dataset(path)
            same = np.array_equal(fresh[[0, 100]]["label"], labels[[0, 100]])
            os._exit(0 if same and int(ds[7]["label"]) == labels[7] else 1)
        children.append(child)
    os.close(ready)
    os.close(start)
    assert [os.waitpid(child, 0)[1] for child in children] == [0] * 200
    assert sorted(os.listdir(path)) == before


def test_read_only_directories_and_no_locks(images, tmp_path):
    path, _, labels = images
    code = "import sys, forebay\nprint(int(forebay.Dataset(sys.argv[1])[3]['label']))\n"
    trace = tmp_path / "trace"
    command = ["strace", "-f", "-o", str(trace), "-e", "trace=openat,fcntl,flock"]
    done = subprocess.run(
        [*command, sys.executable, "-c", code, path], check=False, capture_output=True, text=True
    )
    if "ptrace" in done.stderr:
        pytest.skip("strace may not trace here")
    assert done.stdout.split() == [str(labels[3])]
    of_ours = [line for line in trace.read_text().splitlines() if "images.lmdb" in line]
    assert of_ours
    assert not [line for line in of_ours if "lock.mdb" in line or "O_CREAT" in line]
    assert not [line for line in of_ours if "O_RDWR" in line or "O_WRONLY" in line]


def test_mix_is_exact_seeded_and_resumable(data):
    sizes = {"m1": 10, "m2": 35, "m3": 7}
    for name, size in sizes.items():
        write_lmdb(
            data / f"{name}.lmdb",
            ((f"{i:04d}".encode(), struct.pack("<i", i)) for i in range(size)),
        )
    weights = {str(data / f"{name}.lmdb"): w for name, w in (("m1", 1), ("m2", 2), ("m3", 1))}
    options = {"batch_size": 8, "samples": 40, "codec": "raw", "schema": "x:i32[]"}

    def take(mix, batches):
        found = []
        while len(found) < batches:
            for batch in mix:
                np.testing.assert_array_equal(batch["x"], batch["sample"])
                found.append(list(zip(batch["source"].tolist(), batch["x"].tolist())))
                if len(found) == batches:
                    break
        return found

    mix = forebay.Mix(weights, **options)
    assert mix.counts == [10, 20, 10]
    assert len(mix) == 5
    whole = take(mix, 20)
    for epoch in range(4):
        drawn = [s for batch in whole[5 * epoch : 5 * epoch + 5] for s in batch]
        assert [sum(s == k for s, _ in drawn) for k in range(3)] == [10, 20, 10]
        assert sorted(x for s, x in drawn if s == 0) == list(range(10))
    # Samples of the larger one come equally often, to within one.
    larger = [x for batch in whole for s, x in batch if s == 1]
    assert set(np.bincount(larger, minlength=35)) == {2, 3}
    assert whole[:5] != whole[5:10]
    assert take(forebay.Mix(weights, **options), 20) == whole
    for taken in (0, 1, 5, 7, 10):
        first = forebay.Mix(weights, **options)
        before = take(first, taken) if taken else []
        resumed = forebay.Mix(weights, **options)
        resumed.load_state_dict(pickle.loads(pickle.dumps(first.state_dict())))
        assert before + take(resumed, 20 - taken) == whole, taken
    by_samples = {path: n for path, n in zip(weights, (3, 4, 5))}
    assert forebay.Mix(by_samples, batch_size=4, by="samples", decode=False).counts == [3, 4, 5]
    with pytest.raises(forebay.UsageError):
        forebay.Mix({str(data / "m1.lmdb"): 0}, batch_size=4)


def test_transforms_in_cpp_give_images_of_one_size(data):
    pillow = pytest.importorskip("PIL.Image")
    import io

    rng = np.random.default_rng(8)
    records = []
    for i in range(20):
        h, w = (int(x) for x in rng.integers(40, 90, 2))
        buffer = io.BytesIO()
        pillow.fromarray(rng.integers(0, 255, (h, w, 3), np.uint8)).save(buffer, "JPEG")
        records.append((f"{i:03d}".encode(), buffer.getvalue()))
    path = write_lmdb(data / "jpegs.lmdb", records)
    options = {
        "order": "sequential",
        "transform": "random-resized-crop=32,flip,to-float",
        "seed": 3,
    }
    once = [b["image"] for b in forebay.Loader(path, batch_size=5, **options)]
    assert once[0].shape == (5, 3, 32, 32)
    assert once[0].dtype == np.float32
    again = [b["image"] for b in forebay.Loader(path, batch_size=4, **options)]
    np.testing.assert_array_equal(np.concatenate(once), np.concatenate(again))
    loader = forebay.Loader(path, batch_size=20, **options)
    first, second = (np.concatenate([b["image"] for b in loader]) for _ in range(2))
    assert not np.array_equal(first, second)  # another epoch, other crops


def test_odd_indices_and_paths_are_refused(images):
    path, _, _ = images
    ds = forebay.Dataset(path)
    for wrong in (1.7, [1.5], [[1, 2]], "3", None):
        with pytest.raises(TypeError):
            ds[wrong]
    with pytest.raises(IndexError):
        ds[np.array([True, False])]
    for wrong in (None, 3, bytearray(b"x"), [], ["a,b.lmdb", "c.lmdb"], {"a": "x&y", "b": "z"}):
        with pytest.raises(forebay.UsageError):
            forebay.Dataset(wrong)


def test_a_child_of_a_fork_does_not_meet_locks_of_other_threads(images):
    import threading

    path, _, labels = images
    ds = forebay.Dataset(path)
    stop = threading.Event()

    def read():
        while not stop.is_set():
            ds[3]

    threads = [threading.Thread(target=read) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(20):
            child = os.fork()
            if child == 0:
                os._exit(0 if int(ds[7]["label"]) == labels[7] else 1)
            assert os.waitpid(child, 0)[1] == 0
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def test_relative_names_hold_in_another_directory(images, monkeypatch, tmp_path):
    path, _, labels = images
    monkeypatch.chdir(os.path.dirname(path))
    ds = forebay.Dataset("images.lmdb")
    loader = forebay.Loader("images.lmdb", batch_size=8)
    monkeypatch.chdir(tmp_path)
    assert pickle.loads(pickle.dumps(ds))[3]["label"] == labels[3]
    for _ in loader:
        break
    assert sum(1 for _ in loader) == len(loader)  # opens anew


def png():
    pillow = pytest.importorskip("PIL.Image")
    buffer = io.BytesIO()
    pillow.new("RGB", (5, 4)).save(buffer, "PNG")
    return buffer.getvalue()


@pytest.mark.parametrize("empty", [1, 3, 40])
def test_an_empty_first_value_says_nothing_of_the_others(tmp_path, empty):
    def written(name, values):
        records = [(b"%04d" % i, value) for i, value in enumerate([b""] * empty + values)]
        return write_lmdb(tmp_path / name, records)

    path = written("bytes", [b"abc", b"", b"de"])
    stored = [b""] * empty + [b"abc", b"", b"de"]
    ds = forebay.Dataset(path)
    assert [ds[i]["value"].tobytes() for i in range(len(ds))] == stored
    loader = forebay.Loader(path, batch_size=2, order="sequential", end="exact")
    assert [each for batch in loader for each in batch["value"].tobytes()] == stored

    path = written("none", [])
    assert forebay.Dataset(path)[0]["value"].size == 0
    assert [b["value"].tobytes() for b in forebay.Loader(path, batch_size=empty)] == [[b""] * empty]

    path = written("images", [png()] * 3)
    ds = forebay.Dataset(path)
    assert ds[empty]["image"].shape == (3, 4, 5)
    with pytest.raises(forebay.CorruptError, match=r"the value is empty.*decode=False"):
        ds[0]
    with pytest.raises(forebay.CorruptError, match=r"the value is empty.*decode=False"):
        list(forebay.Loader(path, batch_size=1, order="sequential"))
    loader = forebay.Loader(path, batch_size=1, end="exact", on_error="skip")
    assert sum(len(batch["image"]) for batch in loader) == 3
    assert len(loader.skipped()) == empty
