"""Errors speak of Python's arguments, not of the command line's."""

import os

import forebay
import numpy as np
import pytest
from conftest import datum, write_lmdb
from forebay._wording import for_python


def test_options_are_named_as_in_python():
    def told(text):
        return for_python(text)

    assert told("raise --stage-bytes, or lower --batch, --gap-bytes") == (
        "raise memory, or lower batch_size, gap_bytes"
    )
    assert told("use --strategy lmm with --engine psync") == "use strategy lmm with engine psync"
    assert told("read it with --codec bytes, or name a --codec") == (
        "read it with decode=False, or name a codec"
    )
    for kept in (
        "pack them with 'forebay pack --schema x:u8[]'",
        "srun --mpi=list",
        "a file--batch and ---batch",
        "nothing at all",
        "--",
    ):
        assert told(kept) == kept


def test_names_of_files_stay_as_they_are(tmp_path):
    name = tmp_path / "my --batch"
    with pytest.raises(forebay.NotFoundError, match="my --batch"):
        forebay.Loader(str(name), batch_size=1)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"order": "grouped"}, "give group the number of samples"),
        ({"order": "grouped", "group": 10**9}, "lower group"),
        ({"memory": 1}, "raise memory, or lower batch_size"),
        ({"batch_size": 500, "end": "drop"}, "with end drop, lower batch_size"),
    ],
)
def test_remedies_name_arguments(numbers, options, told):
    with pytest.raises(forebay.Error, match=told) as caught:
        forebay.Loader(numbers, **{"batch_size": 4, "decode": False, **options})
    assert "--" not in str(caught.value)
    assert "--" not in caught.value.remedy + caught.value.happened


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"batch": 3}, "give batch_size"),
        ({"shard": "0/2"}, "give ranks"),
        ({"list": "ids.txt"}, "give ids"),
        ({"memory": "1GiB", "stage_bytes": "1GiB"}, "give memory"),
        ({"memory": "lots"}, "^memory: 'lots'"),
        ({"stagedbytes": 1}, "did you mean stage_bytes"),
        ({"batch_size": True}, "whole number"),
        ({"threads": 1.5}, "threads is 1.5"),
        ({"threads": -1}, "threads is -1"),
        ({"transform": 3}, "transform is 3"),
        ({"collate": "stack"}, "collate is 'stack'"),
        ({"ranks": ("0", "2")}, "ranks is"),
        ({"ranks": (0.5, 2)}, "ranks is"),
        ({"order": "listed", "ids": [[1, 2], [3]]}, "no list of whole numbers"),
        ({"order": "listed", "ids": [3, -7]}, "-7 among the ids"),
        ({"order": "listed", "ids": [3, 1000]}, "sample 1000"),
    ],
)
def test_wrong_arguments_are_told(numbers, arguments, told):
    with pytest.raises(forebay.UsageError, match=told):
        forebay.Loader(numbers, **{"batch_size": 4, "decode": False, **arguments})


def test_wrong_states_are_told_and_change_nothing(numbers):
    loader = forebay.Loader(numbers, batch_size=4, decode=False)
    good = loader.state_dict()
    expected = [batch["sample"].tolist() for batch in loader]
    for wrong in (
        None, {}, [1], {**good, "epoch": "x"}, {**good, "epoch": -1}, {**good, "state": "abc"},
        {**good, "state": {}}, {**good, "state": {1, 2}}, {**good, "state": {"x": float("nan")}},
    ):  # fmt: skip
        loader = forebay.Loader(numbers, batch_size=4, decode=False)
        with pytest.raises(forebay.UsageError, match="state"):
            loader.load_state_dict(wrong)
        assert [batch["sample"].tolist() for batch in loader] == expected


