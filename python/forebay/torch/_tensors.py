"""Batches as tensors, without a copy; and on their way to a device one batch ahead."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator
from typing import Any, Optional

import numpy as np
import torch

from .._batch import Batch
from .._errors import usage
from .._loader import Loader as ArrayLoader
from .._memory import plain_array

#: Types that torch has no tensors of, and the next wider ones that it has.
_WIDER = {
    np.dtype(np.uint16): np.int32,
    np.dtype(np.uint32): np.int64,
    np.dtype(np.uint64): np.int64,
}


def _tensor(name: str, value: Any, pin: bool) -> Any:
    if not isinstance(value, np.ndarray):
        return value
    array = plain_array(value, f"field {name}")
    wider = _WIDER.get(array.dtype)
    if wider is not None:
        array = array.astype(wider)
    elif not array.flags.writeable or any(s < 0 or s % array.itemsize for s in array.strides):
        array = array.copy()  # torch has no such tensors
    try:
        tensor = torch.from_numpy(array)
    except TypeError as error:
        raise usage(
            f"field {name} has no tensor ({error})", "return numbers from transform and collate"
        ) from None
    return tensor.pin_memory() if pin else tensor


def as_tensors(batch: Batch, pin_memory: bool = False) -> Batch:
    """The same batch with tensors in place of arrays, over the same memory.

    Unsigned integers of 16 bits and more become the next wider signed ones (copied). With
    ``pin_memory`` tensors are copied to page-locked memory.
    """
    fields = {name: _tensor(name, value, pin_memory) for name, value in batch.items()}
    return Batch(fields, batch.epoch, batch.iteration)


def _sent(batch: Batch, device: torch.device, pin: bool) -> Batch:
    def send(value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return value.to(device, non_blocking=pin)
        return value

    tensors = as_tensors(batch, pin)
    return Batch({k: send(v) for k, v in tensors.items()}, batch.epoch, batch.iteration)


def _on_the_way(source: Iterable[Batch], device: torch.device) -> Generator[Batch, None, None]:
    """Copies the next batch on a stream of its own while the present one is used."""
    stream = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
    loader = source if isinstance(source, ArrayLoader) else None
    batches = _each(source)

    def start() -> tuple[Optional[Batch], Optional[str]]:
        batch = next(batches, None)
        if batch is None:
            return None, None
        with torch.cuda.stream(stream):
            return _sent(batch, device, True), loader._pipelines.ahead() if loader else None

    try:
        coming, state = start()
        while coming is not None:
            current = torch.cuda.current_stream(device)
            current.wait_stream(stream)  # type: ignore[no-untyped-call]
            batch = coming
            for value in batch.values():
                if isinstance(value, torch.Tensor):
                    value.record_stream(current)  # its memory is not given away while it is used
            if loader:
                loader._pipelines.yielded = state  # what is on the way was not yielded
            coming, state = start()
            yield batch
    finally:
        if loader and loader._pipelines.core is not None and coming is None:
            loader._pipelines.yielded = None


def _each(source: Iterable[Batch]) -> Iterator[Batch]:
    return source._iterate() if isinstance(source, ArrayLoader) else iter(source)


def to_device(
    batches: Iterable[Batch], device: Any, pin_memory: Optional[bool] = None
) -> Iterator[Batch]:
    """Batches as tensors on ``device``. On CUDA, each is copied while the one before is used."""
    where = torch.device(device)
    if where.type == "cuda" and pin_memory is not False:
        return _on_the_way(batches, where)
    pin = bool(pin_memory)
    if where.type == "cpu":
        return (as_tensors(batch, pin) for batch in _each(batches))
    return (_sent(batch, where, pin) for batch in _each(batches))


class Loader(ArrayLoader):
    """:class:`forebay.Loader` whose batches hold tensors.

    ``device`` defaults to ``"cpu"``, whose tensors share the loader's memory. ``pin_memory`` copies
    them to page-locked memory, for those who send them on themselves.
    """

    def __init__(
        self, *args: Any, device: Any = "cpu", pin_memory: Optional[bool] = None, **options: Any
    ) -> None:
        self._torch_device = device
        self._pin_memory = pin_memory
        super().__init__(*args, **options)

    def __iter__(self) -> Iterator[Batch]:
        return to_device(self, self._torch_device, self._pin_memory)
