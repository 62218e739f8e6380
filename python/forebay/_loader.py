"""The object that a training loop iterates."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Generator, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, Optional, Union

from . import _core
from ._batch import Batch, Field, Ragged
from ._dataset import DatasetLike, raw_parts, resolve
from ._errors import usage
from ._options import global_batch, loader_options, memory_bytes, share_node
from ._ranks import Ranks, RanksLike, close_at_exit, find_ranks
from ._samples import Collate, Decode, SampleCode, Transform

if TYPE_CHECKING:
    import numpy as np

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
        transform: Text: done in C++, by the loader's threads, see the page on transforms. A
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
        if end not in _ENDS:
            raise usage(f"end is {end!r}", f"use one of {', '.join(_ENDS)}")
        if on_error not in ("raise", "skip"):
            raise usage(f"on_error is {on_error!r}", "use raise or skip")
        self._ranks = find_ranks(ranks)
        self._source = resolve(dataset)
        self._device = device
        self._collate = collate
        self._keys = keys
        self._seeds = seeds
        self._strided = order == "strided"
        skip = on_error == "skip"
        user_decode = decode if callable(decode) else None
        self._code = SampleCode(
            user_decode, transform if callable(transform) else None, collate, skip, threads
        )
        stored = decode is False or user_decode is not None
        sequential = order == "sequential"
        self._options = loader_options(
            {
                **self._source.options,
                "order": "shuffled" if sequential else order,
                "keep": 0 if sequential else None,
                "seed": seed,
                "end": None if self._strided else end,
                "batch": global_batch(batch_size, global_batch_size, self._ranks.size),
                "strategy": strategy,
                "buffers": buffers,
                "stage_bytes": memory_bytes(memory),
                "codec": "bytes" if stored else None,
                "decode": None if stored else True,
                "transform": transform if isinstance(transform, str) else None,
                "undecodable": "skip" if skip and not stored else None,
                "shard": self._ranks.shard,
                **options,
            },
            ids,
        )
        share_node(self._options, self._ranks.strangers)
        self._state: Optional[str] = None  # where the next pipeline goes on; None: at the start
        self._asked: Optional[int] = None  # by set_epoch
        self._given_up = False  # an epoch was begun, and no iterator goes on with it
        self._steps: deque[Step] = deque(maxlen=_KEPT_STEPS)
        self._open(self._options)
        close_at_exit(self)

    # For the training loop.

    def __iter__(self) -> Iterator[Any]:
        """What is left of a resumed epoch, else a whole new epoch.

        An iterator that is given up early (``break``) ends the loader's threads; the next one
        begins the next epoch, on all ranks.
        """
        self._generation += 1
        batches = self._batches(self._generation)
        if self._device is None:
            return batches
        from .torch import to_device

        return to_device(batches, self._device)

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
        if epoch < 0:
            raise usage(f"epoch is {epoch}", "epochs count from 0")
        if self._strided and epoch != 0:
            raise usage("the strided order goes on over the ends of epochs", "drop set_epoch")
        self._asked = epoch

    def state_dict(self) -> dict[str, Any]:
        """Where the run stands, after the batches that were yielded: a small value of plain types.

        It may be saved by ``torch.save``, as JSON or by pickle, and loaded on another number of
        ranks.
        """
        state = str(self._core.state()) if self._core is not None else self._state
        return {
            "forebay": _STATE_VERSION,
            "state": None if state is None else json.loads(state),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Makes the next iterator go on where ``state`` was taken. Collective."""
        if state.get("forebay") != _STATE_VERSION or "state" not in state:
            raise usage("this is no state of a loader", "give what state_dict() has returned")
        self._end()
        self._asked = None
        self._given_up = False
        self._state = None if state["state"] is None else json.dumps(state["state"])
        self._reopen()

    def stats(self) -> dict[str, Any]:
        """This rank's figures: where time went, what was read, and whether training waited.

        ``exposed_seconds`` is how long the loop has waited for data, ``skew_seconds`` for slower
        ranks. ``steps`` tells the same of each of the last 1,000 batches (:class:`Step`).
        """
        figures: dict[str, Any] = json.loads(self._pipeline().statistics())
        figures["rank"] = self._ranks.rank
        figures["steps"] = list(self._steps)
        return figures

    def explain(self) -> str:
        """How the data set is read, and why so."""
        return str(self._pipeline().explain())

    def skipped(self) -> list[tuple[int, str, str]]:
        """Id, key and reason of each sample that ``on_error="skip"`` has left out on this rank."""
        return list(self._pipeline().skipped()) + self._code.skipped

    def close(self) -> None:
        """Ends the loader's threads and gives its memory back. Arrays of batches stay valid."""
        self._generation += 1
        self._end()
        self._code.close()

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
        self._core = _core.Loader(self._ranks._comm, self._source.path, options)
        self._entries = int(self._core.entries())
        self._length = int(self._core.epoch_iterations())
        schema = [Field(*field) for field in self._core.schema()]
        raw = raw_parts(self._core.parts(), schema)
        wanted = self._source.fields
        self._schema = [field for field in schema if wanted is None or field.name in wanted]
        self._raw = {name: i for name, i in raw.items() if wanted is None or name in wanted}
        if not self._schema and not self._raw:
            known = ", ".join([field.name for field in schema] + list(raw))
            raise usage(f"none of the fields {wanted} exists", f"name some of {known}")

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

    def _end(self) -> None:
        if self._core is None:
            return
        core, self._core = self._core, None
        self._state = str(core.state())
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
        before = self._core.epochs_done()
        finished = False
        try:
            while not finished:
                self._require_latest(generation)
                self._given_up = True
                batch = self._next()
                if batch is None:
                    break
                finished = self._core.epochs_done() > before
                self._given_up = not finished
                yield batch
            self._given_up = False
        finally:
            if not finished and generation == self._generation:
                self._end()

    def _require_latest(self, generation: int) -> None:
        if generation == self._generation and self._core is not None:
            return
        raise usage(
            "this iterator was replaced by another, or its loader closed",
            "use one iterator of a loader at a time",
        )

    def _next(self) -> Optional[Batch]:
        keyed = self._keys or self._code.runs
        taken = self._core.next(list(self._raw.values()), keyed, self._seeds)
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
            return Batch({**beside, **fields}, epoch, iteration)
        if self._collate is not None:
            fields.update({name: self._collate(fields[name]) for name in self._raw})
        return Batch({**fields, **beside}, epoch, iteration)


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
