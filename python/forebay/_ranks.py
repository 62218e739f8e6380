"""Which ranks load together, and how they were found.

``mpi``
    The process was started by ``mpirun``, or by ``srun`` with a plug-in for MPI: all ranks of
    ``MPI_COMM_WORLD``, which share memory, read for each other, and fail together.
``env``
    ``torchrun``, ``srun`` without such a plug-in, or anything else that sets ``RANK`` and
    ``WORLD_SIZE``: every process delivers its own share of the order. Nothing is exchanged.
``single``
    This process alone.
"""

from __future__ import annotations

import atexit
import os
import sys
import warnings
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Optional, Union

from . import _core
from ._errors import Error, serialized, usage
from ._launch import find_place, processes_of_node, started_by_torchrun


@dataclass(frozen=True)
class Ranks:
    """This process's place among those that load together.

    Attributes:
        rank: This process's number, from 0.
        size: How many there are.
        kind: ``mpi``, ``env`` or ``single``.
    """

    rank: int
    size: int
    kind: str
    _comm: Any = None
    _on_node: int = 1  # of kind env: how many processes this node has

    @property
    def connected(self) -> int:
        """Ranks that this process talks to, itself among them."""
        return 1 if self.kind == "env" else self.size

    @property
    def shard(self) -> Optional[str]:
        """What the loader's option of that name is: our place where ranks are not connected."""
        return f"{self.rank}/{self.size}" if self.kind == "env" else None

    @property
    def strangers(self) -> int:
        """Ranks of this node that do not know of each other, and must share it all the same."""
        return self._on_node if self.kind == "env" else 1

    def require_exchange(self, what: str) -> None:
        """Raises UsageError where ranks are not connected, and there are several."""
        if self.kind != "env" or self.size == 1:
            return
        raise usage(
            f"{what} moves data between ranks, which needs MPI",
            "start the program by mpirun, or srun --mpi=pmix, instead of torchrun",
        )


RanksLike = Union[None, str, Ranks, "tuple[int, int]", Any]


class _Process:
    """What must end with the process, and before MPI does."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self.open: list[weakref.ref[Any]] = []  # in the order of opening, which ranks share
        self.failed = False
        self.told = False

    def is_others(self, error: BaseException) -> bool:
        """Whether another rank has failed, and tells itself how."""
        mpi = _core.begun_mpi()
        if mpi is None or not isinstance(error, Error) or error.rank is None:
            return False
        return error.rank != mpi.world.rank

    def end(self) -> None:
        if os.getpid() != self.pid:
            return
        _core.process_ends()
        things = [thing for thing in (each() for each in self.open) if thing is not None]
        mpi = _core.begun_mpi()
        if mpi is not None and mpi.is_ours and mpi.world.size > 1:
            # With which code the process ends is not known here, and makes all the difference.
            _core.end_at_exit()
            for thing in things:
                thing._leave_to_exit()
            return
        try:
            for thing in things:
                with suppress(Error):  # told by the call that has failed, or by the rank that has
                    thing._end_with_process(self.failed)
        finally:
            del mpi
            _core.end_mpi()


_process = _Process()


def _note_failure(previous: Any) -> Any:
    """An uncaught exception; in one line where it is another rank's, which tells the rest."""

    def hook(
        kind: type[BaseException], error: BaseException, trace: Optional[TracebackType]
    ) -> None:
        _process.failed = True
        if not _process.is_others(error):
            previous(kind, error, trace)
        elif sys.stderr is not None:
            print(f"forebay.{kind.__name__}: {error}", file=sys.stderr, flush=True)

    return hook


sys.excepthook = _note_failure(sys.excepthook)
atexit.register(_process.end)


def close_at_exit(thing: Any) -> None:
    """``thing`` ends before MPI does, in one of two ways.

    ``thing._leave_to_exit()`` where it is for several ranks to end it, see ending.hpp; else
    ``thing._end_with_process(failed)``.
    """
    _process.open = [each for each in _process.open if each() is not None]
    _process.open.append(weakref.ref(thing))


@contextmanager
def failing_together(ranks: Ranks) -> Iterator[None]:
    """Around what one rank may find out alone, in front of a collective opening.

    An Error inside makes that opening raise the same on all ranks.
    """
    try:
        yield
    except Error as error:
        if ranks.kind == "mpi" and ranks.size > 1:
            _core.fail_together(ranks._comm, serialized(error))
        raise


def _from_environment() -> Optional[tuple[Ranks, str]]:
    """Ranks, and the variables that have told of them."""
    place = find_place()
    if place is None:
        return None
    comm = _core.self_communicator()
    return Ranks(place.rank, place.size, "env", comm, place.on_node), place.told_by


def _tell_what_is_lost(ranks: Ranks, told_by: str) -> None:
    if _process.told:
        return
    _process.told = True
    if ranks.rank == 0:
        warnings.warn(
            f"forebay: {ranks.size} ranks from {told_by}, without MPI: each reads for "
            "itself, nothing is exchanged in memory, and a rank that fails does not end others. "
            "Under mpirun or srun --mpi=pmix ranks share what they read.",
            stacklevel=4,
        )


def _adopt(comm: Any) -> Ranks:
    """An mpi4py communicator."""
    try:
        from mpi4py import MPI

        if not isinstance(comm, MPI.Comm):
            raise TypeError
        address = MPI._addressof(comm)
        library = MPI.Get_library_version()
    except (ImportError, TypeError, AttributeError):
        raise usage(
            f"ranks is {comm!r}",
            "give None, 'mpi', 'env', 'single', (rank, size), or an mpi4py communicator",
        ) from None
    ours = _core.mpi_library()
    if not library.startswith(ours):
        raise usage(
            f"mpi4py uses {library.splitlines()[0]}, forebay {ours}",
            "install both for the same MPI library",
        )
    adopted = _core.adopt_communicator(address)
    return Ranks(adopted.rank, adopted.size, "mpi", adopted)


def find_ranks(ranks: RanksLike = None) -> Ranks:
    """The ranks that ``ranks`` means; None: as the process was started.

    Collective over the communicator where there is one.
    """
    if isinstance(ranks, Ranks):
        return ranks
    if ranks is None or ranks == "auto":
        return _as_started()
    if isinstance(ranks, str):
        return _named(ranks)
    if isinstance(ranks, tuple):
        rank, size = ranks if len(ranks) == 2 else (-1, 0)
        if not all(isinstance(each, int) for each in (rank, size)) or not 0 <= rank < size:
            raise usage(f"ranks is {ranks!r}", "give (rank, size) with 0 <= rank < size")
        return Ranks(rank, size, "env", _core.self_communicator(), processes_of_node())
    return _adopt(ranks)


def _as_started() -> Ranks:
    # The innermost launcher counts: torchrun may itself be started by srun or mpirun on each node.
    if _core.launched_by_mpi() and not started_by_torchrun():
        return _named("mpi")
    found = _from_environment()
    if found is None or found[0].size == 1:
        return _named("single")
    _tell_what_is_lost(*found)
    return found[0]


def _named(name: str) -> Ranks:
    if name == "single":
        return Ranks(0, 1, "single", _core.self_communicator())
    if name == "mpi":
        world = _core.begin_mpi().world
        return Ranks(world.rank, world.size, "mpi", world)
    if name == "env":
        found = _from_environment()
        if found is not None:
            return found[0]
        raise usage(
            "neither RANK and WORLD_SIZE nor srun's variables are set",
            "start the program by torchrun or srun, or give ranks=(rank, size)",
        )
    raise usage(f"ranks is {name!r}", "use one of mpi, env, single, or (rank, size)")
