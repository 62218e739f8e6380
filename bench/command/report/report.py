#!/usr/bin/python3
"""Draws the figures of a benchmark's results on one HTML page: what `forebay-bench report` runs.

The exit status is 0, 1 when it failed, 2 when the command line makes no sense.
"""

import argparse
import sys

from results import ReportError, load


def fail(message, status=1):
    print(f"forebay: error: {message}", file=sys.stderr)
    sys.exit(status)


def parse_arguments():
    parser = argparse.ArgumentParser(prog="forebay-bench report", description=__doc__)
    parser.add_argument("--output", required=True)
    parser.add_argument("results")
    return parser.parse_args()


def main():
    arguments = parse_arguments()
    try:
        results = load(arguments.results)
    except ReportError as error:
        fail(error)
    try:
        # Only now: a wrong file is told from a missing library.
        import figures  # pylint: disable=import-outside-toplevel
        import page  # pylint: disable=import-outside-toplevel
    except ImportError as error:
        fail(f"{error}; install matplotlib (Debian: python3-matplotlib)")
    try:
        page.write(arguments.output, page.render(results, figures.draw_all(results)))
    except OSError as error:
        fail(f"{arguments.output}: {error.strerror}; check the path and the free space")
    print(arguments.output)


if __name__ == "__main__":
    main()
