"""For those who keep their DataLoader."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from typing import Any, Optional

import torch.utils.data

from .. import _core
from .._errors import usage
from .._launch import Place, find_place_of_worker, in_worker
from .._loader import Loader
from .._options import global_batch, loader_options
from .._ranks import RanksLike, find_ranks, ranks_of_worker
from ._tensors import as_tensors


class IterableDataset(torch.utils.data.IterableDataset[Any]):
    """A loader's batches for ``DataLoader(dataset, batch_size=None)``.

    Takes the arguments of :class:`forebay.Loader`, which is opened in the process that iterates.
    Forebay reads and decodes in threads: ``num_workers`` is not needed. Of several
    workers the first delivers everything, so that no sample comes twice.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__()
        self._args = args
        self._options = options
        self._loader: Optional[Loader] = None
        self._process = 0  # that has opened it
        self._state: Optional[dict[str, Any]] = None
        self._place: Optional[Place] = None  # of the rank, in a worker that cannot find it out
        # Workers of every epoch may be new processes: all see the same number.
        self._epochs = torch.zeros(1, dtype=torch.int64).share_memory_()  # type: ignore[no-untyped-call]

    def _open(self) -> Loader:
        if self._loader is None or self._process != os.getpid():
            options = self._options
            if in_worker() and options.get("ranks") is None:
                options = {**options, "ranks": ranks_of_worker(self._place)}
            self._loader = Loader(*self._args, **options)
            self._process = os.getpid()
            if self._state is not None:
                self._loader.load_state_dict(self._state)
        return self._loader

    def set_epoch(self, epoch: int) -> None:
        """The next iterator gives this epoch. Not needed."""
        self._epochs[0] = epoch
        self._state = None

    def __iter__(self) -> Iterator[Any]:
        worker = torch.utils.data.get_worker_info()  # type: ignore[no-untyped-call]
        if worker is not None and worker.id > 0:
            return
        if worker is not None and worker.num_workers > 1:
            warnings.warn(
                "forebay: one worker delivers all batches; num_workers=0 is faster, since the "
                "loader reads and decodes in threads of its own",
                stacklevel=2,
            )
        loader = self._open()
        if self._state is None:
            loader.set_epoch(int(self._epochs[0]))
        self._state = None
        for batch in loader:
            self._epochs[0] = batch.epoch + 1
            yield dict(as_tensors(batch))

    def __len__(self) -> int:
        return len(self._open())

    def state_dict(self) -> dict[str, Any]:
        """As :meth:`forebay.Loader.state_dict`."""
        return self._open().state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """As :meth:`forebay.Loader.load_state_dict`."""
        self._state = state
        if self._loader is not None:
            self._loader.load_state_dict(state)

    def __getstate__(self) -> dict[str, Any]:
        place = self._place or find_place_of_worker()
        return {**self.__dict__, "_loader": None, "_place": place}


class Sampler(torch.utils.data.Sampler[int]):
    """The ids that a loader would give this rank, for ``DataLoader(dataset, sampler=...)``.

    A new order in every epoch without being asked; with ``batch_size`` as the DataLoader has it,
    its batches are those of :class:`forebay.Loader`.

    Args:
        samples: A data set, or how many samples there are.
        batch_size: Of each rank.
        order, seed, end, ranks, options: As for :class:`forebay.Loader`.
    """

    def __init__(
        self,
        samples: Any,
        batch_size: int,
        *,
        order: str = "shuffled",
        seed: int = 0,
        end: str = "pad",
        ranks: RanksLike = None,
        **options: Any,
    ) -> None:
        self._samples = len(samples) if hasattr(samples, "__len__") else int(samples)
        if order in ("strided", "listed"):
            raise usage(f"a sampler has no order {order}", "use forebay.Loader")
        self._ranks = find_ranks(ranks)
        sequential = order == "sequential"
        self._options = loader_options(
            {
                "order": "shuffled" if sequential else order,
                "keep": 0 if sequential else None,
                "seed": seed,
                "end": end,
                "batch": global_batch(batch_size, None, self._ranks.size),
                **options,
            }
        )
        self._epoch = 0
        self._length = len(self._ids(0))

    def set_epoch(self, epoch: int) -> None:
        """The next iterator gives this epoch."""
        self._epoch = epoch

    def __iter__(self) -> Iterator[int]:
        self._ranks.require_still_alone()
        epoch, self._epoch = self._epoch, self._epoch + 1
        return iter(self._ids(epoch).tolist())

    def __len__(self) -> int:
        return self._length

    def _ids(self, epoch: int) -> Any:
        return _core.order_ids(
            self._options, self._samples, self._ranks.size, self._ranks.rank, epoch
        )
