"""The object that a training loop iterates."""

from __future__ import annotations

import json
from collections.abc import Generator, Iterator, Mapping
from typing import Any, Optional, Union

from . import _core, _options
from ._batch import Batch, Field
from ._content import Content, Step
from ._dataset import ClassesLike, DatasetLike, require_same_numbers, resolve
from ._errors import UserCodeError, usage
from ._pipelines import Pipelines
from ._ranks import Ranks, RanksLike, close_at_exit, failing_together, find_ranks
from ._samples import Collate, Decode, SampleCode, Transform

__all__ = ["Loader", "Step"]

_STATE_VERSION = 1


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
            ``padded``; the default), ``wrap``, ``drop`` or ``exact`` (short). In the strided order
            of the whole run, and only with ``epochs=``.
        ranks: None: as the process was started, by ``mpirun``, ``srun``, ``torchrun`` or by hand.
            Else ``"mpi"``, ``"network"``, ``"env"``, ``"single"``, ``(rank, size)``, or an mpi4py
            communicator.
        decode: None: by what the values are (Datum, image, or as ``schema=`` declares); others
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
        strategy: How bytes are read. Never changes the data, but for one thing: ``order="strided"``
            without ``coalesce`` has the C of the strategy (docs/orders.md).
        buffers: Buffers in use and ahead; 1 hides no reading.
        memory: For all buffers of a node: bytes, or text as ``"2GiB"``. Its processes share it.
        ids: Sample ids for ``order="listed"``: a list, array or tensor of whole numbers, of one
            dimension, any type and strides.
        keys: Whether batches carry ``key``, a list of bytes.
        seeds: Whether batches carry ``seed``: a number for each sample and epoch (``uint64``), for
            augmentation that does not depend on ranks.
        classes: What the classes have to be numbered as, as of :class:`Dataset`: give a test set
            its training set.
        options: Any option of the command line by its name, as ``stage_bytes``, ``engine``,
            ``group``; :func:`option_help` lists them. ``iterations`` and ``epochs`` limit the whole
            run, and ``epochs`` the strided order to each sample once in each of them: asking for
            batches behind the end raises :class:`UsageError`. A strided batch may hold all that
            is left of several epochs: then there are fewer rounds of ``for`` than ``epochs``.

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
        end: Optional[str] = None,
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
        classes: Optional[ClassesLike] = None,
        **options: Any,
    ) -> None:
        self._generation = 0
        self._ranks = find_ranks(ranks)
        with failing_together(self._ranks):
            self._source = resolve(dataset)
            self._device = device
            self._strided = order == "strided"
            _options.check_choices(decode, order, end, on_error, ids)
            _options.check_functions(transform, collate)
            _options.check_options(options, memory)
            user_decode = decode if callable(decode) else None
            user_transform = transform if callable(transform) else None
            self._content = Content(
                self._source.fields,
                SampleCode(user_decode, user_transform, collate, on_error == "skip", threads),
                collate,
                keys,
                seeds,
            )
            named = _options.pipeline_options(
                self._ranks,
                batch_size,
                global_batch_size,
                order=order,
                end=end,
                stored=decode is False or user_decode is not None,
                transform=transform if isinstance(transform, str) else None,
                skip=on_error == "skip",
                memory=memory,
                described=self._source.options,
                options={"seed": seed, "strategy": strategy, "buffers": buffers, **options},
            )
            self._options = _options.loader_options(named, ids)
            _options.share_node(self._options, self._ranks.strangers)
        self._pipelines = Pipelines(
            self._ranks, self._source.path, self._options, self._strided, self._content.describe
        )
        close_at_exit(self)
        try:
            require_same_numbers(classes, self._source.path, self.classes)
        except BaseException:
            self.close()
            raise

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
        return self._pipelines.length

    @property
    def samples(self) -> int:
        """Samples of the data set."""
        return self._pipelines.entries

    @property
    def schema(self) -> list[Field]:
        """The decoded fields; empty where values come as they are stored."""
        return list(self._content.schema)

    @property
    def ranks(self) -> Ranks:
        """Who loads together."""
        return self._ranks

    def set_epoch(self, epoch: int) -> None:
        """Makes the next epoch the one with this number, as DistributedSampler does.

        Not needed: each epoch is a new one anyway.
        """
        epoch = _options.whole_number("epoch", epoch, 0)
        if self._strided and epoch != 0:
            raise usage("the strided order goes on over the ends of epochs", "drop set_epoch")
        self._pipelines.asked = epoch

    def state_dict(self) -> dict[str, Any]:
        """Where the run stands, after the batches that were yielded: a small value of plain types.

        It may be saved by ``torch.save``, as JSON or by pickle, and loaded on another number of
        ranks.
        """
        state = self._pipelines.position()
        return {
            "forebay": _STATE_VERSION,
            "state": None if state is None else json.loads(state),
            "epoch": self._pipelines.asked,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Makes the next iterator go on where ``state`` was taken. Collective.

        Where that fails, the loader is as before.
        """
        with failing_together(self._ranks):
            if not isinstance(state, Mapping) or state.get("forebay") != _STATE_VERSION:
                raise usage("this is no state of a loader", "give what state_dict() has returned")
            inner, asked = state.get("state"), state.get("epoch")
            if asked is not None:
                asked = _options.whole_number("the state's epoch", asked, 0)
            self._pipelines.check(inner)
        self._pipelines.resume(inner, asked)

    def stats(self) -> dict[str, Any]:
        """This rank's figures: where time went, what was read, and whether training waited.

        ``exposed_seconds`` is how long the loop has waited for data, ``skew_seconds`` for slower
        ranks. ``steps`` tells the same of each of the last 1,000 batches (:class:`Step`).
        """
        figures: dict[str, Any] = json.loads(self._pipelines.told().statistics)
        figures["rank"] = self._ranks.rank
        figures["steps"] = list(self._content.steps)
        return figures

    def explain(self) -> str:
        """How the data set is read, and why so."""
        return self._pipelines.told().explanation

    @property
    def classes(self) -> list[str]:
        """Names of what labels number, by their numbers; empty where they are not known."""
        return list(self._pipelines.classes)

    def skipped(self) -> list[tuple[int, str, str]]:
        """Id, key and reason of samples that ``on_error="skip"`` has left out on this rank.

        Each once, the first thousand of them.
        """
        return list({**self._pipelines.told().skipped, **self._content.code.skipped}.values())

    def close(self) -> None:
        """Ends the loader's threads and gives its memory back. Arrays of batches stay valid."""
        self._generation += 1
        self._pipelines.end()
        _core.wait_for_ends()
        self._content.code.close()

    def _end_with_process(self, failed: bool) -> None:
        self.close()

    def _leave_to_exit(self) -> None:
        self._generation += 1
        core, self._pipelines.core = self._pipelines.core, None
        if core is not None:
            core.leave_to_exit()
        self._content.code.close()

    def __enter__(self) -> Loader:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __reduce__(self) -> tuple[Any, ...]:
        raise usage("a loader belongs to its process", "pickle a Dataset, or state_dict()")

    def __repr__(self) -> str:
        return (
            f"Loader({self._source.path!r}: {self.samples} samples, {len(self)} batches an epoch "
            f"on {self._ranks.size} ranks)"
        )

    # Batches.

    def _batches(self, generation: int) -> Generator[Batch, None, None]:
        pipelines = self._pipelines
        self._ranks.require_still_alone()
        pipelines.begin_epoch()
        core = pipelines.core  # another thread may close the loader: then this one raises
        self._require_latest(generation)
        before = core.epochs_done()
        finished = begun = False
        try:
            while not finished:
                self._require_latest(generation)
                pipelines.given_up = True
                batch = self._next(core)
                if batch is None and begun:
                    break
                if batch is None:
                    pipelines.given_up = False
                    raise pipelines.over()
                begun = True
                finished = core.epochs_done() > before
                pipelines.given_up = not finished
                yield batch
            pipelines.given_up = False
        finally:
            if not finished and generation == self._generation:
                pipelines.end(wait=False)  # an exception may be on its way, or sys.exit()

    def _require_latest(self, generation: int) -> None:
        if generation == self._generation and self._pipelines.core is not None:
            return
        raise usage(
            "this iterator was replaced by another, or its loader closed",
            "use one iterator of a loader at a time",
        )

    def _next(self, core: Any) -> Optional[Batch]:
        if not self._content.code.runs:
            return self._content.take(core)
        # A batch whose samples a function refuses was not yielded.
        before = str(core.state())
        try:
            batch = self._content.take(core)
        except UserCodeError as error:
            self._pipelines.yielded = before
            error.rank = self._ranks.rank
            core.fail(error.args[0], error.sample, error.key or "")
            raise
        except BaseException:
            self._pipelines.yielded = before
            raise
        return batch
