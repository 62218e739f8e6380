"""Forebay feeds distributed training from large files at the speed of the file system.

>>> import forebay
>>> for batch in forebay.Loader("train.lmdb", batch_size=256):
...     step(batch["image"], batch["label"])
"""

from ._batch import Batch, Field, Ragged
from ._core import version as __version__
from ._dataset import Dataset
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
from ._loader import Loader, Step
from ._mix import Mix
from ._options import option_help
from ._ranks import Ranks, find_ranks
from ._sync import Handle, Synchronizer

__all__ = [
    "Batch",
    "CancelledError",
    "ChangedError",
    "CommunicationError",
    "CorruptError",
    "Dataset",
    "Error",
    "Field",
    "Handle",
    "Loader",
    "Mix",
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
