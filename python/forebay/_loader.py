"""The object that a training loop iterates."""

from __future__ import annotations

import json
import os
from collections import deque
from collections.abc import Generator, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, Optional, Union

from . import _core
from ._batch import Batch, Field, Ragged
from ._dataset import DatasetLike, raw_parts, require_free_names, resolve
from ._errors import Error, UserCodeError, usage
from ._options import global_batch, loader_options, memory_bytes, share_node, whole_number
from ._ranks import Ranks, RanksLike, close_at_exit, failing_together, find_ranks
from ._samples import Collate, Decode, SampleCode, Transform

if TYPE_CHECKING:
    import numpy as np

_ORDERS = ("shuffled", "sequential", "grouped", "in_memory", "listed", "strided")
_ENDS = ("pad", "drop", "wrap", "exact")
_STATE_VERSION = 1
_KEPT_STEPS = 1000


class Step(NamedTuple):
    """What the loop waited for before one batch came, in seconds."""

    iteration: int
    data: float
    decoding: float
    ranks: float


class Loader:
    """Feeds batches of a data set to a training loop, in an order that is new in every epoch.

    >>> loader = forebay.Loader("train.lmdb", batch_size=256)
    >>> for epoch in range(3):
    ...     for batch in loader:
    ...         step(batch["image"], batch["label"])

    Opening is collective over the ranks: all succeed, or all raise the same error. Reading begins
    at once, in threads of the loader's own. One thread at a time may use a loader. It belongs to
    the process that has opened it.

    Args:
        dataset: A path, URL or pattern, a list of them, or a :class:`Dataset`.
        batch_size: Samples in each rank's batch, as in PyTorch.
        global_batch_size: Samples in a batch over all ranks, in place of ``batch_size``.
        order: ``shuffled``, ``sequential``, ``grouped`` (with ``group=``), ``in_memory`` (with
            ``memory_ratio=``), ``listed`` (with ``ids=``), or ``strided`` (Caffe's circular order).
        seed: Of the run: the same seed gives the same orders, each epoch its own.
        end: What becomes of the last, incomplete batch of an epoch: ``pad`` (filled up, flagged in
            ``padded``), ``wrap``, ``drop`` or ``exact`` (short).
        ranks: None: as the process was started, by ``mpirun``, ``srun``, ``torchrun`` or by hand.
            Else ``"mpi"``, ``"env"``, ``"single"``, ``(rank, size)``, or an mpi4py communicator.
        decode: None: by what the values are (Datum, JPEG, PNG, or as ``schema=`` declares); others
            come as they are stored, under ``value``. False: always as stored. A function: called
            with the bytes of each stored value; returns a value, or a dictionary of fields.
        transform: Text: done in C++, by the loader's threads, see "Decoding and transforms". A
            function: called with each sample, a dictionary; returns one.
        collate: Function that makes one value of a batch out of those of its samples, for ragged
            fields and for what functions return. Default: one array where shapes are equal, else
            as they are (:class:`Ragged`, or a list).
        on_error: ``raise``, or ``skip``: samples that do not decode, and those for which a user's
            function raises, are left out and listed by :meth:`skipped`.
        threads: Python threads that run the user's functions; 0: the caller's.
        device: Where tensors go, as ``"cuda"``; needs torch. None: NumPy arrays.
        strategy: How bytes are read. Never changes the data.
        buffers: Buffers in use and ahead; 1 hides no reading.
        memory: For all buffers of a node: bytes, or text as ``"2GiB"``. Its processes share it.
        ids: Sample ids for ``order="listed"``.
        keys: Whether batches carry ``key``, a list of bytes.
        seeds: Whether batches carry ``seed``: a number for each sample and epoch (``uint64``), for
            augmentation that does not depend on ranks.
        options: Any option of the command line by its name, as ``stage_bytes``, ``engine``,
            ``group``; :func:`option_help` lists them.

    Raises:
        Error: with file, sample, key and rank as attributes.
    """

    def __init__(
        self,
        dataset: DatasetLike,
        batch_size: Optional[int] = None,
        *,
        global_batch_size: Optional[int] = None,
        order: str = "shuffled",
        seed: int = 0,
        end: str = "pad",
        ranks: RanksLike = None,
        decode: Union[bool, Decode, None] = None,
        transform: Union[str, Transform, None] = None,
        collate: Optional[Collate] = None,
        on_error: str = "raise",
        threads: int = 0,
        device: Optional[Any] = None,
        strategy: str = "auto",
        buffers: int = 2,
        memory: Union[int, str, None] = None,
        ids: Optional[Any] = None,
        keys: bool = False,
        seeds: bool = False,
        **options: Any,
    ) -> None:
        self._core: Any = None
        self._generation = 0
        self._ranks = find_ranks(ranks)
        with failing_together(self._ranks):
            self._source = resolve(dataset)
            self._device = device
            self._collate = collate
            self._keys = keys
            self._seeds = seeds
            self._strided = order == "strided"
            _check(decode, order, end, on_error, ids)
            skip = on_error == "skip"
            user_decode = decode if callable(decode) else None
            self._code = SampleCode(
                user_decode, transform if callable(transform) else None, collate, skip, threads
            )
            stored = decode is False or user_decode is not None
            sequential = order == "sequential"
            named = {
                **self._source.options,
                "order": "shuffled" if sequential else order,
                "keep": 0 if sequential else None,
                "seed": seed,
                "end": None if self._strided else end,
                "batch": global_batch(batch_size, global_batch_size, self._ranks.size),
                "strategy": strategy,
                "buffers": buffers,
                "stage_bytes": memory_bytes(memory),
                "decode": None if stored else True,
                "transform": transform if isinstance(transform, str) else None,
                "undecodable": "skip" if skip and not stored else None,
                "shard": self._ranks.shard,
                **options,
            }
            if stored:
                named["codec"] = "bytes"
                if named.get("format") != "raw":
                    named["schema"] = None
            self._options = loader_options(named, ids)
            share_node(self._options, self._ranks.strangers)
        self._state: Optional[str] = None  # where the next pipeline goes on; None: at the start
        self._yielded: Optional[str] = None  # the state to save, where the pipeline is further on
        self._asked: Optional[int] = None  # by set_epoch
        self._given_up = False  # an epoch was begun, and no iterator goes on with it
        self._steps: deque[Step] = deque(maxlen=_KEPT_STEPS)
        self._skipped: dict[int, tuple[int, str, str]] = {}  # by pipelines before
        self._open(self._options)
        close_at_exit(self)

    # For the training loop.

    def __iter__(self) -> Iterator[Any]:
        """What is left of a resumed epoch, else a whole new epoch.

        An iterator that is given up early (``break``) ends the loader's threads; the next one
        begins the next epoch. Ranks break together: opening what follows is collective.
        """
        if self._device is None:
            return self._iterate()
        from .torch import to_device

        return to_device(self, self._device)

    def _iterate(self) -> Generator[Batch, None, None]:
        self._generation += 1
        return self._batches(self._generation)

    def __len__(self) -> int:
        """Batches of a whole epoch, the same on all ranks."""
        return self._length

    @property
    def samples(self) -> int:
        """Samples of the data set."""
        return self._entries

    @property
    def schema(self) -> list[Field]:
        """The decoded fields; empty where values come as they are stored."""
        return list(self._schema)

    @property
    def ranks(self) -> Ranks:
        """Who loads together."""
        return self._ranks

    def set_epoch(self, epoch: int) -> None:
        """Makes the next epoch the one with this number, as DistributedSampler does.

        Not needed: each epoch is a new one anyway.
        """
        epoch = whole_number("epoch", epoch, 0)
        if self._strided and epoch != 0:
            raise usage("the strided order goes on over the ends of epochs", "drop set_epoch")
        self._asked = epoch

    def state_dict(self) -> dict[str, Any]:
        """Where the run stands, after the batches that were yielded: a small value of plain types.

        It may be saved by ``torch.save``, as JSON or by pickle, and loaded on another number of
        ranks.
        """
        state = self._position()
        return {
            "forebay": _STATE_VERSION,
            "state": None if state is None else json.loads(state),
            "epoch": self._asked,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Makes the next iterator go on where ``state`` was taken. Collective.

        Where that fails, the loader is as before.
        """
        with failing_together(self._ranks):
            if not isinstance(state, Mapping) or state.get("forebay") != _STATE_VERSION:
                raise usage("this is no state of a loader", "give what state_dict() has returned")
            inner, asked = state.get("state"), state.get("epoch")
            wanted = None if inner is None else json.dumps(inner)
            if wanted is not None:
                _core.resume_options(wanted, self._options, self._ranks.size)
        self._end()
        before, self._state = self._state, wanted
        try:
            self._reopen()
        except Error:
            self._state = before
            raise
        self._asked = asked
        self._given_up = False

    def stats(self) -> dict[str, Any]:
        """This rank's figures: where time went, what was read, and whether training waited.

        ``exposed_seconds`` is how long the loop has waited for data, ``skew_seconds`` for slower
        ranks. ``steps`` tells the same of each of the last 1,000 batches (:class:`Step`).
        """
        figures: dict[str, Any] = json.loads(self._told().statistics)
        figures["rank"] = self._ranks.rank
        figures["steps"] = list(self._steps)
        return figures

    def explain(self) -> str:
        """How the data set is read, and why so."""
        return self._told().explanation

    def skipped(self) -> list[tuple[int, str, str]]:
        """Id, key and reason of samples that ``on_error="skip"`` has left out on this rank.

        Each once, the first thousand of them.
        """
        return list({**self._skipped, **self._told().skipped, **self._code.skipped}.values())

    def close(self) -> None:
        """Ends the loader's threads and gives its memory back. Arrays of batches stay valid."""
        self._generation += 1
        self._end()
        self._code.close()

    def _end_with_process(self, failed: bool) -> bool:
        self.close()
        return not failed

    def __enter__(self) -> Loader:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __reduce__(self) -> tuple[Any, ...]:
        raise usage("a loader belongs to its process", "pickle a Dataset, or state_dict()")

    def __repr__(self) -> str:
        return (
            f"Loader({self._source.path!r}: {self._entries} samples, {self._length} batches an "
            f"epoch on {self._ranks.size} ranks)"
        )

    # Pipelines of the C++ library: one goes on over the ends of epochs.

    def _open(self, options: Any) -> None:
        self._core = core = _core.Loader(self._ranks._comm, self._source.path, options)
        self._process = os.getpid()
        self._last: Optional[_Told] = None
        self._entries = int(core.entries())
        self._length = int(core.epoch_iterations())
        schema = [Field(*field) for field in core.schema()]
        raw = raw_parts(core.parts(), schema)
        wanted = self._source.fields
        self._schema = [field for field in schema if wanted is None or field.name in wanted]
        self._raw = {name: i for name, i in raw.items() if wanted is None or name in wanted}
        names = [field.name for field in self._schema] + list(self._raw)
        if not names:
            known = ", ".join([field.name for field in schema] + list(raw))
            raise usage(f"none of the fields {wanted} exists", f"name some of {known}")
        require_free_names(names, self._beside())

    def _beside(self) -> list[str]:
        """What batches have besides fields."""
        extra = [("key", self._keys), ("seed", self._seeds)]
        return ["sample", "padded"] + [name for name, wanted in extra if wanted]

    def _reopen(self) -> None:
        """Where _state says."""
        options = self._options
        if self._state is not None:
            options = _core.resume_options(self._state, options, self._ranks.size)
        self._open(options)

    def _pipeline(self) -> Any:
        if self._core is None:
            self._reopen()
        return self._core

    def _told(self) -> _Told:
        """Figures of the pipeline, or of the last one: asking for them opens none."""
        core = self._core
        if core is None:
            assert self._last is not None
            return self._last
        skipped = {each[0]: each for each in core.skipped()}
        return _Told(core.statistics(), core.explain(), skipped)

    def _position(self) -> Optional[str]:
        """The state after the batches that were yielded."""
        if self._core is None:
            return self._state
        return self._yielded if self._yielded is not None else str(self._core.state())

    def _end(self) -> None:
        core = self._core
        if core is None:
            return
        if os.getpid() != self._process:  # a child of a fork has the object alone
            self._core = None
            core.close()
            return
        self._state = self._position()
        self._yielded = None
        self._last = self._told()
        self._skipped.update(self._last.skipped)
        self._core = None
        core.close()

    def _go_to(self, epoch: int) -> None:
        self._end()
        self._state = None
        options = self._options.copy()
        options.first_epoch = epoch
        options.first_iteration = epoch * self._length
        self._open(options)

    def _begin_epoch(self) -> None:
        given_up, self._given_up = self._given_up, False
        asked, self._asked = self._asked, None
        if self._strided or (asked is None and not given_up):
            self._pipeline()
            return
        at = int(self._pipeline().epochs_done())
        wanted = at + 1 if asked is None else asked
        if wanted != at or given_up:
            self._go_to(wanted)

    # Batches.

    def _batches(self, generation: int) -> Generator[Batch, None, None]:
        self._begin_epoch()
        core = self._core  # another thread may close the loader: then this one raises
        self._require_latest(generation)
        before = core.epochs_done()
        finished = False
        try:
            while not finished:
                self._require_latest(generation)
                self._given_up = True
                batch = self._next(core)
                if batch is None:
                    break
                finished = core.epochs_done() > before
                self._given_up = not finished
                yield batch
            self._given_up = False
        finally:
            if not finished and generation == self._generation:
                self._end()

    def _ahead(self) -> str:
        """The state after what the pipeline has given; for who fetches ahead of the consumer."""
        return str(self._core.state())

    def _require_latest(self, generation: int) -> None:
        if generation == self._generation and self._core is not None:
            return
        raise usage(
            "this iterator was replaced by another, or its loader closed",
            "use one iterator of a loader at a time",
        )

    def _next(self, core: Any) -> Optional[Batch]:
        if not self._code.runs:
            return self._take(core)
        # A batch whose samples a function refuses was not yielded.
        before = str(core.state())
        try:
            batch = self._take(core)
        except UserCodeError as error:
            self._yielded = before
            error.rank = self._ranks.rank
            core.fail(error.args[0], error.sample, error.key or "")
            raise
        except BaseException:
            self._yielded = before
            raise
        return batch

    def _take(self, core: Any) -> Optional[Batch]:
        keyed = self._keys or self._code.runs
        taken = core.next(list(self._raw.values()), keyed, self._seeds)
        if taken is None:
            return None
        epoch, iteration, ids, repeats, decoded, stored, keys, seeds, waited = taken
        self._steps.append(Step(iteration, *waited))
        fields: dict[str, Any] = {field.name: decoded[field.name] for field in self._schema}
        for name, (data, offsets) in zip(self._raw, stored):
            fields[name] = Ragged(data, offsets)
        beside: dict[str, Any] = {"sample": ids, "padded": repeats.view("bool")}
        if self._keys:
            beside["key"] = keys
        if self._seeds:
            beside["seed"] = seeds
        if self._code.runs:
            fields, kept = self._code.apply({**fields, **_each(beside)}, ids, keys, self._raw)
            beside = {name: _pick(value, kept, len(ids)) for name, value in beside.items()}
            return Batch({**fields, **beside}, epoch, iteration)
        if self._collate is not None:
            fields.update({name: self._collated(fields[name]) for name in self._raw})
        return Batch({**fields, **beside}, epoch, iteration)

    def _collated(self, values: Ragged) -> Any:
        assert self._collate is not None
        try:
            return self._collate(values)
        except Exception as error:
            raise UserCodeError.of(error, None, "") from error


class _Told(NamedTuple):
    """What a pipeline has to tell, also when it is gone."""

    statistics: str
    explanation: str
    skipped: dict[int, tuple[int, str, str]]


def _check(decode: Any, order: str, end: str, on_error: str, ids: Any) -> None:
    if decode is not None and not isinstance(decode, bool) and not callable(decode):
        raise usage(f"decode is {decode!r}", "give None, False, or a function")
    if order not in _ORDERS:
        raise usage(f"order is {order!r}", f"use one of {', '.join(_ORDERS)}")
    if end not in _ENDS:
        raise usage(f"end is {end!r}", f"use one of {', '.join(_ENDS)}")
    if on_error not in ("raise", "skip"):
        raise usage(f"on_error is {on_error!r}", "use raise or skip")
    if (ids is not None) != (order == "listed"):
        raise usage("ids go with order='listed', and it with them", "give both or none")


def _each(beside: dict[str, Any]) -> dict[str, Any]:
    """What functions see of a sample besides its fields."""
    return {name: value for name, value in beside.items() if name != "padded"}


def _pick(values: Any, kept: list[int], count: int) -> Any:
    if len(kept) == count:
        return values
    if isinstance(values, list):
        return [values[i] for i in kept]
    picked: np.ndarray[Any, Any] = values[kept]
    return picked