def test_stored_values_of_a_file_that_was_cut_are_an_error(tmp_path):
    """Batches that were ready before have their values where the file had them."""
    content = {f"{i:06d}".encode(): bytes([1 + i % 255]) * 9000 for i in range(600)}
    path = write_lmdb(tmp_path / "cut.lmdb", content.items())
    loader = forebay.Loader(path, 8, keys=True, order="sequential", decode_ahead=8)
    with loader, pytest.raises(forebay.Error):
        for number, batch in enumerate(loader):
            for key, value in zip(batch["key"], batch["value"].tobytes()):
                assert value == content[key]
            if number == 3:
                os.truncate(tmp_path / "cut.lmdb" / "data.mdb", 2 * 4096)


def test_an_error_of_a_data_set_names_file_key_and_sample(tmp_path):
    pixels = np.arange(3 * 64 * 64, dtype=np.uint8).reshape(3, 64, 64)
    records = [
        (f"{i:06d}".encode(), b"no Datum" if i == 5 else datum(pixels, i)) for i in range(50)
    ]
    path = write_lmdb(tmp_path / "bad.lmdb", records)
    ds = forebay.Dataset(path)

    def place(index):
        with pytest.raises(forebay.Error) as caught:
            ds[index]
        return caught.value.file, caught.value.key, caught.value.sample

    assert place(5) == place([2, 5]) == (path, "000005", 5)
    ds[40]
    os.truncate(tmp_path / "bad.lmdb" / "data.mdb", 100 * 4096)
    file = str(tmp_path / "bad.lmdb" / "data.mdb")
    assert place(40) == place([1, 40]) == (file, "000040", 40)
    np.save(tmp_path / "bad.npy", np.zeros((100, 10)))
    ds = forebay.Dataset(tmp_path / "bad.npy")
    os.truncate(tmp_path / "bad.npy", 4000)
    assert place(90) == (str(tmp_path / "bad.npy"), None, 90)


@pytest.mark.parametrize("order", ["shuffled", "strided"])
@pytest.mark.parametrize("limit", [{"iterations": 3}, {"epochs": 1}])
def test_a_run_that_is_over_says_so(numbers, order, limit):
    """A limit is of the whole run: the epoch behind it must not be one without batches."""
    loader = forebay.Loader(numbers, 16, decode=False, order=order, seed=2, **limit)
    taken = [batch["sample"].tolist() for batch in loader]
    assert len(taken) == limit.get("iterations", len(loader))
    state = loader.state_dict()
    for _ in range(2):
        with pytest.raises(forebay.UsageError, match="the run is over") as caught:
            next(iter(loader))
        assert "iterations" in caught.value.remedy
    assert loader.state_dict() == state
    # A longer run goes on there.
    longer = forebay.Loader(numbers, 16, decode=False, order=order, seed=2, iterations=40)
    longer.load_state_dict(state)
    rest = [batch["sample"].tolist() for _ in range(2) for batch in longer]
    whole = forebay.Loader(numbers, 16, decode=False, order=order, seed=2)
    expected = [batch["sample"].tolist() for _ in range(3) for batch in whole]
    if order == "strided" and "epochs" in limit:  # its last batch was filled up
        expected = taken + expected
    assert taken + rest == expected[: len(taken) + len(rest)]


@pytest.mark.parametrize("limit", [{"iterations": 3}, {"epochs": 1}])
def test_an_epoch_behind_the_end_of_a_run_is_refused(numbers, limit):
    loader = forebay.Loader(numbers, 16, decode=False, **limit)
    next(iter(loader))  # given up: the next epoch is behind the end
    for _ in range(2):
        with pytest.raises(forebay.UsageError, match="the run is over"):
            next(iter(loader))
    loader.set_epoch(0)
    assert len(list(loader)) == limit.get("iterations", len(loader))
    loader.set_epoch(4)
    with pytest.raises(forebay.UsageError, match="the run is over"):
        next(iter(loader))
    with pytest.raises(forebay.UsageError, match="mix"):
        forebay.Mix({numbers: 1}, 16, decode=False, **limit)
