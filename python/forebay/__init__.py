"""Forebay feeds distributed training from large files at the speed of the file system.

>>> import forebay
>>> for batch in forebay.Loader("train.lmdb", batch_size=256):
...     step(batch["image"], batch["label"])
"""

from ._batch import Batch, Ragged
from ._core import version as __version__
from ._errors import (
    CancelledError,
    ChangedError,
    CommunicationError,
    CorruptError,
    Error,
    NotFoundError,
    StorageError,
    UnsupportedError,
    UsageError,
    UserCodeError,
)
from ._loader import Field, Loader, Step
from ._options import option_help
from ._ranks import Ranks, find_ranks
from ._sync import Handle, Synchronizer

__all__ = [
    "Batch",
    "CancelledError",
    "ChangedError",
    "CommunicationError",
    "CorruptError",
    "Error",
    "Field",
    "Handle",
    "Loader",
    "NotFoundError",
    "Ragged",
    "Ranks",
    "Step",
    "StorageError",
    "Synchronizer",
    "UnsupportedError",
    "UsageError",
    "UserCodeError",
    "__version__",
    "find_ranks",
    "option_help",
]
