"""tf.data from a loader, and the operation of DeepIO's front end."""

import os

import numpy as np
import pytest
from conftest import SAMPLES

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
tf = pytest.importorskip("tensorflow")

import forebay  # noqa: E402
import forebay.tf  # noqa: E402

built = pytest.mark.skipif(
    not forebay.tf._deepio._LIBRARY.exists(), reason="built without tensorflow"
)


@pytest.mark.parametrize("end", ["pad", "exact"])
def test_a_data_set_has_the_batches_of_the_loader(images, end):
    path, pixels, _ = images
    expected = forebay.Loader(path, batch_size=16, seed=3, end=end)
    batches = forebay.tf.dataset(forebay.Loader(path, batch_size=16, seed=3, end=end))
    assert batches.element_spec["image"].shape.as_list() == [None, 3, 8, 8]
    orders = []
    for _ in range(2):  # one epoch an iteration, each of its own order
        order = []
        for batch, right in zip(batches, expected, strict=True):
            assert set(batch) == set(right)
            for name, value in right.items():
                np.testing.assert_array_equal(batch[name].numpy(), value)
                assert batch[name].dtype.as_numpy_dtype == value.dtype
            np.testing.assert_array_equal(batch["image"].numpy(), pixels[batch["sample"].numpy()])
            order += batch["sample"].numpy()[~batch["padded"].numpy()].tolist()
        assert sorted(order) == list(range(SAMPLES))
        orders.append(order)
    assert orders[0] != orders[1]


def test_an_iterator_that_is_given_up_ends_its_epoch(numbers):
    loader = forebay.Loader(numbers, batch_size=16, codec="raw", schema="x:i64[]", end="exact")
    batches = forebay.tf.dataset(loader)
    assert len(list(batches.take(2))) == 2
    whole = [int(x) for batch in batches for x in batch["x"]]
    assert sorted(whole) == list(range(SAMPLES))


def test_pipelines_and_keras_functions_take_it(images):
    path, pixels, _ = images
    batches = forebay.tf.dataset(forebay.Loader(path, batch_size=16, end="exact"))

    @tf.function
    def total(data):
        return data.reduce(tf.constant(0, tf.int64), lambda so_far, x: so_far + x)

    sums = batches.map(lambda b: tf.reduce_sum(tf.cast(b["image"], tf.int64))).prefetch(2)
    assert int(total(sums)) == pixels.sum(dtype=np.int64)


@pytest.mark.parametrize("ragged", ["ragged", "string"])
def test_values_of_different_lengths(values, ragged):
    path, records = values
    loader = forebay.Loader(path, batch_size=16, decode=False, keys=True, seeds=True)
    seen = 0
    for batch in forebay.tf.dataset(loader, ragged=ragged):
        if ragged == "ragged":
            assert isinstance(batch["value"], tf.RaggedTensor)
        stored = [
            bytes(value.numpy().tobytes() if ragged == "ragged" else value.numpy())
            for value in batch["value"]
        ]
        for i, sample in enumerate(batch["sample"].numpy()):
            assert (batch["key"][i].numpy(), stored[i]) == records[sample]
            seen += 1
        assert batch["seed"].dtype == tf.uint64
    assert seen >= SAMPLES


def test_functions_of_the_users_need_a_signature(numbers):
    def loader():
        return forebay.Loader(
            numbers, batch_size=16, decode=lambda v: {"n": int.from_bytes(v, "little")}, end="exact"
        )

    with pytest.raises(forebay.UsageError, match="output_signature"):
        forebay.tf.dataset(loader())
    batches = forebay.tf.dataset(loader(), output_signature={"n": tf.TensorSpec((None,), tf.int64)})
    assert sorted(int(n) for batch in batches for n in batch["n"]) == list(range(SAMPLES))
    with pytest.raises(forebay.UsageError, match="ragged"):
        forebay.tf.dataset(loader(), ragged="list")


