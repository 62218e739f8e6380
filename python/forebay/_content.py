"""From what the C++ pipeline gives to a batch."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Optional

from ._batch import Batch, Field, Ragged
from ._dataset import raw_parts, require_free_names
from ._errors import UserCodeError, usage
from ._samples import Collate, SampleCode

if TYPE_CHECKING:
    import numpy as np

_KEPT_STEPS = 1000


class Step(NamedTuple):
    """What the loop waited for before one batch came, in seconds."""

    iteration: int
    data: float
    decoding: float
    ranks: float


class Content:
    """What batches consist of, and how they are put together.

    Attributes:
        schema: The decoded fields.
        raw: Names of those that come as they are stored, and which part of a value each is.
        code: The user's functions.
        collate: The user's, for fields that come as they are stored.
        keys: Whether batches carry keys.
        seeds: Whether batches carry seeds.
        steps: Waits of the last batches.
    """

    def __init__(
        self,
        fields: Optional[Sequence[str]],
        code: SampleCode,
        collate: Optional[Collate],
        keys: bool,
        seeds: bool,
    ) -> None:
        self._wanted = fields
        self.code = code
        self.collate = collate
        self.keys = keys
        self.seeds = seeds
        self.steps: deque[Step] = deque(maxlen=_KEPT_STEPS)
        self.schema: list[Field] = []
        self.raw: dict[str, int] = {}

    def describe(self, core: Any) -> None:
        """Finds out what a pipeline gives."""
        schema = [Field(*field) for field in core.schema()]
        raw = raw_parts(core.parts(), schema)
        wanted = self._wanted
        self.schema = [field for field in schema if wanted is None or field.name in wanted]
        self.raw = {name: i for name, i in raw.items() if wanted is None or name in wanted}
        names = [field.name for field in self.schema] + list(self.raw)
        if not names:
            known = ", ".join([field.name for field in schema] + list(raw))
            raise usage(f"none of the fields {wanted} exists", f"name some of {known}")
        extra = [("key", self.keys), ("seed", self.seeds)]
        require_free_names(names, ["sample", "padded"] + [name for name, has in extra if has])

    def take(self, core: Any) -> Optional[Batch]:
        """The pipeline's next batch; None at the end of the data."""
        keyed = self.keys or self.code.runs
        taken = core.next(list(self.raw.values()), keyed, self.seeds)
        if taken is None:
            return None
        epoch, iteration, ids, repeats, decoded, stored, keys, seeds, waited = taken
        self.steps.append(Step(iteration, *waited))
        fields: dict[str, Any] = {field.name: decoded[field.name] for field in self.schema}
        for name, (data, offsets) in zip(self.raw, stored):
            fields[name] = Ragged(data, offsets)
        beside: dict[str, Any] = {"sample": ids, "padded": repeats.view("bool")}
        if self.keys:
            beside["key"] = keys
        if self.seeds:
            beside["seed"] = seeds
        if self.code.runs:
            fields, kept = self.code.apply({**fields, **_each(beside)}, ids, keys, self.raw)
            beside = {name: _pick(value, kept, len(ids)) for name, value in beside.items()}
        elif self.collate is not None:
            fields.update({name: self._collated(fields[name]) for name in self.raw})
        return Batch({**fields, **beside}, epoch, iteration)

    def _collated(self, values: Ragged) -> Any:
        assert self.collate is not None
        try:
            return self.collate(values)
        except Exception as error:
            raise UserCodeError.of(error, None, "") from error


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
