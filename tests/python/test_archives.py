"""Tar shards and folders of files: what tarfile, torchvision and webdataset say of them."""

import io
import tarfile

import forebay
import numpy as np
import pytest

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
