"""What comes out of a Loader, against the libraries that wrote the files."""

import json
import pickle
import struct

import forebay
import h5py
import numpy as np
import pytest
from conftest import SAMPLES, datum, read_lmdb, write_lmdb


def epoch_ids(loader):
    return np.concatenate([b["sample"][~b["padded"]] for b in loader])


def test_decoded_fields_are_those_that_were_written(images):
    path, pixels, labels = images
    loader = forebay.Loader(path, batch_size=16)
    seen = 0
    for batch in loader:
        np.testing.assert_array_equal(batch["image"], pixels[batch["sample"]])
        np.testing.assert_array_equal(batch["label"], labels[batch["sample"]])
        assert batch["image"].shape == (16, 3, 8, 8)
        assert batch["image"].dtype == np.uint8
        seen += int((~batch["padded"]).sum())
    assert seen == SAMPLES
    assert [f.name for f in loader.schema] == ["image", "label"]
    assert len(loader) == -(-SAMPLES // 16)


@pytest.mark.parametrize("order", ["shuffled", "sequential", "grouped", "in_memory", "listed"])
@pytest.mark.parametrize("end", ["pad", "wrap", "drop", "exact"])
def test_stored_values_equal_py_lmdb_in_every_order(values, order, end):
    path, _ = values
    records = read_lmdb(path)
    extra = {"grouped": {"group": 20}, "listed": {"ids": [5, 1, 5, 0, *range(100)]}}
    with forebay.Loader(
        path,
        batch_size=16,
        order=order,
        end=end,
        keys=True,
        decode=False,
        **extra.get(order, {}),
    ) as loader:
        for batch in loader:
            for i, sample in enumerate(batch["sample"]):
                assert batch["key"][i] == records[sample][0]
                assert batch["value"][i].tobytes() == records[sample][1]
            assert len(batch["value"]) == len(batch["sample"])


@pytest.mark.parametrize("end", ["pad", "exact"])
def test_every_epoch_visits_each_sample_once_in_a_new_order(numbers, end):
    loader = forebay.Loader(numbers, batch_size=16, end=end, schema="x:i64[]", codec="raw", seed=3)
    epochs = [epoch_ids(loader) for _ in range(3)]
    for ids in epochs:
        assert sorted(ids) == list(range(SAMPLES))
    assert not np.array_equal(epochs[0], epochs[1])
    assert not np.array_equal(epochs[1], epochs[2])
    again = forebay.Loader(numbers, batch_size=16, end=end, schema="x:i64[]", codec="raw", seed=3)
    for ids in epochs:
        np.testing.assert_array_equal(epoch_ids(again), ids)


def test_sequential_is_the_order_of_the_data_set(numbers):
    loader = forebay.Loader(numbers, batch_size=10, order="sequential", decode=False)
    for _ in range(2):
        assert list(epoch_ids(loader)) == list(range(SAMPLES))


def test_strided_goes_on_in_a_circle(numbers):
    loader = forebay.Loader(numbers, batch_size=10, order="strided", decode=False)
    first = [int(i) for batch in loader for i in batch["sample"]]
    second = [int(i) for batch in loader for i in batch["sample"]]
    together = first + second
    assert together == [i % SAMPLES for i in range(len(together))]


@pytest.mark.parametrize("end", [None, "pad", "wrap", "drop", "exact"])
def test_strided_runs_of_whole_epochs_have_each_sample_once(numbers, end):
    loader = forebay.Loader(
        numbers, batch_size=16, order="strided", epochs=2, end=end, decode=False
    )
    own, filled, batches = [], 0, 0
    for _ in range(2):
        for batch in loader:
            own += [int(i) for i, pad in zip(batch["sample"], batch["padded"]) if not pad]
            filled += int(batch["padded"].sum())
            batches += 1
    left = 2 * SAMPLES % 16
    if end == "drop":
        assert len(set(own[:SAMPLES])) == SAMPLES and len(own) == 2 * SAMPLES - left
    else:
        assert own == 2 * list(range(SAMPLES))
        assert batches == -(-2 * SAMPLES // 16)
    assert filled == (16 - left if end in (None, "pad", "wrap") and left else 0)


def test_an_end_of_an_order_that_goes_round_is_refused(numbers):
    with pytest.raises(forebay.UsageError, match="epochs"):
        forebay.Loader(numbers, batch_size=16, order="strided", end="drop", decode=False)


def test_break_ends_the_epoch_and_the_next_is_new(numbers):
    loader = forebay.Loader(numbers, batch_size=16, decode=False)
    whole = [epoch_ids(loader) for _ in range(3)]
    loader = forebay.Loader(numbers, batch_size=16, decode=False)
    for batch in loader:
        np.testing.assert_array_equal(batch["sample"], whole[0][:16])
        break
    np.testing.assert_array_equal(epoch_ids(loader), whole[1])
    for i, batch in enumerate(loader):
        np.testing.assert_array_equal(batch["sample"], whole[2][16 * i : 16 * i + 16])
        if i == 2:
            break


def test_set_epoch_chooses_the_epoch(numbers):
    loader = forebay.Loader(numbers, batch_size=16, decode=False)
    whole = [epoch_ids(loader) for _ in range(4)]
    again = forebay.Loader(numbers, batch_size=16, decode=False)
    for epoch in (2, 3, 0, 0, 1):
        again.set_epoch(epoch)
        np.testing.assert_array_equal(epoch_ids(again), whole[epoch])


def test_an_iterator_that_was_replaced_says_so(numbers):
    loader = forebay.Loader(numbers, batch_size=16, decode=False)
    first = iter(loader)
    next(first)
    second = iter(loader)
    next(second)
    with pytest.raises(forebay.UsageError, match="replaced"):
        next(first)
    assert sum(1 for _ in second) == len(loader) - 1


@pytest.mark.parametrize("taken", [0, 1, 6, 12, 13])
def test_a_state_goes_on_with_the_next_batch(numbers, taken):
    def batches(loader, count):
        found = []
        while len(found) < count:
            for batch in loader:
                found.append((batch.epoch, batch["sample"].tolist()))
                if len(found) == count:
                    return found
        return found

    options = {"batch_size": 16, "decode": False, "seed": 9}
    whole = batches(forebay.Loader(numbers, **options), 30)
    loader = forebay.Loader(numbers, **options)
    before = batches(loader, taken)
    state = pickle.loads(pickle.dumps(json.loads(json.dumps(loader.state_dict()))))
    loader.close()
    resumed = forebay.Loader(numbers, **options)
    resumed.load_state_dict(state)
    assert before + batches(resumed, 30 - taken) == whole


def test_a_state_of_another_data_set_is_refused(numbers, values):
    state = forebay.Loader(numbers, batch_size=16, decode=False).state_dict()
    other = forebay.Loader(values[0], batch_size=16, decode=False)
    with pytest.raises(forebay.ChangedError):
        other.load_state_dict(state)
    with pytest.raises(forebay.UsageError):
        other.load_state_dict({"nothing": 1})


def test_arrays_outlive_batches_and_the_loader(images):
    path, pixels, _ = images
    loader = forebay.Loader(path, batch_size=16)
    kept = [(batch["sample"], batch["image"]) for batch in loader for _ in range(1)]
    loader.close()
    del loader
    for ids, image in kept:
        np.testing.assert_array_equal(image, pixels[ids])
    # Through DLPack and the buffer protocol, without a copy.
    ids, image = kept[0]
    assert np.shares_memory(np.from_dlpack(image), image)
    assert memoryview(image).nbytes == image.nbytes


def test_hdf5_equals_h5py(data):
    rng = np.random.default_rng(4)
    path = data / "cubes.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset("maps", data=rng.random((50, 4, 3), np.float32), chunks=(7, 4, 3),
                            compression="gzip")  # fmt: skip
        file.create_dataset("target", data=rng.integers(-9, 9, (50, 2)).astype(">i2"))
    with h5py.File(path) as file:
        maps, target = file["maps"][:], file["target"][:]
    loader = forebay.Loader(f"{path}#x=maps,y=target", batch_size=8, order="grouped", group=7)
    for batch in loader:
        np.testing.assert_array_equal(batch["x"], maps[batch["sample"]])
        np.testing.assert_array_equal(batch["y"], target[batch["sample"]])


def test_user_code_decodes_transforms_and_collates(values):
    path, _ = values
    records = read_lmdb(path)
    loader = forebay.Loader(
        path,
        batch_size=16,
        decode=lambda value: {"length": len(value), "bytes": bytes(value)},
        transform=lambda sample: {**sample, "twice": 2 * sample["length"]},
        threads=2,
    )
    for batch in loader:
        lengths = [len(records[i][1]) for i in batch["sample"]]
        assert batch["length"].tolist() == lengths
        assert batch["twice"].tolist() == [2 * n for n in lengths]
        assert batch["bytes"] == [records[i][1] for i in batch["sample"]]


def test_an_exception_of_user_code_names_sample_and_key(numbers):
    def decode(value):
        (number,) = struct.unpack("<q", value)
        if number == 37:
            raise ArithmeticError("bad luck")
        return number

    loader = forebay.Loader(numbers, batch_size=16, decode=decode)
    with pytest.raises(forebay.UserCodeError, match="bad luck") as caught:
        list(loader)
    assert caught.value.sample == 37
    assert caught.value.key == "00000037"
    assert isinstance(caught.value.__cause__, ArithmeticError)

    loader = forebay.Loader(numbers, batch_size=16, decode=decode, on_error="skip", end="exact")
    seen = sorted(int(v) for batch in loader for v in batch["value"])
    assert seen == [i for i in range(SAMPLES) if i != 37]
    assert loader.skipped() == [(37, "00000037", "ArithmeticError: bad luck")]


def test_undecodable_samples_are_told_or_skipped(data):
    good = np.zeros((1, 2, 2), np.uint8)
    path = write_lmdb(
        data / "broken.lmdb",
        ((f"{i:03d}".encode(), b"\xff\xff" if i == 5 else datum(good, i)) for i in range(20)),
    )
    with pytest.raises(forebay.CorruptError) as caught:
        list(forebay.Loader(path, batch_size=4))
    assert caught.value.sample == 5
    assert caught.value.key == "005"
    assert caught.value.rank == 0
    loader = forebay.Loader(path, batch_size=4, on_error="skip", end="exact")
    assert sorted(int(v) for b in loader for v in b["label"]) == [i for i in range(20) if i != 5]
    assert [(s, k) for s, k, _ in loader.skipped()] == [(5, "005")]


def test_mistakes_are_told(numbers, tmp_path):
    with pytest.raises(FileNotFoundError) as caught:
        forebay.Loader(str(tmp_path / "none.lmdb"), batch_size=4)
    assert isinstance(caught.value, forebay.NotFoundError)
    assert "none.lmdb" in str(caught.value)
    for wrong in (
        {},
        {"batch_size": 0},
        {"batch_size": 4, "global_batch_size": 4},
        {"batch_size": 4, "end": "never"},
        {"batch_size": 4, "order": "random"},
        {"batch_size": 4, "on_error": "ignore"},
        {"batch_size": 4, "nonsense": 1},
        {"batch_size": 4, "memory": -1},
        {"batch_size": SAMPLES + 1, "end": "drop"},
        {"batch_size": 4, "ranks": (2, 2)},
        {"batch_size": 4, "ranks": object()},
    ):
        with pytest.raises(forebay.UsageError):
            forebay.Loader(numbers, **wrong)
    loader = forebay.Loader(numbers, batch_size=4, decode=False)
    loader.close()
    loader.close()
    with pytest.raises(forebay.UsageError):
        pickle.dumps(loader)


def test_statistics_and_explanations(numbers):
    loader = forebay.Loader(numbers, batch_size=16, decode=False)
    list(loader)
    figures = loader.stats()
    assert figures["batches"] == len(loader)
    assert figures["rank"] == 0
    assert len(figures["steps"]) == len(loader)
    assert all(step.data >= 0 for step in figures["steps"])
    assert "shuffled" in loader.explain()
    assert "stage_bytes" in forebay.option_help()


def test_seeds_depend_on_run_epoch_and_sample_alone(numbers):
    def seeds(batch_size):
        loader = forebay.Loader(numbers, batch_size=batch_size, decode=False, seeds=True, seed=5)
        return [
            {int(s): int(seed) for b in loader for s, seed in zip(b["sample"], b["seed"])}
            for _ in range(2)
        ]

    first = seeds(16)
    assert first == seeds(7)
    assert first[0] != first[1]
    assert len(set(first[0].values())) == SAMPLES


def resident(kind):
    """Bytes of this process: RssAnon, RssFile or RssShmem."""
    with open("/proc/self/status") as status:
        line = next(line for line in status if line.startswith(kind + ":"))
    return int(line.split()[1]) << 10


def test_memory_stays_within_its_budget(data):
    rng = np.random.default_rng(6)
    path = write_lmdb(
        data / "large.lmdb", ((f"{i:05d}".encode(), rng.bytes(100_000)) for i in range(1000))
    )
    budget = 16 << 20
    before = sum(map(resident, ("RssAnon", "RssFile", "RssShmem")))
    with forebay.Loader(path, batch_size=8, decode=False, memory=budget) as loader:
        for _ in range(3):
            for _ in loader:
                after = sum(map(resident, ("RssAnon", "RssFile", "RssShmem")))
                assert after < before + budget + (64 << 20)


def test_a_batch_larger_than_the_data_set(data):
    path = write_lmdb(data / "three.lmdb", ((f"{i}".encode(), bytes([i])) for i in range(3)))
    for end, sizes, real in (("exact", [3], 3), ("pad", [8], 3), ("wrap", [8], 3)):
        loader = forebay.Loader(path, batch_size=8, decode=False, end=end)
        assert len(loader) == 1
        batches = list(loader)
        assert [len(b["sample"]) for b in batches] == sizes
        assert sorted(batches[0]["sample"][~batches[0]["padded"]]) == [0, 1, 2]
        assert int((~batches[0]["padded"]).sum()) == real
    with pytest.raises(forebay.UsageError):
        forebay.Loader(path, batch_size=8, decode=False, end="drop")


def test_many_small_files_under_a_small_limit_of_handles(data, tmp_path):
    """1,000 arrays as one data set in a process that may open 256 files."""
    import resource

    for i in range(1000):
        np.save(tmp_path / f"{i:04d}.npy", np.full((2, 3), i, np.int32))
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, hard))
    try:
        seen = set()
        for batch in forebay.Loader(f"{tmp_path}/*.npy", batch_size=100, end="exact"):
            np.testing.assert_array_equal(batch["data"][:, 0], batch["sample"] // 2)
            seen.update(batch["sample"].tolist())
        assert seen == set(range(2000))
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_a_batch_that_user_code_refuses_was_not_yielded(numbers):
    class Once:
        def __init__(self, error):
            self.error = error

        def __call__(self, sample):
            if self.error is not None and int(sample["x"]) == int(wanted):
                error, self.error = self.error, None
                raise error
            return sample

    options = {"batch_size": 16, "codec": "raw", "schema": "x:i64[]", "end": "exact"}
    whole = [b["sample"].tolist() for b in forebay.Loader(numbers, **options)]
    wanted = whole[4][3]
    for error in (ValueError("bad"), KeyboardInterrupt()):
        loader = forebay.Loader(numbers, transform=Once(error), **options)
        seen = []
        with pytest.raises((forebay.UserCodeError, KeyboardInterrupt)):
            for batch in loader:
                seen.append(batch["sample"].tolist())
        assert seen == whole[:4]
        resumed = forebay.Loader(numbers, **options)
        resumed.load_state_dict(loader.state_dict())
        assert [b["sample"].tolist() for b in resumed] == whole[4:]


def test_fields_that_batches_have_already_are_refused(data):
    path = data / "names.h5"
    with h5py.File(path, "w") as file:
        file["sample"] = np.arange(10)
        file["x"] = np.arange(10)
    with pytest.raises(forebay.UsageError, match="sample"):
        forebay.Loader(str(path), batch_size=4)
    batch = next(iter(forebay.Loader(f"{path}#id=sample,x", batch_size=4)))
    assert set(batch) == {"id", "x", "sample", "padded"}


def test_ranks_that_are_not_connected_go_on_inside_a_window(numbers):
    options = {"batch_size": 8, "decode": False, "order": "strided", "coalesce": 5, "ranks": (1, 2)}
    whole = [b["sample"].tolist() for b in forebay.Loader(numbers, iterations=9, **options)]
    loader = forebay.Loader(numbers, iterations=9, **options)
    batches = iter(loader)
    seen = [next(batches)["sample"].tolist() for _ in range(2)]
    resumed = forebay.Loader(numbers, iterations=9, **options)
    resumed.load_state_dict(loader.state_dict())
    assert seen + [b["sample"].tolist() for b in resumed] == whole


def test_a_state_that_does_not_fit_leaves_the_loader_as_it_was(numbers, values):
    other = forebay.Loader(values[0], batch_size=16, decode=False).state_dict()
    options = {"batch_size": 16, "decode": False}
    whole = [b["sample"].tolist() for b in forebay.Loader(numbers, **options)]
    loader = forebay.Loader(numbers, **options)
    batches = iter(loader)
    seen = [next(batches)["sample"].tolist() for _ in range(3)]
    for wrong in (other, {"forebay": 1, "state": {"x": 1}}, None, {}):
        with pytest.raises(forebay.Error):
            loader.load_state_dict(wrong)
    resumed = forebay.Loader(numbers, **options)
    resumed.load_state_dict(loader.state_dict())
    assert seen + [b["sample"].tolist() for b in resumed] == whole


def test_what_was_asked_for_is_kept_in_the_state(numbers):
    loader = forebay.Loader(numbers, batch_size=16, decode=False)
    loader.set_epoch(np.int64(5))
    resumed = forebay.Loader(numbers, batch_size=16, decode=False)
    resumed.load_state_dict(loader.state_dict())
    assert next(iter(resumed)).epoch == 5


def test_a_closed_loader_still_tells_what_happened(numbers):
    def decode(value):
        if value[0] < 3:
            raise ValueError("small")
        return len(value)

    loader = forebay.Loader(numbers, batch_size=16, decode=decode, on_error="skip", threads=2)
    for _ in range(2):
        list(loader)
    loader.close()
    assert loader.stats()["batches"] == 2 * len(loader)
    assert "shuffled" in loader.explain()
    assert [each[0] for each in sorted(loader.skipped())] == [0, 1, 2]
    assert len(list(loader)) == len(loader)  # opens anew


def test_a_data_set_says_how_it_is_read(images):
    path, _, _ = images
    stored = forebay.Dataset(path, decode=False)
    assert set(next(iter(forebay.Loader(stored, batch_size=4)))) == {"value", "sample", "padded"}
    declared = forebay.Dataset(path, schema="image:u8[3x8x8],label:i32[]")
    batch = next(iter(forebay.Loader(declared, batch_size=4, decode=len)))
    assert batch["value"].dtype.kind == "i"


def test_closing_from_another_thread_ends_a_loop(numbers):
    import threading

    loader = forebay.Loader(numbers, batch_size=2, decode=False)
    began = threading.Event()
    ended = []

    def consume():
        try:
            while True:
                for _ in loader:
                    began.set()
        except forebay.Error as error:
            ended.append(error)

    thread = threading.Thread(target=consume, daemon=True)
    thread.start()
    assert began.wait(30)
    loader.close()
    thread.join(30)
    assert not thread.is_alive()
    assert ended


def test_an_error_names_the_value_that_was_looked_at(tmp_path):
    """The first ones are empty, and say nothing of the others."""
    path = write_lmdb(
        tmp_path / "late.lmdb", ((b"%04d" % i, b"abc" if i > 2 else b"") for i in range(6))
    )
    with pytest.raises(forebay.CorruptError, match="no image") as caught:
        forebay.Loader(path, batch_size=2, transform="resize=4x4")
    assert (caught.value.sample, caught.value.key) == (3, "0003")
