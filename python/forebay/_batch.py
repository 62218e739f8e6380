"""What a loader yields."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Union, overload

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class Field(NamedTuple):
    """A decoded field of every sample."""

    name: str
    type: str
    shape: tuple[int, ...]


class Ragged(Sequence["NDArray[Any]"]):
    """Values of different lengths: one array of bytes or numbers, and where each begins.

    A sequence of arrays, which are views: nothing is copied. A value may be empty.

    Attributes:
        data: All values, one behind the other: ``uint8``, or numbers of the type that they have.
        offsets: Where each value begins, and the end of the last; ``int64``, one more than values.
    """

    __slots__ = ("data", "offsets")

    def __init__(self, data: NDArray[Any], offsets: NDArray[np.int64]) -> None:
        self.data = data
        self.offsets = offsets

    def __len__(self) -> int:
        return max(len(self.offsets) - 1, 0)

    @overload
    def __getitem__(self, index: int) -> NDArray[Any]: ...
    @overload
    def __getitem__(self, index: slice) -> list[NDArray[Any]]: ...
    def __getitem__(self, index: Union[int, slice]) -> Union[NDArray[Any], list[NDArray[Any]]]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        count = len(self)
        if index < 0:
            index += count
        if not 0 <= index < count:
            raise IndexError(f"value {index} of {count}")
        return self.data[self.offsets[index] : self.offsets[index + 1]]

    def __iter__(self) -> Iterator[NDArray[Any]]:
        for i in range(len(self)):
            yield self[i]

    def tobytes(self) -> list[bytes]:
        """The values as bytes objects."""
        return [value.tobytes() for value in self]

    def __repr__(self) -> str:
        return f"Ragged({len(self)} values, {self.data.nbytes} bytes)"


class Batch(dict[str, Any]):
    """A dictionary from field to values, with ``sample`` and ``padded`` beside the fields.

    ``sample`` has the ids (``int64``), ``padded`` is true (``bool``) for samples that only fill the
    last batch of an epoch.

    Attributes:
        epoch: Of the first sample, from 0.
        iteration: Counted over the run, from 0.
    """

    epoch: int
    iteration: int

    def __init__(self, fields: dict[str, Any], epoch: int, iteration: int) -> None:
        super().__init__(fields)
        self.epoch = epoch
        self.iteration = iteration

    def __reduce__(self) -> tuple[Any, ...]:
        return (Batch, (dict(self), self.epoch, self.iteration))