def test_workers_share_each_epoch(tmp_path):
    seeds = tmp_path / "seeds.json"
    forebay.tf.generate_seed(3, seeds, samples=1001, workers=4, seed=7)
    epochs = []
    for epoch in range(3):
        shares = [forebay.tf.shuffle_rand(epoch, worker, seeds) for worker in range(4)]
        assert {len(share) for share in shares} == {250, 251}
        assert all(share.dtype == np.int64 for share in shares)
        whole = np.concatenate(shares)
        assert sorted(whole) == list(range(1001))
        # As random as can be: samples do not stay near their place, or near their neighbours.
        assert abs(np.corrcoef(whole, np.arange(1001))[0, 1]) < 0.15
        epochs.append(whole.tolist())
    assert epochs[0] != epochs[1] != epochs[2]
    again = tmp_path / "again.json"
    forebay.tf.generate_seed(3, again, samples=1001, workers=4, seed=7)
    assert again.read_text() == seeds.read_text()
    assert sorted(os.listdir(tmp_path)) == ["again.json", "seeds.json"]


def test_wrong_files_of_seeds_are_refused(tmp_path):
    seeds = tmp_path / "seeds.json"
    with pytest.raises(forebay.NotFoundError, match="generate_seed"):
        forebay.tf.shuffle_rand(0, 0, seeds)
    good = '{"forebay_seeds": 1, "samples": 9, "workers": 1, "seeds": [1]}'
    for text in ("", "[]", "{}", good.replace("9", "-9"), good.replace("[1]", "[-1]"), good[:-1]):
        seeds.write_text(text)
        with pytest.raises(forebay.CorruptError, match="no file of seeds"):
            forebay.tf.shuffle_rand(0, 0, seeds)
    seeds.write_text(good)
    assert sorted(forebay.tf.shuffle_rand(0, 0, seeds)) == list(range(9))
    for place in ((1, 0), (-1, 0), (0, 1), (0, -1)):
        with pytest.raises(forebay.UsageError):
            forebay.tf.shuffle_rand(*place, seeds)
    for arguments in ((0, 9), (1, 0), (1, 9, 0), (1, 9, 1, -1)):
        with pytest.raises(forebay.UsageError):
            forebay.tf.generate_seed(arguments[0], seeds, *arguments[1:])


def test_without_the_operation_it_is_told_what_to_do(monkeypatch, tmp_path):
    forebay.tf._deepio._operations.cache_clear()
    monkeypatch.setattr(forebay.tf._deepio, "_LIBRARY", tmp_path / "none.so")
    with pytest.raises(forebay.UnsupportedError, match="FOREBAY_TENSORFLOW"):
        forebay.tf.deepio_batch([0], 1, 1, 1, [str(tmp_path)])
    forebay.tf._deepio._operations.cache_clear()


ELEMENT = 48


@pytest.fixture(scope="module")
def elements(tmp_path_factory):
    """Files of elements, an empty one among them, and all of their elements."""
    at = tmp_path_factory.mktemp("elements")
    rng = np.random.default_rng(4)
    parts = [rng.integers(0, 256, (n, ELEMENT), np.uint8) for n in (70, 0, 1, 132)]
    files = []
    for i, part in enumerate(parts):
        part.tofile(at / f"{i}.bin")
        files.append(str(at / f"{i}.bin"))
    return files, np.concatenate(parts)


def batches_of(run):
    """All that comes before the end."""
    found = []
    while True:
        try:
            found.append(run())
        except tf.errors.OutOfRangeError:
            return found


@built
@pytest.mark.parametrize("per_read", [1, 7, 1000])
@pytest.mark.parametrize("how", ["eager", "function", "graph"])
def test_elements_come_in_the_order_of_the_array(elements, tmp_path, how, per_read):
    files, whole = elements
    forebay.tf.generate_seed(2, tmp_path / "seeds", samples=len(whole), workers=2)

    def read(array):
        return forebay.tf.deepio_batch(
            array, 16, ELEMENT, per_read, files, shared_name=str(tmp_path)
        )

    for epoch in range(2):
        ids = forebay.tf.shuffle_rand(epoch, 1, tmp_path / "seeds")
        if how == "graph":
            with tf.Graph().as_default(), tf.compat.v1.Session() as session:
                tensor = read(ids)
                assert tensor.shape.as_list() == [None, ELEMENT]
                found = batches_of(lambda: session.run(tensor))  # noqa: B023
        else:
            run = tf.function(read) if how == "function" else read
            found = batches_of(lambda: run(ids).numpy())  # noqa: B023
        assert [len(batch) for batch in found[:-1]] == [16] * (len(found) - 1)
        np.testing.assert_array_equal(np.concatenate(found), whole[ids])
        assert found[0].dtype == np.uint8


