"""What Forebay raises: one class, with a subclass for each kind of failure.

Each is also a built-in exception of the same meaning, so ``except FileNotFoundError`` works.
"""

from __future__ import annotations

import json
from typing import Any, Optional, TypeVar

from ._wording import for_python

_Error = TypeVar("_Error", bound="Error")


class Error(Exception):
    """A failure: one line that says where, what happened, and what to do about it.

    Attributes:
        kind: ``usage``, ``not_found``, ``corrupt``, ``unsupported``, ``io``, ``communication``,
            ``changed`` or ``cancelled``.
        happened: What went wrong.
        remedy: What to do about it; may be empty.
        file: The file it is about, if one is.
        offset: Bytes from the start of ``file``.
        sample: The sample's id.
        key: The sample's key, printable.
        rank: The rank that failed first.
    """

    kind = "io"
    happened: str = ""
    remedy: str = ""
    file: Optional[str] = None
    offset: Optional[int] = None
    sample: Optional[int] = None
    key: Optional[str] = None
    rank: Optional[int] = None

    def __str__(self) -> str:
        # OSError would show a number and a text.
        return str(self.args[0]) if self.args else ""

    def _told(self: _Error, **facts: Any) -> _Error:
        """With what is known of it."""
        self.__dict__.update(facts)
        return self

    def __reduce__(self) -> tuple[object, ...]:
        return (type(self), self.args, self.__dict__)


class UsageError(Error, ValueError):
    """The call makes no sense: fix it."""

    kind = "usage"


class NotFoundError(Error, FileNotFoundError):
    """The named thing does not exist."""

    kind = "not_found"


class CorruptError(Error, ValueError):
    """Bytes in a file contradict their format."""

    kind = "corrupt"


class UnsupportedError(Error, NotImplementedError):
    """Valid, but not something that Forebay reads."""

    kind = "unsupported"


class StorageError(Error, OSError):
    """The operating system or the device failed."""

    kind = "io"


class CommunicationError(Error, RuntimeError):
    """MPI failed, a rank died, or a wait passed its deadline."""

    kind = "communication"


class ChangedError(Error, RuntimeError):
    """The data set was changed while it was open, or is not the one that a state belongs to."""

    kind = "changed"


class CancelledError(Error, RuntimeError):
    """The object was shut down while the call was waiting."""

    kind = "cancelled"


class UserCodeError(Error, RuntimeError):
    """A function of the user's (decode, transform, collate) has raised; the cause is chained."""

    kind = "user_code"

    @classmethod
    def of(cls, cause: Exception, sample: Optional[int], key: str) -> UserCodeError:
        """For the sample with this id and key; None: for a batch."""
        happened = f"{type(cause).__name__}: {cause}"
        remedy = "mend the function, or give on_error='skip'"
        place = "a batch" if sample is None else f"sample {sample}"
        place += f", key {key}" if key else ""
        error = cls(f"{place}: {happened}: {remedy}")
        error.__cause__ = cause
        return error._told(happened=happened, remedy=remedy, sample=sample, key=key or None)


_CLASSES = {cls.kind: cls for cls in Error.__subclasses__()}


def make(
    kind: str,
    message: str,
    happened: str,
    remedy: str = "",
    file: Optional[str] = None,
    offset: Optional[int] = None,
    sample: Optional[int] = None,
    key: Optional[str] = None,
    rank: Optional[int] = None,
) -> Error:
    """The exception for an error of the C++ library, which calls this."""
    told = f"{happened}; {remedy}" if remedy else happened
    if message.endswith(told):  # in front of it stand names of files, which stay as they are
        message = message[: len(message) - len(told)] + for_python(told)
    return _CLASSES.get(kind, Error)(message)._told(
        happened=for_python(happened),
        remedy=for_python(remedy),
        file=file,
        offset=offset,
        sample=sample,
        key=key,
        rank=rank,
    )


def serialized(error: Error) -> str:
    """The text form in which the C++ library sends errors to other ranks."""
    place = {"offset": error.offset, "sample": error.sample}
    return json.dumps(
        {
            "kind": error.kind,
            "happened": error.happened or str(error),
            "remedy": error.remedy,
            "file": error.file or "",
            "key": error.key or "",
            "rank": -1 if error.rank is None else error.rank,
            **{name: number for name, number in place.items() if number is not None},
        }
    )


def usage(happened: str, remedy: str) -> UsageError:
    """A call that makes no sense, in the words of the library's own errors."""
    return UsageError(f"{happened}: {remedy}")._told(happened=happened, remedy=remedy)


def changed(path: str) -> ChangedError:
    """A data set that is not what it was when it was opened."""
    happened, remedy = "the data set was changed since it was opened", "open it anew"
    error = ChangedError(f"{path}: {happened}: {remedy}")
    return error._told(happened=happened, remedy=remedy, file=path)
