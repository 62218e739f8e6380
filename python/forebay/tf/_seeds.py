"""The orders of DeepIO's front end: a file of seeds, of which every worker makes its own list."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Union

from .. import _core
from .._errors import make, usage

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_VERSION = 1
_MOST_SAMPLES = 1 << 48
_MOST_SEED = (1 << 64) - 1

_Path = Union[str, "os.PathLike[str]"]


def generate_seed(
    epoch_count: int, seed_file: _Path, samples: int, workers: int = 1, seed: int = 0
) -> None:
    """Writes a seed for each of ``epoch_count`` epochs to ``seed_file``, a small JSON text.

    One process does so; all workers read the file. It appears whole or not at all.

    Args:
        epoch_count: How many epochs there are seeds for.
        seed_file: Where; what was there is replaced.
        samples: Of the data set.
        workers: Among whom :func:`shuffle_rand` divides each epoch.
        seed: Of the run: the same gives the same file.
    """
    if epoch_count < 1:
        raise usage(f"epoch_count is {epoch_count}", "give at least 1")
    if not 1 <= samples <= _MOST_SAMPLES:
        raise usage(f"samples is {samples}", "give 1 to 2^48")
    if workers < 1:
        raise usage(f"workers is {workers}", "give at least 1")
    if not 0 <= seed <= _MOST_SEED:
        raise usage(f"seed is {seed}", "give 0 to 2^64 - 1")
    text = json.dumps(
        {
            "forebay_seeds": _VERSION,
            "samples": samples,
            "workers": workers,
            "seeds": [_core.sample_seed(seed, epoch, 0) for epoch in range(epoch_count)],
        }
    )
    target = Path(seed_file)
    part = target.with_name(f"{target.name}.{os.getpid()}.part")
    try:
        part.write_text(text + "\n")
        os.replace(part, target)
    except OSError as error:
        raise make(
            "io", f"{target}: {error.strerror}", str(error.strerror), file=str(target)
        ) from None


def shuffle_rand(epoch_id: int, worker_id: int, seed_file: _Path) -> NDArray[np.int64]:
    """The samples of worker ``worker_id`` in epoch ``epoch_id``, in random order.

    All workers together have each sample once; their shares differ by one sample at most. Every
    worker computes its own share and nothing else: Forebay's keyed permutation is evaluated place
    by place.
    """
    import numpy as np

    seeds = _read(Path(seed_file))
    if not 0 <= epoch_id < len(seeds["seeds"]):
        raise usage(
            f"epoch_id is {epoch_id}, and {seed_file} has {len(seeds['seeds'])} epochs",
            "generate more seeds",
        )
    samples, workers = seeds["samples"], seeds["workers"]
    if not 0 <= worker_id < workers:
        raise usage(f"worker_id is {worker_id} of {workers}", "count workers from 0")
    first, end = worker_id * samples // workers, (worker_id + 1) * samples // workers
    ids = _core.permute(samples, seeds["seeds"][epoch_id], first, end - first)
    return np.asarray(ids).view(np.int64)


def _read(path: Path) -> dict[str, Any]:
    try:
        text = path.read_text()
    except FileNotFoundError:
        remedy = "make it by generate_seed()"
        raise make(
            "not_found",
            f"{path}: there is no such file: {remedy}",
            "no such file",
            remedy,
            str(path),
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise make("io", f"{path}: {error}", str(error), file=str(path)) from None
    try:
        value = json.loads(text)
    except ValueError:
        value = None
    if not _valid(value):
        happened, remedy = "this is no file of seeds", "make one by generate_seed()"
        raise make("corrupt", f"{path}: {happened}: {remedy}", happened, remedy, str(path))
    return dict(value)


def _valid(value: Any) -> bool:
    def number(x: Any, least: int, most: int) -> bool:
        return isinstance(x, int) and not isinstance(x, bool) and least <= x <= most

    return (
        isinstance(value, dict)
        and value.get("forebay_seeds") == _VERSION
        and number(value.get("samples"), 1, _MOST_SAMPLES)
        and number(value.get("workers"), 1, _MOST_SAMPLES)
        and isinstance(value.get("seeds"), list)
        and all(number(seed, 0, _MOST_SEED) for seed in value["seeds"])
    )
