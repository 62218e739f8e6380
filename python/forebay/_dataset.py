"""Data sets, and how they are named."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, NamedTuple, Union


class Source(NamedTuple):
    """What the C++ library opens."""

    path: str
    options: dict[str, Any]


DatasetLike = Union[str, "os.PathLike[str]", Sequence[Union[str, "os.PathLike[str]"]]]


def resolve(dataset: DatasetLike) -> Source:
    """Names `dataset` as the command line would."""
    if isinstance(dataset, (str, os.PathLike)):
        return Source(os.fspath(dataset), {})
    return Source(",".join(os.fspath(each) for each in dataset), {})
