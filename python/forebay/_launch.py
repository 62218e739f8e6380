"""Who am I? What a process can find out about the job that it is part of, without MPI.

Asked in this order: an initialized ``torch.distributed``; the variables of ``torchrun`` (also of
Accelerate and DeepSpeed, which start processes by it or as it does), of Lightning, of ``srun``, and
of others that say the same in other words. Where several processes of a job are evident and which
of them this one is cannot be told, that is an error: each would take the whole data set for itself.
"""

from __future__ import annotations

import os
import re
import sys
from typing import Any, NamedTuple, Optional

from ._errors import UsageError, usage


class Place(NamedTuple):
    """A process among those that were started with it."""

    rank: int
    size: int
    on_node: int  # processes of this node, as far as is known
    told_by: str  # for messages


_CHOOSE = "open the loader after init_process_group, or give ranks=(rank, size) or ranks='single'"

# Rank and number of processes, by launchers that say both; behind those of the standard ones.
_MPI_LAUNCHERS = (
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE"),
    ("PMI_RANK", "PMI_SIZE", "MPI_LOCALNRANKS"),
    ("PMIX_RANK", "SLURM_STEP_NUM_TASKS", ""),
)
_OTHER_LAUNCHERS = (
    ("HOROVOD_RANK", "HOROVOD_SIZE", "HOROVOD_LOCAL_SIZE"),
    ("FLUX_TASK_RANK", "FLUX_JOB_SIZE", ""),
    ("JSM_NAMESPACE_RANK", "JSM_NAMESPACE_SIZE", "JSM_NAMESPACE_LOCAL_SIZE"),
)


def torch_processes() -> Optional[Any]:
    """``torch.distributed`` where a process group is initialized; torch is not imported for it."""
    distributed = sys.modules.get("torch.distributed")
    if distributed is None or not getattr(distributed, "is_available", bool)():
        return None
    return distributed if distributed.is_initialized() else None


def started_by_torchrun() -> bool:
    """Whether torchrun has started this very process, whatever has started torchrun."""
    return "TORCHELASTIC_RUN_ID" in os.environ and "RANK" in os.environ


def find_place() -> Optional[Place]:
    """This process's place; None where nothing tells of other processes.

    Raises UsageError where there are others, and which of them this one is cannot be told.
    """
    found = _by_torch() or _by_torchrun() or _by_lightning() or _by_slurm() or _by_others()
    if found is None:
        _require_alone()
    return found


def in_worker() -> bool:
    """Whether this is a worker of a DataLoader of torch, which belongs to the rank that made it."""
    data = sys.modules.get("torch.utils.data")
    return data is not None and data.get_worker_info() is not None


def find_place_of_worker() -> Optional[Place]:
    """As find_place(), also under mpirun: a worker must not begin MPI."""
    return _by_torch() or _by_mpi() or find_place()


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


def _by_torch() -> Optional[Place]:
    group = torch_processes()
    if group is None:
        return None
    rank, size = group.get_rank(), group.get_world_size()
    return Place(rank, size, _number("LOCAL_WORLD_SIZE") or 1, "torch.distributed")


def _by_torchrun() -> Optional[Place]:
    on_node = _number("LOCAL_WORLD_SIZE") or 1
    return _place("RANK", "WORLD_SIZE", on_node)


def _by_lightning() -> Optional[Place]:
    """Lightning's own launcher sets no RANK; its processes of one node lie in a row."""
    local, size, node = _number("LOCAL_RANK"), _number("WORLD_SIZE"), _number("NODE_RANK")
    if local is None or size is None or node is None or size == 1:
        return None
    if node > 0 or not 0 <= local < size:
        raise usage(
            f"LOCAL_RANK={local}, NODE_RANK={node} and WORLD_SIZE={size} leave open which of the "
            "job's processes this is",
            "open the loader in train_dataloader() or setup(), where Lightning has connected them, "
            "or give ranks=(rank, size)",
        )
    return Place(local, size, 1, "LOCAL_RANK, NODE_RANK and WORLD_SIZE")


def _by_slurm() -> Optional[Place]:
    on_node = _tasks_of_node(
        os.environ.get("SLURM_STEP_TASKS_PER_NODE", ""), _number("SLURM_NODEID") or 0
    )
    return _place("SLURM_PROCID", "SLURM_STEP_NUM_TASKS", on_node)


def _by_others() -> Optional[Place]:
    return _by_names(_OTHER_LAUNCHERS)


def _by_mpi() -> Optional[Place]:
    return None if started_by_torchrun() else _by_names(_MPI_LAUNCHERS)


def _by_names(launchers: tuple[tuple[str, str, str], ...]) -> Optional[Place]:
    for rank, size, on_node in launchers:
        found = _place(rank, size, _number(on_node) or 1)
        if found is not None:
            return found
    return None


def _require_alone() -> None:
    """Raises UsageError where other processes of this job are evident."""
    size = _number("WORLD_SIZE")
    if size is not None and size > 1:
        raise usage(f"WORLD_SIZE is {size} and RANK is not set: which process is this?", _CHOOSE)
    address = os.environ.get("MASTER_ADDR")
    if address and "MASTER_PORT" in os.environ and _started_by_multiprocessing():
        raise usage(
            f"MASTER_ADDR={address} tells of other processes, and this one, started by "
            "multiprocessing, has no RANK",
            _CHOOSE,
        )


def _started_by_multiprocessing() -> bool:
    """Also by torch.multiprocessing; but a worker of a DataLoader belongs to its parent."""
    processes = sys.modules.get("multiprocessing")
    if processes is None or processes.parent_process() is None:
        return False
    return not in_worker()


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
