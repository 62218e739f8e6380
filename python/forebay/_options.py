"""From Python's arguments to the loader's options."""

from __future__ import annotations

import difflib
import operator
import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Optional, Union

from . import _core
from ._errors import usage
from ._launch import cores_of
from ._memory import whole_numbers

if TYPE_CHECKING:
    from ._ranks import Ranks

_ORDERS = ("shuffled", "sequential", "grouped", "in_memory", "listed", "strided")
_ENDS = ("pad", "drop", "wrap", "exact")

_OF_KEYS = ("leave-out", "keep-records")

#: Values that say "off" and "on" in the text form of options.
_SWITCH = {False: "off", True: "on"}


def text_of(value: Any) -> str:
    """An option's value in the text form that the command line shares; lists by commas."""
    if isinstance(value, bool):
        return _SWITCH[value]
    if isinstance(value, (bytes, os.PathLike)):
        return os.fsdecode(value)
    if isinstance(value, (list, tuple)):
        return ",".join(map(text_of, value))
    return str(value)


def _keys_text(value: Any) -> str:
    """Keys in a list may have commas."""
    if isinstance(value, (list, tuple)):
        return ",".join(text_of(each).replace(",", "\\,") for each in value)
    return text_of(value)


def loader_options(values: dict[str, Any], ids: Optional[Any] = None) -> Any:
    """Options of the C++ loader: ``stage_bytes=...`` is ``--stage-bytes``; None: the default."""
    options = _core.LoaderOptions()
    known = option_help()
    for name, value in values.items():
        if name.replace("-", "_") not in known:
            near = difflib.get_close_matches(name, known, 1)
            meant = f"did you mean {near[0]}? " if near else ""
            raise usage(
                f"there is no option {name!r}", f"{meant}forebay.option_help() has the names"
            )
        if value is not None:
            option = name.replace("_", "-")
            text = _keys_text(value) if option in _OF_KEYS else text_of(value)
            options.set(option, os.fsencode(text))
    if ids is not None:
        options.set_ids(_sample_ids(ids))
    return options


def _sample_ids(ids: Any) -> Any:
    import numpy as np

    numbers = whole_numbers(ids, "ids")
    if numbers.size and numbers.min() < 0:
        raise usage(f"{numbers.min()} among the ids is no sample", "give sample ids from 0")
    return np.ascontiguousarray(numbers, dtype=np.int64)


def whole_number(name: str, number: Any, least: int) -> int:
    """``number`` as an int; NumPy's count too. Raises UsageError."""
    try:
        if isinstance(number, bool):
            raise TypeError
        whole = operator.index(number)
    except TypeError:
        raise usage(f"{name} is {number!r}", "give a whole number") from None
    if not least <= whole < 1 << 48:
        raise usage(f"{name} is {number}", f"give {least} or more, below 2^48")
    return whole


def memory_bytes(memory: Union[int, str, None]) -> Optional[str]:
    """Bytes, or text as "2GiB"."""
    if memory is None:
        return None
    if isinstance(memory, int) and memory <= 0:
        raise usage(f"memory is {memory}", "give bytes, or text as '2GiB'")
    return str(memory)


def share_node(options: Any, processes: int) -> None:
    """Leaves each of so many processes, which do not know of each other, its part of the node."""
    if processes == 1:
        return
    options.stage_bytes //= processes
    if options.decode_threads == 0:
        options.decode_threads = cores_of(processes)


# Arguments of Loader that are options of another name, or none of one process's own.
_ARGUMENTS = {
    "batch": "batch_size or global_batch_size",
    "shard": "ranks=(rank, size)",
    "list": "ids",
    "stage_bytes": "memory",
}


def check_options(options: Iterable[str], memory: Any) -> None:
    """Raises UsageError for options that say what an argument says."""
    for name in options:
        same = _ARGUMENTS.get(name.replace("-", "_"))
        if same is not None and (same != "memory" or memory is not None):
            raise usage(f"{name} is not given so", f"give {same}")


def check_functions(transform: Any, collate: Any) -> None:
    """Raises UsageError for what is no function."""
    if transform is not None and not isinstance(transform, str) and not callable(transform):
        raise usage(f"transform is {transform!r}", "give None, text, or a function")
    if collate is not None and not callable(collate):
        raise usage(f"collate is {collate!r}", "give None or a function")


def check_choices(decode: Any, order: str, end: Optional[str], on_error: str, ids: Any) -> None:
    """Raises UsageError for a value that no loader has."""
    if decode is not None and not isinstance(decode, bool) and not callable(decode):
        raise usage(f"decode is {decode!r}", "give None, False, or a function")
    if order not in _ORDERS:
        raise usage(f"order is {order!r}", f"use one of {', '.join(_ORDERS)}")
    if end is not None and end not in _ENDS:
        raise usage(f"end is {end!r}", f"use one of {', '.join(_ENDS)}")
    if on_error not in ("raise", "skip"):
        raise usage(f"on_error is {on_error!r}", "use raise or skip")
    if (ids is not None) != (order == "listed"):
        raise usage("ids go with order='listed', and it with them", "give both or none")


def pipeline_options(
    ranks: Ranks,
    batch_size: Optional[int],
    global_batch_size: Optional[int],
    *,
    order: str,
    end: Optional[str],
    stored: bool,
    transform: Optional[str],
    skip: bool,
    memory: Union[int, str, None],
    described: dict[str, Any],
    options: dict[str, Any],
) -> dict[str, Any]:
    """Options of the C++ loader by name.

    ``stored``: values come as they are stored. ``described``: what the data set says of itself.
    """
    sequential = order == "sequential"
    ends = order != "strided" or bool(options.get("epochs"))
    named = {
        **described,
        "order": "shuffled" if sequential else order,
        "keep": 0 if sequential else None,
        "end": end or ("pad" if ends else None),
        "batch": global_batch(batch_size, global_batch_size, ranks.size),
        "stage_bytes": memory_bytes(memory),
        "decode": None if stored else True,
        "transform": transform,
        "undecodable": "skip" if skip and not stored else None,
        "shard": ranks.shard,
        **options,
    }
    if stored:
        named["codec"] = "bytes"
        # Of these it says what a sample is, decoded or not.
        if named.get("format") not in ("raw", "tokens"):
            named["schema"] = None
    return named


def option_help() -> dict[str, str]:
    """What every further keyword argument of Loader means, by name."""
    return {name.replace("-", "_"): text for name, _, text in _core.option_names()}


def global_batch(batch_size: Optional[int], global_batch_size: Optional[int], ranks: int) -> int:
    """Samples in a batch over all ranks."""
    if (batch_size is None) == (global_batch_size is None):
        raise usage(
            "either batch_size (of each rank) or global_batch_size (over all ranks) is needed",
            "give one of them",
        )
    if batch_size is not None:
        return whole_number("batch_size", batch_size, 1) * ranks
    return whole_number("global_batch_size", global_batch_size, ranks)
