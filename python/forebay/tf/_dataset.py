"""A loader's batches as a ``tf.data.Dataset``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Optional

import numpy as np
import tensorflow as tf

from .._batch import Ragged
from .._errors import usage
from .._loader import Loader
from .._memory import plain_array

_RAGGED = ("ragged", "string")


def dataset(
    loader: Loader, *, ragged: str = "ragged", output_signature: Optional[Any] = None
) -> tf.data.Dataset:
    """The batches of ``loader``: dictionaries of tensors, one epoch an iteration.

    Every iteration of the data set is the loader's next epoch, in an order of its own. At most one
    iterator is used at a time, as with the loader. TensorFlow copies each batch once.

    Args:
        loader: Of NumPy arrays: without ``device``.
        ragged: What values of different lengths become: ``ragged``: ``tf.RaggedTensor`` of
            ``uint8``; ``string``: a ``tf.string`` tensor, as the functions of ``tf.io`` take it.
        output_signature: Needed for loaders with functions of the user's (``decode``,
            ``transform``, ``collate``), whose results nobody can know before: a dictionary of
            ``tf.TensorSpec``. Only what it names is delivered.
    """
    if ragged not in _RAGGED:
        raise usage(f"ragged is {ragged!r}", f"use one of {', '.join(_RAGGED)}")
    if loader._device is not None:
        raise usage("the loader makes torch tensors", "open it without device")
    if output_signature is None:
        output_signature = _signature(loader, ragged)

    def epoch() -> Iterator[dict[str, Any]]:
        for batch in loader:
            yield {name: _value(name, batch[name], ragged) for name in output_signature}

    return tf.data.Dataset.from_generator(epoch, output_signature=output_signature)


def _signature(loader: Loader, ragged: str) -> dict[str, Any]:
    if loader._content.code.runs or loader._content.collate is not None:
        raise usage(
            "what the loader's functions return has no known shape",
            "give output_signature={field: tf.TensorSpec(...)}",
        )
    signature: dict[str, Any] = {
        field.name: tf.TensorSpec((None, *field.shape), _DTYPES.get(field.type, field.type))
        for field in loader.schema
    }
    for name in loader._content.raw:
        signature[name] = (
            tf.TensorSpec((None,), tf.string)
            if ragged == "string"
            else tf.RaggedTensorSpec((None, None), tf.uint8, 1, tf.int64)
        )
    signature["sample"] = tf.TensorSpec((None,), tf.int64)
    signature["padded"] = tf.TensorSpec((None,), tf.bool)
    if loader._content.keys:
        signature["key"] = tf.TensorSpec((None,), tf.string)
    if loader._content.seeds:
        signature["seed"] = tf.TensorSpec((None,), tf.uint64)
    return signature


#: Types of fields, as the schema names them.
_DTYPES = {
    "u8": tf.uint8,
    "i8": tf.int8,
    "u16": tf.uint16,
    "i16": tf.int16,
    "u32": tf.uint32,
    "i32": tf.int32,
    "u64": tf.uint64,
    "i64": tf.int64,
    "f16": tf.float16,
    "f32": tf.float32,
    "f64": tf.float64,
}


def _value(name: str, value: Any, ragged: str) -> Any:
    if isinstance(value, np.ndarray):
        return plain_array(value, f"field {name}")
    if not isinstance(value, Ragged):
        return value
    if ragged == "string":
        return value.tobytes()
    return tf.RaggedTensor.from_row_splits(value.data, value.offsets, validate=False)
