"""The TensorFlow operation of DeepIO's front end (python/src/tensorflow/)."""

from __future__ import annotations

import functools
import hashlib
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Optional, Union

import numpy as np
import tensorflow as tf

from .._errors import make, usage
from .._memory import whole_numbers

_Path = Union[str, "os.PathLike[str]"]

_LIBRARY = Path(__file__).parents[1] / "_deepio.so"


def _unsupported(happened: str, remedy: str) -> Exception:
    return make("unsupported", f"{happened}: {remedy}", happened, remedy)


@functools.cache
def _operations() -> Any:
    """The operations of the library, which is loaded at the first call."""
    if not _LIBRARY.exists():
        raise _unsupported(
            "this forebay was built without TensorFlow's operation",
            "build it by a Python that has tensorflow: pip install --no-build-isolation "
            "--config-settings=cmake.define.FOREBAY_TENSORFLOW=ON .",
        )
    try:
        return tf.load_op_library(str(_LIBRARY))
    except (tf.errors.OpError, OSError) as error:
        raise _unsupported(
            f"the operation does not load into TensorFlow {tf.__version__} ({error})",
            "build forebay anew with this version",
        ) from error


def _indices(index_array: Any) -> Any:
    """As a tensor of ``int64``. Raises UsageError."""
    if not tf.is_tensor(index_array):
        numbers = whole_numbers(index_array, "index_array")
        return tf.convert_to_tensor(np.ascontiguousarray(numbers, np.int64))
    if not index_array.dtype.is_integer:
        raise usage(f"index_array is of {index_array.dtype.name}", "give a tensor of int64")
    return tf.cast(index_array, tf.int64)


def deepio_batch(
    index_array: Any,
    batch_size: int,
    element_size: int,
    count_per_read: int,
    dataset_filename_list: Union[str, os.PathLike[str], Sequence[Union[str, os.PathLike[str]]]],
    *,
    shared_name: Optional[str] = None,
) -> tf.Tensor:
    """The next ``batch_size`` elements that ``index_array`` names: ``uint8 [batch, element_size]``.

    A TensorFlow operation, for eager calls, ``tf.function`` and graphs. Each run continues where
    the one before it has ended in the same array; the last batch may be short; the run after it
    raises ``tf.errors.OutOfRangeError``. Another array starts at its beginning.

    Args:
        index_array: Numbers of elements over all files, as :func:`shuffle_rand` gives them.
        batch_size: Elements of a batch.
        element_size: Bytes of each element.
        count_per_read: Neighbours that one read fetches. Above 1, the ones that are not needed at
            once are read for nothing: for orders that keep neighbours together.
        dataset_filename_list: Files of elements, one behind the other. Each may be a URL of any
            storage plug-in.
        shared_name: Calls of one name share open files and the place in the array. Default: those
            with equal arguments do.

    Raises:
        UnsupportedError: The package was built without TensorFlow.
        tf.errors.OpError: InvalidArgumentError, NotFoundError or DataLossError, with the message of
            the library.
    """
    for name, value in (
        ("batch_size", batch_size),
        ("element_size", element_size),
        ("count_per_read", count_per_read),
    ):
        if value < 1:
            raise usage(f"{name} is {value}", "give at least 1")
    if isinstance(dataset_filename_list, (str, os.PathLike)):
        dataset_filename_list = [dataset_filename_list]
    files = [os.fspath(file) for file in dataset_filename_list]
    if not files:
        raise usage("dataset_filename_list is empty", "name at least one file")
    if shared_name is None:
        arguments = json.dumps([batch_size, element_size, count_per_read, files])
        shared_name = hashlib.sha256(arguments.encode()).hexdigest()
    return _operations().forebay_deepio_batch(
        index_array=_indices(index_array),
        batch_size=batch_size,
        element_size=element_size,
        count_per_read=count_per_read,
        files=files,
        shared_name=shared_name,
    )
