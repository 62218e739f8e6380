"""Several data sets as one, in given proportions."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Optional

from . import _core
from ._dataset import Dataset, apart, require_free_names, split_fields
from ._errors import usage
from ._loader import Loader
from ._options import whole_number
from ._ranks import RanksLike, failing_together, find_ranks

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_STATE_VERSION = 1


def shares(weights: list[float], samples: int) -> list[int]:
    """``samples`` divided by weight: whole numbers that add up, by largest remainder."""
    total = sum(weights)
    exact = [weight * samples / total for weight in weights]
    counts = [int(each) for each in exact]
    by_remainder = sorted(range(len(exact)), key=lambda i: (counts[i] - exact[i], i))
    for i in by_remainder[: samples - sum(counts)]:
        counts[i] += 1
    return counts


def _key(seed: int, *numbers: int) -> int:
    """A key for a permutation, from the run's seed and what it is for."""
    key = seed & (1 << 64) - 1
    for number in numbers:
        key = int(_core.sample_seed(key, number, 0))
    return key


class Mix:
    """Batches of several data sets, mixed exactly by weight or by samples an epoch.

    >>> mix = forebay.Mix({"web.lmdb": 3, "books.lmdb": 1}, batch_size=256)
    >>> for batch in mix:
    ...     step(batch["image"], batch["source"])

    Each epoch has a fixed number of samples of each data set, in random order; a data set that is
    smaller than its part is used again, one that is larger goes on in the next epoch: over the
    epochs all samples of a data set come equally often, to within one. All ranks have equal
    batches. Batches carry ``source``, the number of the data set that a sample is from, and
    ``sample``, its id there.

    Args:
        datasets: From data set to weight, or samples an epoch. All must be of one format and have
            equal fields.
        batch_size: Of each rank; or ``global_batch_size`` among the options.
        by: ``weight``, or ``samples``: the numbers are samples an epoch.
        samples: Samples an epoch, by weight; default: as many as all data sets have.
        seed, ranks, options: As for :class:`Loader`.
    """

    def __init__(
        self,
        datasets: Mapping[Any, float],
        batch_size: Optional[int] = None,
        *,
        by: str = "weight",
        samples: Optional[int] = None,
        seed: int = 0,
        ranks: RanksLike = None,
        **options: Any,
    ) -> None:
        self._ranks = find_ranks(ranks)
        with failing_together(self._ranks):
            _check_arguments(datasets, by, options)
            parts = [_opened(each) for each in datasets]
            self._path, self._describe = _one_after_the_other(parts)
            self._sizes = [len(part) for part in parts]
            numbers = list(datasets.values())
            self._counts = _counts(numbers, by, samples, sum(self._sizes))
        self._seed = seed
        self._batch_size = batch_size
        self._options = options
        self._loader: Loader
        self._go_to(0)
        self._length = len(self._loader)

    @property
    def samples(self) -> int:
        """Samples an epoch."""
        return sum(self._counts)

    @property
    def counts(self) -> list[int]:
        """Samples of each data set an epoch."""
        return list(self._counts)

    def __len__(self) -> int:
        """Batches an epoch, the same on all ranks."""
        return self._length

    def ids(self, epoch: int) -> NDArray[np.int64]:
        """The order of an epoch: ids of the data sets one after the other."""
        import numpy as np

        total = sum(self._counts)
        order = np.empty(total, np.int64)
        places: Any = _core.permute(total, _key(self._seed, 0, epoch), 0, total)
        begin = offset = 0
        for number, (size, count) in enumerate(zip(self._sizes, self._counts)):
            order[places[begin : begin + count]] = offset + self._stream(number, epoch, size, count)
            begin += count
            offset += size
        return order

    def _stream(self, number: int, epoch: int, size: int, count: int) -> NDArray[np.int64]:
        """``count`` samples of a data set, which goes on from epoch to epoch."""
        import numpy as np

        pieces: list[Any] = []
        at, end = epoch * count, (epoch + 1) * count
        while at < end:
            turn, first = divmod(at, size)
            taken = min(size - first, end - at)
            pieces.append(_core.permute(size, _key(self._seed, number + 1, turn), first, taken))
            at += taken
        return np.concatenate(pieces).astype(np.int64) if pieces else np.empty(0, np.int64)

    def _go_to(self, epoch: int) -> None:
        if hasattr(self, "_loader"):
            self._loader.close()
        self._epoch = epoch  # of the loader's list
        self._begun = False
        self._loader = Loader(
            Dataset(self._path, **self._describe) if self._describe else self._path,
            self._batch_size,
            order="listed",
            ids=self.ids(epoch),
            seed=_key(self._seed, epoch) >> 1,
            ranks=self._ranks,
            **self._options,
        )
        if self._loader.samples != sum(self._sizes):
            raise usage(
                f"the data sets have {sum(self._sizes)} samples one by one and "
                f"{self._loader.samples} together",
                "give data sets of one format, and no pattern that matches nothing",
            )

    def __iter__(self) -> Iterator[Any]:
        """What is left of a resumed epoch, else a whole new one."""
        if self._begun:
            self._go_to(self._epoch + 1)
        epoch = self._epoch
        for batch in self._loader:
            self._begun = True
            yield self._told(batch, epoch)

    def _told(self, batch: Any, epoch: int) -> Any:
        import numpy as np

        ends = np.cumsum(self._sizes)
        ids = np.asarray(batch["sample"])
        source = np.searchsorted(ends, ids, side="right")
        require_free_names(list(batch), ["source"])
        batch["source"] = source
        batch["sample"] = ids - (ends - self._sizes)[source]
        batch.epoch = epoch
        return batch

    def set_epoch(self, epoch: int) -> None:
        """Makes the next epoch the one with this number. Not needed."""
        epoch = whole_number("epoch", epoch, 0)
        if self._begun or epoch != self._epoch:
            self._go_to(epoch)

    def state_dict(self) -> dict[str, Any]:
        """As :meth:`Loader.state_dict`."""
        return {
            "forebay_mix": _STATE_VERSION,
            "epoch": self._epoch,
            "loader": self._loader.state_dict(),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """As :meth:`Loader.load_state_dict`. Collective."""
        with failing_together(self._ranks):
            epoch, inner, used_up = _parts_of_state(state)
        self._go_to(epoch + 1 if used_up else epoch)
        if not used_up:
            self._loader.load_state_dict(inner)

    def stats(self) -> dict[str, Any]:
        """Of the present epoch, as :meth:`Loader.stats`."""
        return self._loader.stats()

    def close(self) -> None:
        """Ends the threads of the loader."""
        self._loader.close()

    def __enter__(self) -> Mix:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _check_arguments(datasets: Mapping[Any, float], by: str, options: Mapping[str, Any]) -> None:
    if by not in ("weight", "samples"):
        raise usage(f"by is {by!r}", "use weight or samples")
    if not datasets or any(not 0 < number < math.inf for number in datasets.values()):
        raise usage("weights must be positive", "leave out data sets that are not wanted")
    if "order" in options or "ids" in options:
        raise usage("a mix has an order of its own", "drop order and ids")
    if "iterations" in options or "epochs" in options:
        raise usage("a mix has no end", "drop iterations and epochs, and end the loop")


def _counts(numbers: list[float], by: str, samples: Optional[int], all_samples: int) -> list[int]:
    """Samples of each data set an epoch."""
    if samples is not None:
        samples = whole_number("samples", samples, 1)
    if by == "samples":
        counts = [int(number) for number in numbers]
    else:
        counts = shares([float(number) for number in numbers], samples or all_samples)
    if sum(counts) == 0:
        raise usage("an epoch of the mix has no samples", "raise samples")
    return counts


def _parts_of_state(state: Mapping[str, Any]) -> tuple[int, Any, bool]:
    """The epoch, the state of its loader, and whether that has come to its end."""
    try:
        if state["forebay_mix"] == _STATE_VERSION:
            inner = state["loader"]["state"]
            used_up = inner is not None and int(inner["epoch"]) > 0
            return whole_number("epoch", state["epoch"], 0), state["loader"], used_up
    except (TypeError, KeyError, ValueError):
        pass
    raise usage("this is no state of a mix", "give what state_dict() has returned")


def _opened(each: Any) -> Dataset:
    return each if isinstance(each, Dataset) else Dataset(each)


def _one_after_the_other(parts: list[Dataset]) -> tuple[str, dict[str, Any]]:
    """The name of all as one data set, and what else says what they are."""
    first = parts[0].source
    names: list[str] = []
    fields = ""
    for part in parts:
        name, after = split_fields(part.source.path)
        if part.source.options != first.options or (after != fields and names):
            raise usage(
                f"{part.path} is described otherwise than {parts[0].path}",
                "give all data sets of a mix the same fields and options",
            )
        fields = after
        names.append(apart(name) if len(parts) > 1 else name)
    options = {key: value for key, value in first.options.items() if value is not None}
    if first.fields is not None:
        options["fields"] = list(first.fields)
    return ",".join(names) + fields, options
