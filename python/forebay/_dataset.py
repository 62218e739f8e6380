"""Data sets: how they are named, and single samples of them."""

from __future__ import annotations

import json
import operator
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Optional, Union, overload

from . import _core, _messages
from ._batch import Field, Ragged
from ._errors import changed, usage
from ._memory import whole_numbers
from ._options import loader_options

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ._loader import Loader

_Path = Union[str, bytes, "os.PathLike[str]", "os.PathLike[bytes]"]
#: What names a data set: a path, URL or pattern, several of them, or a Dataset.
DatasetLike = Union[_Path, Sequence[_Path], Mapping[str, _Path], "Dataset"]
#: What names classes: their names, or a data set that has some, or a file of them.
ClassesLike = Union[_Path, Sequence[str], "Dataset", "Loader"]


class Source(NamedTuple):
    """What the C++ library opens, and which fields of it are wanted (None: all)."""

    path: str
    options: dict[str, Any]
    fields: Optional[tuple[str, ...]]


def _in_two(name: str) -> tuple[str, str]:
    """The files that ``name`` begins with, where they exist, and ``#FIELDS``."""
    end = len(name)
    while end > 0:
        if os.path.exists(name[:end]):
            return name[:end], name[end:]
        end = name.rfind("#", 0, end)
    return "", name


def _rooted(name: str) -> str:
    """A file's name that also holds once the process works in another directory."""
    file, fields = _in_two(name)
    return name if "://" in name or not file else os.path.abspath(file) + fields


# What the C++ library takes for itself behind a backslash, and what else would part a name.
_MARKS = re.compile(r"([\\*?\[\]{},#&=])")
_PARTING = re.compile(r"[\\{},&]")


def apart(name: str) -> str:
    """``name`` as it stands between others: a file's name is taken as it is."""
    file, fields = _in_two(name)
    if _PARTING.search(file):
        return _MARKS.sub(r"\\\1", file) + fields
    return name


def split_fields(name: str) -> tuple[str, str]:
    """The files, and "#FIELDS" or nothing."""
    file, fields = _in_two(name)
    if not file:
        file, mark, fields = name.partition("#")
        fields = mark + fields
    return file, fields


def _text(path: Any) -> str:
    if not isinstance(path, (str, bytes, os.PathLike)):
        raise usage(f"{path!r} is no path", "give a str, bytes or a pathlib.Path")
    return _rooted(os.fsdecode(path))


def _plain(path: Any, mark: str) -> str:
    """One of several paths, which are named together, with ``mark`` between them."""
    name = apart(_text(path))
    if mark in re.sub(r"\\.|\{[^}]*\}", "", name):
        raise usage(
            f"'{name}' has a '{mark}', which stands between names",
            "put a backslash before it where it is part of one",
        )
    return name


def _name(path: Any) -> str:
    """The name that the command line would be given; bytes that are no text are escaped."""
    if isinstance(path, (str, bytes, os.PathLike)):
        return _text(path)
    if isinstance(path, Mapping):
        return "&".join(f"{part}={_plain(each, '&')}" for part, each in path.items())
    if not isinstance(path, Sequence) or isinstance(path, bytearray):
        raise usage(f"{path!r} names no data set", "give a path, several, or a Dataset")
    if len(path) == 0:
        raise usage("the list of paths is empty", "name at least one file or database")
    if len(path) == 1:
        return _text(path[0])
    return ",".join(_plain(each, ",") for each in path)


def require_free_names(fields: Sequence[str], taken: Sequence[str]) -> None:
    """Raises UsageError where a field is called as something else that batches have."""
    for name in taken:
        if name in fields:
            raise usage(
                f"a field is called '{name}', as something else in batches",
                "give it another name: FILE#NEW=NAME for files with fields, or the part's",
            )


def raw_parts(parts: Sequence[str], fields: Sequence[Field]) -> dict[str, int]:
    """Parts of a value that have no decoded field, by name; without parts, all of it."""
    if not parts:
        return {} if fields else {"value": 0}
    decoded = set()
    for field in fields:  # is called as its part, or "part.field"; parts may have dots themselves
        named = [part for part in parts if f"{field.name}.".startswith(f"{part}.")]
        decoded.add(max(named, key=len, default=""))
    return {part: i for i, part in enumerate(parts) if part not in decoded}