@built
def test_an_array_may_be_given_up_and_repeats_are_allowed(elements):
    files, whole = elements

    def read(ids):
        return forebay.tf.deepio_batch(ids, 4, ELEMENT, 3, files).numpy()

    np.testing.assert_array_equal(read([5, 5, 202, 0, 9]), whole[[5, 5, 202, 0]])
    np.testing.assert_array_equal(read([1, 2]), whole[[1, 2]])
    np.testing.assert_array_equal(read([5, 5, 202, 0, 9]), whole[[5, 5, 202, 0]])
    np.testing.assert_array_equal(read([5, 5, 202, 0, 9]), whole[[9]])
    with pytest.raises(tf.errors.OutOfRangeError, match="begins anew"):
        read([5, 5, 202, 0, 9])
    with pytest.raises(tf.errors.OutOfRangeError):
        read(np.empty(0, np.int64))


@built
def test_a_loop_inside_tensorflow_reads_whole_epochs(elements):
    files, whole = elements

    @tf.function
    def total(ids):
        so_far = tf.constant(0, tf.int64)
        for _ in tf.range(4):
            batch = forebay.tf.deepio_batch(ids, 50, ELEMENT, 10, files, shared_name="loop")
            so_far += tf.reduce_sum(tf.cast(batch, tf.int64))
        return so_far

    ids = np.arange(200)
    assert int(total(ids)) == whole[:200].sum(dtype=np.int64)


@built
def test_mistakes_are_errors_of_tensorflow(elements, tmp_path):
    files, _ = elements

    def read(ids=(0,), size=ELEMENT, per_read=1, names=files):
        return forebay.tf.deepio_batch(ids, 4, size, per_read, names)

    with pytest.raises(tf.errors.InvalidArgumentError, match="element 203 of 203"):
        read([203])
    with pytest.raises(tf.errors.InvalidArgumentError, match="element -1"):
        read([-1])
    with pytest.raises(tf.errors.InvalidArgumentError, match="whole number of elements"):
        read(size=ELEMENT + 1)
    with pytest.raises(tf.errors.InvalidArgumentError, match="1 GiB"):
        read(per_read=1 << 40)
    with pytest.raises(forebay.UsageError, match="no list of whole numbers"):
        read([[0]])
    with pytest.raises(tf.errors.NotFoundError, match=r"none\.bin"):
        read(names=[str(tmp_path / "none.bin")])
    with pytest.raises(tf.errors.NotFoundError, match="nobody"):
        read(names=["nobody://serves/this"])
    for wrong in ({"size": 0}, {"per_read": 0}, {"names": []}):
        with pytest.raises(forebay.UsageError):
            read(**wrong)
    cut = tmp_path / "cut.bin"
    cut.write_bytes(bytes(10 * ELEMENT))
    assert read([9], names=[str(cut)]).shape == (1, ELEMENT)
    os.truncate(cut, 5 * ELEMENT)
    with pytest.raises(tf.errors.DataLossError, match=r"cut\.bin"):
        read([8], names=[str(cut)])


@built
def test_any_storage_that_has_a_scheme_serves(elements):
    files, whole = elements
    names = [f"mem://{file}" for file in files if os.path.getsize(file)]
    batch = forebay.tf.deepio_batch([202, 0, 70], 4, ELEMENT, 2, names)
    np.testing.assert_array_equal(batch.numpy(), whole[[202, 0, 70]])


@built
def test_any_array_over_any_files_gives_what_numpy_gives(tmp_path):
    rng = np.random.default_rng(11)
    for case in range(40):
        size = int(rng.integers(1, 40))
        parts = [
            rng.integers(0, 256, (int(rng.integers(0, 30)), size), np.uint8)
            for _ in range(int(rng.integers(1, 5)))
        ]
        parts.append(rng.integers(0, 256, (1, size), np.uint8))
        files = [str(tmp_path / f"{case}-{i}.bin") for i in range(len(parts))]
        for file, part in zip(files, parts):
            part.tofile(file)
        whole = np.concatenate(parts)
        batch, per_read = int(rng.integers(1, 20)), int(rng.integers(1, 12))
        for kind in ("any", "rising"):
            ids = rng.integers(0, len(whole), int(rng.integers(1, 60)))
            ids = np.sort(ids) if kind == "rising" else ids
            read = forebay.tf.deepio_batch
            found = batches_of(lambda: read(ids, batch, size, per_read, files).numpy())  # noqa: B023
            np.testing.assert_array_equal(np.concatenate(found), whole[ids])
