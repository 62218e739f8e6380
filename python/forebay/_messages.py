"""What the library has to say: what a data set leaves out, what was guessed, what is slow.

Messages go to the logger ``forebay``, each text once in a process. Without a handler of the
program, Python writes warnings to standard error.
"""

from __future__ import annotations

import logging

from . import _core
from ._wording import for_python

_logger = logging.getLogger("forebay")
_LEVELS = (logging.DEBUG, logging.INFO, logging.WARNING, logging.ERROR)
_MOST_KNOWN = 10_000
_told: set[str] = set()


def tell() -> None:
    """Hands on what was said since the last call."""
    for level, text in _core.take_messages():
        if text in _told:
            continue
        if len(_told) < _MOST_KNOWN:
            _told.add(text)
        _logger.log(_LEVELS[level], "%s", for_python(text))
