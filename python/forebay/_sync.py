"""Sums over ranks in the background, for arrays of any framework that speaks DLPack."""

from __future__ import annotations

from typing import Any, Optional

from . import _core
from ._errors import usage
from ._memory import without_history
from ._ranks import Ranks, RanksLike, close_at_exit, find_ranks


class Handle:
    """One started operation. Memory that it works on stays until it is done, also without this."""

    __slots__ = ("_core", "_owner", "_result")

    def __init__(self, owner: Synchronizer, core: Any, result: Any) -> None:
        self._core = core
        self._result = result
        self._owner = owner

    def done(self) -> bool:
        """Whether the result is there, or the operation has failed."""
        return bool(self._core.done())

    def wait(self) -> Any:
        """Waits, and returns the array with the result. Raises what the operation failed with."""
        self._core.wait()
        return self._result


class Synchronizer:
    """Sums tensors over ranks while the program computes.

    Starting an operation never blocks; the one progress thread of the process moves the data.
    All ranks must start the same names with equal shapes and types, in any order.

    Arrays are NumPy's, tensors of torch, and whatever else has the buffer protocol or DLPack, of
    float16, bfloat16, float32, float64, int32 or int64, in the memory of the host. They may have
    any strides and byte order, also others than on other ranks: elements go by their indices. What
    is C-contiguous is used in place; else the synchronizer works on a copy. What it cannot use is
    refused by a :class:`UsageError` that names the argument.

    Args:
        ranks: As for :class:`Loader`; needs MPI where there are several.
        strategy: How ranks agree on the order of transfers: a name in :meth:`strategies`, with
            ``scp-`` before it for cores of its own. ``topo``: as the first step has shown, with
            no messages after it.
        cycle_ms: Of those that agree in cycles: the shortest time between two agreements.
        fusion_bytes: The most that is sent together; None: what suits the strategy; 0: nothing.
        wire: ``float16`` or ``bfloat16`` halve what float32 sends.
        deterministic: Whether results are bit-identical over runs.
        stall_warning: Seconds after which a tensor that some ranks miss is warned about.
        stall_limit: Seconds after which it fails all ranks; 0: never.
        placement: ``shared``, ``partition``, or core lists, for the progress thread.

    Collective to make and to close.
    """

    def __init__(
        self,
        ranks: RanksLike = None,
        *,
        strategy: str = "topo",
        cycle_ms: float = 5.0,
        fusion_bytes: Optional[int] = None,
        wire: str = "as_is",
        deterministic: bool = False,
        stall_warning: float = 60.0,
        stall_limit: float = 0.0,
        placement: str = "shared",
    ) -> None:
        self.ranks: Ranks = find_ranks(ranks)
        self.ranks.require_exchange("summing gradients")
        self._core: Any = _core.make_sync_engine(
            self.ranks.comm,
            strategy,
            cycle_ms,
            fusion_bytes,
            wire,
            deterministic,
            stall_warning,
            stall_limit,
            placement,
        )
        close_at_exit(self)

    @staticmethod
    def strategies() -> dict[str, str]:
        """The names that ``strategy`` may be, and what each does."""
        return dict(_core.sync_strategies())

    def _engine(self) -> Any:
        if self._core is None:
            raise usage("the synchronizer is closed", "make another one")
        return self._core

    def allreduce(
        self, name: str, array: Any, output: Any = None, reduction: str = "mean"
    ) -> Handle:
        """Starts summing ``array`` over all ranks, in place or into ``output``.

        ``reduction`` is ``sum``, ``mean``, ``min`` or ``max``; a mean of integers is rounded toward
        zero, and the smallest and largest of floats are NaN where a rank's number is. Arrays stay
        untouched until the handle is done. ``output`` has the array's shape and type; they may
        overlap.
        """
        engine = self._engine()
        call = f"allreduce of '{name}'"
        read = without_history(array, call, "array", written=output is None)
        into = None if output is None else without_history(output, call, "output", written=True)
        core = engine.allreduce(name, read, into, reduction)
        return Handle(self, core, array if output is None else output)

    def broadcast(self, name: str, array: Any, root: int = 0) -> Handle:
        """Starts giving the values of rank ``root`` to all, in place."""
        engine = self._engine()
        memory = without_history(array, f"broadcast of '{name}'", "array", written=True)
        return Handle(self, engine.broadcast(name, memory, root), array)

    def barrier(self, name: str = "barrier") -> None:
        """Waits for all ranks."""
        self._engine().barrier(name).wait()

    def join(self) -> None:
        """Says that this rank has no more to sum, and waits until all have said so."""
        self._engine().join().wait()

    def end_step(self) -> None:
        """``topo``: all that a step sums was started. Not needed, but finds what is missing."""
        self._engine().end_step()

    def stats(self) -> dict[str, Any]:
        """Figures of this rank: tensors, transfers, bytes, messages to agree, thread times."""
        figures: dict[str, Any] = self._engine().statistics()
        return figures

    def explain(self) -> str:
        """Strategy, algorithm and placement, and why so."""
        return str(self._engine().explain())

    def close(self) -> None:
        """Waits until everything that was started is done on all ranks. Collective."""
        core, self._core = self._core, None
        if core is not None:
            core.close()

    def _end_with_process(self, failed: bool) -> None:
        if failed and self._core is not None:
            self._core.fail("a rank has ended while others go on summing")
        self.close()

    def _leave_to_exit(self) -> None:
        core, self._core = self._core, None
        if core is not None:
            core.leave_to_exit()