class Dataset:
    """A data set to look samples up in, in this process alone.

    LMDB, HDF5, NumPy, tar, zip and TFRecord files, folders of files, or records.

    >>> ds = forebay.Dataset("train.lmdb")
    >>> len(ds), ds[5]["image"].shape, ds[[5, 1, 5, 0]]["label"]

    ``ds[i]`` is a dictionary of fields, ``ds[[5, 1, 5, 0]]`` and ``ds[10:20]`` dictionaries of
    arrays. Lists, arrays and tensors of whole numbers index, and masks as long as the data set.
    Values that are no Datum, image or declared tensor come as they are stored, as ``uint8``
    arrays under ``value`` (or the names of their parts).

    It takes no lock, writes nothing, works in read-only directories and in any number of processes
    at once; it may be used after a fork, and pickled (which reopens it).

    Args:
        path: A path, URL or pattern; a list of them, which is one data set after the other; or
            ``{"lq": path, "gt": path}``: databases with equal keys, as parts of one sample.
        fields: The fields that are wanted; None: all.
        convention: How records make samples: ``auto`` recognises and ``info()`` tells; see the page
            on conventions.
        leave_out: Of LMDB, keys or patterns of records that are no samples, beside those that are
            recognised; as text with commas, or a list.
        keep_records: Of LMDB, those of records that are samples, whatever their keys look like.
        order_by: ``key`` (by bytes) or ``number`` (for keys like "9", "10").
        decode: Whether values are decoded; else all come as they are stored.
        classes: What the classes have to be numbered as: the training set (a path, Dataset or
            Loader), a file with the name of one class a line, or a list of names. Raises
            :class:`UsageError` where this data set numbers one otherwise, or names none.
        options: Any option of the command line that says what files are, as ``schema``, ``codec``,
            ``format``, ``header_bytes``.
    """

    def __init__(
        self,
        path: Union[_Path, Sequence[_Path], Mapping[str, _Path]],
        fields: Optional[Sequence[str]] = None,
        *,
        convention: str = "auto",
        order_by: str = "key",
        leave_out: Union[str, Sequence[str], None] = None,
        keep_records: Union[str, Sequence[str], None] = None,
        decode: bool = True,
        classes: Optional[ClassesLike] = None,
        **options: Any,
    ) -> None:
        self._path = _name(path)
        self._fields = None if fields is None else tuple(fields)
        self._decode = decode
        self._options = {
            "convention": None if convention == "auto" else convention,
            "order_by": None if order_by == "key" else order_by,
            "leave_out": leave_out,
            "keep_records": keep_records,
            **options,
        }
        if not decode:  # whatever a codec would make of them
            self._options["codec"] = "bytes"
        self._open()
        require_same_numbers(classes, self._path, self.classes)

    def _open(self) -> None:
        self._process = os.getpid()
        options = loader_options(self._options)
        try:
            self._core: Any = _core.open_samples(os.fsencode(self._path), options)
        finally:
            _messages.tell()
        self._entries = int(self._core.entries())
        schema = [Field(*field) for field in self._core.schema()] if self._decode else []
        raw = raw_parts(self._core.parts(), schema)
        if self._fields is not None:
            known = [field.name for field in schema] + list(raw)
            for name in self._fields:
                if name not in known:
                    raise usage(f"there is no field {name!r} among {', '.join(known)}", "name some")
            schema = [field for field in schema if field.name in self._fields]
            raw = {name: part for name, part in raw.items() if name in self._fields}
        self._schema = schema
        self._raw = raw

    def _samples(self) -> Any:
        """A child of a fork opens its own: a thread of its parent may have been in the middle."""
        if os.getpid() != self._process:
            self._of_parent = self._core  # never ended here
            before = self._core.fingerprint()
            self._open()
            if self._core.fingerprint() != before:
                raise changed(self._path)
        return self._core

    @property
    def source(self) -> Source:
        """What a Loader opens."""
        return Source(self._path, self._options, self._fields)

    @property
    def path(self) -> str:
        """The name of the data set as the command line takes it."""
        return self._path

    @property
    def schema(self) -> list[Field]:
        """The decoded fields."""
        return list(self._schema)

    @property
    def classes(self) -> list[str]:
        """Names of what labels number, by their numbers; empty where they are not known."""
        return [os.fsdecode(name) for name in self._samples().classes()]

    @property
    def fingerprint(self) -> str:
        """Identity of the content, equal in every process that sees the same data set."""
        return str(self._samples().fingerprint())

    def __len__(self) -> int:
        return self._entries

    def keys(self) -> list[bytes]:
        """Keys of all samples, in order; empty where samples have none. Reads no values."""
        keys: list[bytes] = self._samples().keys()
        return keys

    def key(self, index: int) -> bytes:
        """The key of one sample."""
        return bytes(self._samples().key(self._checked(index)))

    def info(self) -> dict[str, Any]:
        """Format, convention and why, counts, sizes, and records that are no samples."""
        told: dict[str, Any] = json.loads(self._samples().info())
        return told

    def _checked(self, index: int) -> int:
        index = operator.index(index)
        if not -self._entries <= index < self._entries:
            raise IndexError(f"sample {index} of {self._entries}")
        return index % self._entries

    @overload
    def __getitem__(self, index: int) -> dict[str, Any]: ...
    @overload
    def __getitem__(self, index: slice) -> dict[str, Any]: ...
    @overload
    def __getitem__(self, index: Sequence[int]) -> dict[str, Any]: ...
    def __getitem__(self, index: Union[int, slice, Sequence[int]]) -> dict[str, Any]:
        import numpy as np

        if isinstance(index, slice):
            return self._read(np.arange(*index.indices(self._entries), dtype=np.int64))
        ids = whole_numbers(index, "index", masks=True, single=True)
        if ids.ndim == 0:
            one = self._read(np.array([self._checked(int(ids))], np.int64))
            return {name: values[0] for name, values in one.items()}
        if ids.dtype == bool:
            if ids.shape != (self._entries,):
                raise IndexError(f"a mask of {ids.shape} for {self._entries} samples")
            ids = np.flatnonzero(ids)
        if ids.size and (ids.min() < -self._entries or ids.max() >= self._entries):
            raise IndexError(f"samples {ids.min()} to {ids.max()} of {self._entries}")
        ids = ids.astype(np.int64)
        return self._read(np.where(ids < 0, ids + self._entries, ids))

    #: What DataLoader calls for a batch, where it can.
    def __getitems__(self, indices: Sequence[int]) -> list[dict[str, Any]]:
        together = self[indices]
        return [{name: values[i] for name, values in together.items()} for i in range(len(indices))]

    def _read(self, ids: NDArray[np.int64]) -> dict[str, Any]:
        import numpy as np

        fields, raw = self._samples().read(
            np.ascontiguousarray(ids), bool(self._schema), list(self._raw.values())
        )
        wanted: dict[str, Any] = {field.name: fields[field.name] for field in self._schema}
        for name, (data, offsets) in zip(self._raw, raw):
            wanted[name] = Ragged(data, offsets)
        return wanted

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for first in range(0, self._entries, _AT_ONCE):
            together = self[first : first + _AT_ONCE]
            for i in range(min(_AT_ONCE, self._entries - first)):
                yield {name: values[i] for name, values in together.items()}

    def __getstate__(self) -> dict[str, Any]:
        return {
            "_path": self._path,
            "_fields": self._fields,
            "_decode": self._decode,
            "_options": self._options,
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._open()

    def __repr__(self) -> str:
        fields = ", ".join([f.name for f in self._schema] + list(self._raw))
        return f"Dataset({self._path!r}: {self._entries} samples of {fields})"


_AT_ONCE = 64


def require_same_numbers(wanted: Optional[ClassesLike], path: str, classes: Sequence[str]) -> None:
    """Raises UsageError where ``path`` numbers a class otherwise than ``wanted`` does."""
    if wanted is None:
        return
    of, remedy = "the names given", ""
    if isinstance(wanted, (str, bytes, os.PathLike)):
        of = _name(wanted)
        names: list[bytes] = _core.class_names_of(os.fsencode(of))
    elif isinstance(wanted, Dataset):
        of = wanted.path
        names = [os.fsencode(name) for name in wanted.classes]
    elif isinstance(wanted, Sequence):
        names = [os.fsencode(str(name)) for name in wanted]
        remedy = "write these names to FILE, one a line, and pack it with '--classes FILE'"
    else:
        of = wanted._source.path
        names = [os.fsencode(name) for name in wanted.classes]
    for place, have in ((of, names), (path, classes)):
        if not have:
            raise usage(
                f"{place} does not name its classes, which are to be compared",
                "pack it from folders (pack --classes gives it names), or leave classes out",
            )
    _core.require_same_numbers(
        os.fsencode(of), names, os.fsencode(path), [os.fsencode(name) for name in classes], remedy
    )


def resolve(dataset: DatasetLike) -> Source:
    """What a Loader opens for ``dataset``."""
    if isinstance(dataset, Dataset):
        return dataset.source
    return Source(_name(dataset), {}, None)
