"""Which ranks load together, and how they were found and connected.

``mpi``
    The process was started by ``mpirun``, or by ``srun`` with a plug-in for MPI.
``network``
    ``torchrun``, Lightning, Accelerate, ``srun`` without such a plug-in, ``torch.distributed``:
    connected over TCP. As with MPI, ranks share memory, read for each other, and fail together.
``env``
    Every process delivers its own share of the order. Nothing is exchanged.
``single``
    This process alone.
"""

from __future__ import annotations

import atexit
import os
import sys
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Optional, Union

from . import _connect, _core
from ._errors import Error, serialized, usage
from ._launch import (
    Place,
    find_place,
    find_place_of_worker,
    in_worker,
    processes_of_node,
    started_by_torchrun,
    torch_processes,
)


@dataclass(frozen=True)
class Ranks:
    """This process's place among those that load together.

    Attributes:
        rank: This process's number, from 0.
        size: How many there are.
        kind: ``mpi``, ``network``, ``env`` or ``single``.
    """

    rank: int
    size: int
    kind: str
    _comm: Any = None
    _place: Optional[Place] = None  # of kinds network and env
    _assumed: bool = False  # that this process is alone, as nothing told of others

    @property
    def comm(self) -> Any:
        """The communicator of _core. Of kind network the first use connects all, together."""
        if self.kind == "network" and self._place is not None:
            return _connect.connect(self._place)
        return self._comm

    @property
    def together(self) -> bool:
        """Whether these are several ranks that talk to each other."""
        return self.size > 1 and self.kind in ("mpi", "network")

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
        return self._place.on_node if self.kind == "env" and self._place is not None else 1

    def require_exchange(self, what: str) -> None:
        """Raises UsageError where ranks are not connected, and there are several."""
        if self.kind != "env" or self.size == 1:
            return
        raise usage(
            f"{what} moves data between ranks, and with ranks={(self.rank, self.size)} or 'env' "
            "they are not connected",
            "leave out ranks under torchrun, srun or mpirun",
        )

    def require_still_alone(self) -> None:
        """Raises UsageError where this process was taken to be alone, and is not."""
        if not self._assumed:
            return
        group = torch_processes()
        if group is not None and group.get_world_size() > 1:
            raise usage(
                f"this was opened for this process alone, and it is rank {group.get_rank()} of "
                f"{group.get_world_size()} now: each would get all samples",
                "open it after init_process_group; if all samples are meant, give ranks='single'",
            )


RanksLike = Union[None, str, Ranks, "tuple[int, int]", Any]


class _Process:
    """What must end with the process, and before MPI does."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self.open: list[weakref.ref[Any]] = []  # in the order of opening, which ranks share
        self.failed = False

    def is_others(self, error: BaseException) -> bool:
        """Whether another rank has failed, and tells itself how."""
        if not isinstance(error, Error) or error.rank is None:
            return False
        mpi = _core.begun_mpi()
        comm = _connect.connection() if mpi is None else mpi.world
        return comm is not None and error.rank != comm.rank

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
            _connect.forget()
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
        if ranks.together:
            _core.fail_together(ranks.comm, serialized(error))
        raise


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
            "give None, 'mpi', 'network', 'env', 'single', (rank, size), or an mpi4py communicator",
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
        place = Place(rank, size, processes_of_node(), "ranks")
        return _alone_as(place)
    return _adopt(ranks)


def _alone_as(place: Place) -> Ranks:
    return Ranks(place.rank, place.size, "env", _core.self_communicator(), place)


def _connected_as(place: Place) -> Ranks:
    if place.size == 1:
        return _named("single")
    return Ranks(place.rank, place.size, "network", None, place)


def ranks_of_worker(place: Optional[Place] = None) -> Ranks:
    """In a worker of a DataLoader: its rank's place, or ``place``, unconnected."""
    place = place or find_place_of_worker()
    return _named("single") if place is None or place.size == 1 else _alone_as(place)


def _as_started() -> Ranks:
    if in_worker():
        return ranks_of_worker()
    # The innermost launcher counts: torchrun may itself be started by srun or mpirun on each node.
    by_mpi = _core.launched_by_mpi() and not started_by_torchrun()
    if torch_processes() is None:
        if by_mpi:
            return _named("mpi")
        place = find_place()
        if place is None:
            return Ranks(0, 1, "single", _core.self_communicator(), _assumed=True)
        return _connected_as(place)
    place = find_place()
    assert place is not None
    if by_mpi:
        ranks = _named("mpi")
        if (ranks.rank, ranks.size) == (place.rank, place.size):
            return ranks
    return _connected_as(place)


def _named(name: str) -> Ranks:
    if name == "single":
        return Ranks(0, 1, "single", _core.self_communicator())
    if name == "mpi":
        world = _core.begin_mpi().world
        return Ranks(world.rank, world.size, "mpi", world)
    if name in ("env", "network"):
        place = find_place()
        if place is not None:
            return _alone_as(place) if name == "env" else _connected_as(place)
        raise usage(
            "neither RANK and WORLD_SIZE nor srun's variables are set",
            "start the program by torchrun or srun, or give ranks=(rank, size)",
        )
    raise usage(f"ranks is {name!r}", "use one of mpi, network, env, single, or (rank, size)")
