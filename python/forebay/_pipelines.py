"""Where a run stands, and the C++ pipeline that takes it on."""

from __future__ import annotations

import json
import os
from typing import Any, Callable, NamedTuple, Optional

from . import _core, _messages
from ._errors import Error, UsageError, usage
from ._ranks import Ranks


class Told(NamedTuple):
    """What a pipeline has to tell, also when it is gone."""

    statistics: str
    explanation: str
    skipped: dict[int, tuple[int, str, str]]


class Pipelines:
    """The pipelines of one loader, one at a time. Each goes on over the ends of epochs.

    A pipeline ends when its epoch is given up, or another place is asked for; the next is opened
    where the run stands, once somebody wants it. Opening is collective over the ranks.

    Attributes:
        core: The pipeline; None between two.
        length: Batches of a whole epoch.
        entries: Samples.
        classes: Names of what labels number.
        yielded: The state to save, where the pipeline is further on than what was yielded.
        asked: The epoch that set_epoch() has asked for.
        given_up: An epoch was begun, and no iterator goes on with it.
    """

    def __init__(
        self,
        ranks: Ranks,
        path: str,
        options: Any,
        strided: bool,
        opened: Callable[[Any], None],
    ) -> None:
        """``opened`` is called with each new pipeline."""
        self._ranks = ranks
        self._path = path
        self._options = options
        self._opened = opened
        self._strided = strided
        self._state: Optional[str] = None  # where the next pipeline goes on; None: at the start
        self._skipped: dict[int, tuple[int, str, str]] = {}  # by pipelines before
        self.yielded: Optional[str] = None
        self.asked: Optional[int] = None
        self.given_up = False
        self.core: Any = None
        self._open(options)

    def _open(self, options: Any) -> None:
        try:
            self.core = core = _core.Loader(self._ranks.comm, os.fsencode(self._path), options)
        finally:
            _messages.tell()
        self._process = os.getpid()
        self._last: Optional[Told] = None
        self.entries = int(core.entries())
        self.classes = [os.fsdecode(name) for name in core.classes()]
        self.length = int(core.epoch_iterations())
        self._opened(core)

    def _reopen(self) -> None:
        """Where _state says."""
        options = self._options
        if self._state is not None:
            options = _core.resume_options(self._state, options, self._ranks.connected)
        self._open(options)

    def get(self) -> Any:
        """The pipeline, opened where there is none."""
        if self.core is None:
            self._require_own()
            self._reopen()
        return self.core

    def _require_own(self) -> None:
        """Raises UsageError in a child of a fork: what it has is as old as the fork."""
        if os.getpid() != self._process:
            raise usage(
                "the loader was opened before this process was forked",
                "open loaders in the process that uses them",
            )

    def told(self) -> Told:
        """Figures of the pipeline, or of the last one: asking for them opens none."""
        core = self.core
        if core is None:
            self._require_own()
            assert self._last is not None
            return self._last
        skipped = {each[0]: each for each in core.skipped()}
        return Told(core.statistics(), core.explain(), {**self._skipped, **skipped})

    def position(self) -> Optional[str]:
        """The state after the batches that were yielded."""
        self._require_own()
        if self.core is None:
            return self._state
        return self.yielded if self.yielded is not None else self.ahead()

    def ahead(self) -> str:
        """The state after what the pipeline has given; for who fetches ahead of the consumer."""
        return str(self.core.state())

    def end(self, wait: bool = True) -> None:
        """Ends the pipeline. The run stands where it stood.

        ``wait``: until it is done with other ranks, which opening the next one does else.
        """
        core = self.core
        if core is None:
            return
        if os.getpid() == self._process:  # a child of a fork has the object alone
            self._state = self.position()
            self.yielded = None
            self._last = self.told()
            self._skipped = self._last.skipped
        self.core = None
        if wait:
            core.close()
        else:
            core.close_behind()

    def check(self, state: Optional[Any]) -> None:
        """Raises what resuming from ``state`` would raise on this rank."""
        if state is None:
            return
        try:
            text = json.dumps(state)
        except (TypeError, ValueError) as error:
            raise usage(
                f"this is no saved state: {error}", "give what state_dict() has returned"
            ) from None
        _core.resume_options(text, self._options, self._ranks.connected)

    def resume(self, state: Optional[Any], asked: Optional[int]) -> None:
        """Goes on where ``state`` was taken. Where that fails, nothing has changed."""
        self._require_own()
        self.end()
        before, self._state = self._state, None if state is None else json.dumps(state)
        try:
            self._reopen()
        except Error:
            self._state = before
            raise
        self.asked = asked
        self.given_up = False

    def over(self) -> UsageError:
        """What to raise for batches behind the end that the options give the run."""
        iterations, epochs = self._options.iterations, self._options.epochs
        limit = f"iterations={iterations}" if iterations > 0 else f"epochs={epochs}"
        return usage(
            f"the run is over: {limit} counts from its start, over all epochs",
            "raise iterations or epochs, or leave them out and break out of the loop",
        )

    def _go_to(self, epoch: int) -> None:
        iterations, epochs = self._options.iterations, self._options.epochs
        if 0 < iterations <= epoch * self.length or 0 < epochs <= epoch:
            raise self.over()
        self.end()
        self._state = None
        options = self._options.copy()
        options.first_epoch = epoch
        options.first_iteration = epoch * self.length
        self._open(options)

    def begin_epoch(self) -> None:
        """The next epoch, or the one that was asked for, or what is left of a resumed one."""
        at = int(self.get().epochs_done())
        wanted = at + (1 if self.given_up else 0) if self.asked is None else self.asked
        if not self._strided and (wanted != at or self.given_up):
            self._go_to(wanted)
        self.given_up = False
        self.asked = None
