"""What the environment tells of processes that were started together, without MPI.

``torchrun`` sets ``RANK``, ``WORLD_SIZE`` and ``LOCAL_WORLD_SIZE``; so does who starts processes by
hand. ``srun`` sets ``SLURM_PROCID`` and, in a step alone, ``SLURM_STEP_NUM_TASKS``: a batch script
has a ``SLURM_PROCID`` and a ``SLURM_NTASKS`` too, and is one process.
"""

from __future__ import annotations

import os
import re
from typing import NamedTuple, Optional

from ._errors import UsageError, usage


class Place(NamedTuple):
    """A process among those that were started with it."""

    rank: int
    size: int
    on_node: int  # processes of this node
    told_by: str  # names of the variables, for messages


def started_by_torchrun() -> bool:
    """Whether torchrun has started this very process, whatever has started torchrun."""
    return "TORCHELASTIC_RUN_ID" in os.environ and "RANK" in os.environ


def find_place() -> Optional[Place]:
    """This process's place; None where the environment tells of none."""
    return _by_torchrun() or _by_slurm()


def processes_of_node() -> int:
    """How many were started on this node, whatever the environment says of their ranks."""
    try:
        place = find_place()
    except UsageError:
        return 1
    return 1 if place is None else place.on_node


def cores_of(processes: int) -> int:
    """Cores of one of so many processes of this node that share what they may run on."""
    allowed = len(os.sched_getaffinity(0))
    # Tasks of Slurm have been bound to their own each; torchrun's processes share those of one.
    given = None if started_by_torchrun() else _number("SLURM_CPUS_PER_TASK")
    return max(min(given, allowed) if given else allowed // processes, 1)


def _number(name: str) -> Optional[int]:
    try:
        return int(os.environ[name])
    except (KeyError, ValueError):
        return None


def _by_torchrun() -> Optional[Place]:
    on_node = _number("LOCAL_WORLD_SIZE") or 1
    return _place("RANK", "WORLD_SIZE", on_node)


def _by_slurm() -> Optional[Place]:
    on_node = _tasks_of_node(
        os.environ.get("SLURM_STEP_TASKS_PER_NODE", ""), _number("SLURM_NODEID") or 0
    )
    return _place("SLURM_PROCID", "SLURM_STEP_NUM_TASKS", on_node)


def _place(rank_name: str, size_name: str, on_node: int) -> Optional[Place]:
    rank, size = _number(rank_name), _number(size_name)
    if rank is None or size is None:
        return None
    if not 0 <= rank < size:
        raise usage(
            f"{rank_name}={rank} and {size_name}={size} in the environment are no place among "
            "ranks",
            "unset them, or give ranks=(rank, size)",
        )
    return Place(rank, size, max(on_node, 1), f"{rank_name} and {size_name}")


def _tasks_of_node(text: str, node: int) -> int:
    """The number of node ``node`` in Slurm's short form: ``2(x3),1`` are 2, 2, 2 and 1."""
    for part in text.split(","):
        found = re.fullmatch(r"(\d+)(?:\(x(\d+)\))?", part.strip())
        if found is None:
            return 1
        nodes = int(found[2] or 1)
        if node < nodes:
            return int(found[1])
        node -= nodes
    return 1
