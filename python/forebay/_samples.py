"""What users' own functions do to samples, between the C++ loader and a batch."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Callable, Optional

from ._errors import Error, UserCodeError
from ._options import whole_number

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

#: A user's function for one stored value. Gets its bytes; of several parts, a dictionary of them.
Decode = Callable[[Any], Any]
#: A user's function for one sample: a dictionary from field to value, and what it becomes.
Transform = Callable[["dict[str, Any]"], "Mapping[str, Any]"]
#: Makes one value of a batch out of the values of its samples.
Collate = Callable[["Sequence[Any]"], Any]


_MOST_SKIPPED = 1000


class SampleCode:
    """Runs ``decode`` and ``transform`` on each sample of a batch, and puts the batch together.

    Errors name sample and key; with ``skip`` such samples are left out and listed.
    """

    def __init__(
        self,
        decode: Optional[Decode],
        transform: Optional[Transform],
        collate: Optional[Collate],
        skip: bool,
        threads: int,
    ) -> None:
        self._decode = decode
        self._transform = transform
        self._collate = collate
        self._skip = skip
        self._threads = whole_number("threads", threads, 0)  # 0: the caller's
        self._pool: Optional[ThreadPoolExecutor] = None
        self._names: tuple[str, ...] = ()  # of the fields, once a batch has had some
        self.skipped: dict[int, tuple[int, str, str]] = {}

    @property
    def runs(self) -> bool:
        """Whether samples are handled one by one."""
        return self._decode is not None or self._transform is not None

    def close(self) -> None:
        """Ends the threads."""
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)
            self._pool = None

    def apply(
        self,
        fields: dict[str, Any],
        ids: NDArray[np.int64],
        keys: Sequence[bytes],
        stored: Iterable[str],
    ) -> tuple[dict[str, Any], list[int]]:
        """The fields of the batch, and which of its samples are in it.

        ``stored`` names the fields that are bytes to decode.
        """
        names = tuple(stored)
        work = ((fields, i, int(ids[i]), keys[i], names) for i in range(len(ids)))
        if self._threads > 0 and self._pool is None:
            self._pool = ThreadPoolExecutor(self._threads, "forebay-user")
        run: Iterable[Any] = (
            self._pool.map(self._one, work) if self._pool is not None else map(self._one, work)
        )
        done: list[Mapping[str, Any]] = []
        kept: list[int] = []
        for i, result in enumerate(run):
            if isinstance(result, UserCodeError):
                if not self._skip:
                    raise result from result.__cause__
                self._note(result)
            else:
                done.append(result)
                kept.append(i)
        return self._together(done), kept

    def _one(self, work: tuple[dict[str, Any], int, int, bytes, tuple[str, ...]]) -> Any:
        fields, i, sample, key, stored = work
        try:
            return self._run({name: values[i] for name, values in fields.items()}, stored)
        except Error:
            raise
        except Exception as error:
            shown = key.decode("ascii", "backslashreplace")
            return UserCodeError.of(error, sample, shown)

    def _run(self, sample: dict[str, Any], stored: tuple[str, ...]) -> Mapping[str, Any]:
        if self._decode is not None:
            values = {name: memoryview(sample.pop(name)) for name in stored}
            decoded = self._decode(values["value"] if stored == ("value",) else values)
            if isinstance(decoded, Mapping):
                sample.update(decoded)
            else:
                sample["value"] = decoded
        if self._transform is None:
            return sample
        transformed = self._transform(sample)
        if not isinstance(transformed, Mapping):
            raise TypeError(f"transform has returned {type(transformed).__name__}, not a mapping")
        return transformed

    def _note(self, error: UserCodeError) -> None:
        assert error.sample is not None
        if len(self.skipped) < _MOST_SKIPPED:
            self.skipped[error.sample] = (error.sample, error.key or "", error.happened)

    def _together(self, samples: list[Mapping[str, Any]]) -> dict[str, Any]:
        if not samples:
            return {name: [] for name in self._names}
        self._names = tuple(samples[0])
        together = self._collate or collate
        try:
            return {name: together([sample[name] for sample in samples]) for name in self._names}
        except Error:
            raise
        except Exception as error:
            raise UserCodeError.of(error, None, "") from error


def collate(values: Sequence[Any]) -> Any:
    """One array where the values are numbers, or arrays of one shape; else the list as it is."""
    import numpy as np

    first = values[0]
    if all(isinstance(value, (int, float, np.number)) for value in values):
        return np.asarray(values)
    shape = getattr(first, "shape", None)
    if shape is None or any(getattr(value, "shape", None) != shape for value in values):
        return list(values)
    if type(first).__module__.startswith("torch"):
        import torch

        return torch.stack(list(values))
    if any(isinstance(value, np.ma.MaskedArray) for value in values):
        return np.ma.stack(values)
    return np.stack([np.asarray(value) for value in values])  # without classes of their own
