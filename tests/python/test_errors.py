"""Errors speak of Python's arguments, not of the command line's."""

import forebay
import pytest
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
