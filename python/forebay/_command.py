"""The command `forebay`, which is installed with the package."""

from __future__ import annotations

import os
import sys
from pathlib import Path


def main() -> None:
    """Becomes the program."""
    program = Path(__file__).parent / "bin" / "forebay"
    try:
        os.execv(program, ["forebay", *sys.argv[1:]])
    except OSError as error:
        sys.exit(f"forebay: {program}: {error.strerror}: install the package anew")
