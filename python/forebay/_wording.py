"""Errors of the C++ library name options as the command line spells them; here as Python does."""

from __future__ import annotations

import re
from functools import cache

# Where Python's argument is not the option's name with underscores.
_ARGUMENTS = {
    "batch": "batch_size",
    "stage-bytes": "memory",
    "list": "ids",
    "undecodable": "on_error",
    "codec bytes": "decode=False",
}
# Between quotes are commands for the shell, which stay.
_NAMED = re.compile(r"[a-z]+(?:-[a-z]+)*(?=: )")
_FLAG = re.compile(r"'[^']*'|(?<![\w-])--(codec bytes\b|[a-z]+(?:-[a-z]+)*)")


@cache
def _options() -> frozenset[str]:
    from . import _core

    return frozenset(name for name, _, _ in _core.option_names())


def _argument(found: re.Match[str]) -> str:
    option = found[1]
    if option is None or option.split(" ")[0] not in _options():
        return found[0]
    return _ARGUMENTS.get(option, option.replace("-", "_"))


def for_python(text: str) -> str:
    """``text`` with Python's names of options: ``--gap-bytes`` is ``gap_bytes``.

    An option's name may also begin it: ``stage-bytes: '5x' has an unknown unit``.
    """
    named = _NAMED.match(text)
    if named is not None and named[0] in _options():
        text = _ARGUMENTS.get(named[0], named[0].replace("-", "_")) + text[named.end() :]
    return _FLAG.sub(_argument, text) if "--" in text else text
