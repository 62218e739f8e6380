#!/usr/bin/env python3
"""Checks that includes point only left: a room of src/ uses itself and the rooms before it.

  core, storage, format, order, comm, read, exchange, loader, program, measure, cli
                                  sync (needs core and comm alone)              train

cli/ and train/ are programs, side by side at the right end; what they share is in program/ and
measure/. nets/ (tables of networks) needs core and sync; bench/, outside of src/, is a program like
them and the only one that may use itself. python/src may use the library alone.

Public headers (include/forebay/) belong to the room that implements them, never include internal
headers, and only forebay/mpi.hpp includes mpi.h. Inside src/ only comm/mpi/, which becomes the MPI
backends, may include it: the library is compiled without MPI. Programs (cli/, train/, and what they
share) may start MPI through forebay/mpi_session.hpp; those of bench/ may call it.

usage: check_includes.py [ROOT]
"""

import pathlib
import re
import sys

ROOMS = ["core", "storage", "format", "order", "comm", "read", "exchange", "loader",
         "program", "measure"]
NEEDS = {room: set(ROOMS[: i + 1]) for i, room in enumerate(ROOMS)}
NEEDS["comm/mpi"] = NEEDS["comm"]
NEEDS["sync"] = {"core", "comm", "sync"}
NEEDS["nets"] = {"core", "sync", "nets"}
NEEDS |= {end: NEEDS["measure"] | {"sync", "nets", end} for end in ("cli", "train", "bench")}
NEEDS["python"] = NEEDS["loader"] | {"sync", "python"}

# The room behind each public header.
PUBLIC = {
    "error": "core", "log": "core", "tensor": "core", "statistics": "core", "trace": "core",
    "placement": "core",  # plan_cores() itself is in comm
    "storage": "storage", "storage_plugin": "storage",
    "dataset": "format", "packed_parts": "format", "transform": "format",
    "order": "order", "epoch_order": "order", "randomization": "order", "sample_seed": "order",
    "communicator": "comm", "connect": "comm", "mpi": "comm", "mpi_session": "comm", "rendezvous": "comm",
    "options": "read", "samples": "read",
    "loader": "loader",
    "graph": "sync", "parameter_server": "sync", "sync": "sync",
    "sync_agreement": "sync",
}
# Compiled with an MPI's header: all that needs it.
CALLS_MPI = {"comm/mpi", "bench"}
MAY_START_MPI = {"comm", "comm/mpi", "program", "measure", "cli", "train", "bench", "python"}

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')


def includes(path):
    for number, line in enumerate(path.read_text().splitlines(), 1):
        match = INCLUDE.match(line)
        if match:
            yield number, match.group(1) == '"', match.group(2)


def public_room(include):
    return PUBLIC.get(pathlib.PurePosixPath(include).stem)


def fault_in_room(room, quoted, include):
    """Why a source of `room` must not include this, or None."""
    if include == "mpi.h" and room != "comm/mpi":
        return "mpi.h belongs to comm/mpi/ and forebay/mpi.hpp"
    if (include == "forebay/mpi.hpp" or include.startswith("comm/mpi/")) and room not in CALLS_MPI:
        return "the library and its programs are compiled without MPI: use forebay/mpi_session.hpp"
    if include == "forebay/mpi_session.hpp" and room not in MAY_START_MPI:
        return "only comm/ and programs may use forebay/mpi_session.hpp"
    if not quoted:
        return None
    if include.startswith("forebay/"):
        target = public_room(include)
        if target is None:
            return "the table PUBLIC does not know this header"
    else:
        target = include.split("/")[0] if "/" in include else room
        if target not in NEEDS:
            return None  # third-party or generated, not a room
    return None if target in NEEDS[room] else f"{room}/ must not need {target}/"


def fault_in_public_header(name, quoted, include):
    if include == "mpi.h":
        return None if name == "mpi" else "only forebay/mpi.hpp includes mpi.h"
    if not quoted:
        return None
    if not include.startswith("forebay/"):
        return "a public header must not include an internal one"
    if include in ("forebay/mpi.hpp", "forebay/mpi_session.hpp") and name != "mpi":
        return "MPI stays out of the other public headers"
    return fault_in_room(PUBLIC[name], quoted, include)


def check(root):
    faults = []

    def note(path, number, include, fault):
        if fault:
            faults.append(f"{path.relative_to(root)}:{number}: {include}: {fault}")

    for path in sorted(path for folder in ("src", "python/src", "bench")
                       for path in (root / folder).rglob("*")):
        if path.suffix not in {".cc", ".hpp"}:
            continue
        room, *rest = path.relative_to(root).parts
        room = rest[0] if room == "src" else room
        if room == "comm" and rest[1] == "mpi":
            room = "comm/mpi"
        if room not in NEEDS:
            faults.append(f"{path.relative_to(root)}: the folder is not a known room")
            continue
        for number, quoted, include in includes(path):
            note(path, number, include, fault_in_room(room, quoted, include))
    for path in sorted((root / "include" / "forebay").glob("*.hpp")):
        if path.stem not in PUBLIC:
            faults.append(f"{path.relative_to(root)}: the table PUBLIC does not know this header")
            continue
        for number, quoted, include in includes(path):
            note(path, number, include, fault_in_public_header(path.stem, quoted, include))
    return faults


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent.parent)
    faults = check(root.resolve())
    for fault in faults:
        print(fault, file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
