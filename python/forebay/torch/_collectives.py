"""What ranks tell each other besides gradients: tensors, models, optimizers, objects."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, Union

import torch

from .._errors import usage
from .._ranks import RanksLike
from .._sync import Synchronizer

_shared: dict[str, Synchronizer] = {}

# What the synchronizer moves; others travel as words of four bytes.
_NATIVE = (
    torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.int32, torch.int64,
)  # fmt: skip
_WORD = 4


def synchronizer(ranks: RanksLike = None, **options: Any) -> Synchronizer:
    """The synchronizer that this module's functions share; made at the first call. Collective.

    Options are those of :class:`forebay.Synchronizer`; they count at the first call.
    """
    if "default" not in _shared:
        _shared["default"] = Synchronizer(ranks, **options)
    elif options or ranks is not None:
        raise usage("the synchronizer exists already", "give its options at the first call")
    return _shared["default"]


def on_processor(tensor: torch.Tensor) -> torch.Tensor:
    """``tensor`` without its history; raises UsageError where MPI cannot reach it."""
    if tensor.device.type != "cpu":
        raise usage(
            f"a tensor on {tensor.device} cannot be summed by MPI on processors",
            "move it to the CPU, or use DistributedDataParallel on CUDA",
        )
    return tensor.detach()


def allreduce(
    tensor: torch.Tensor, name: str, reduction: str = "mean", inplace: bool = False
) -> torch.Tensor:
    """``tensor`` summed (or averaged...) over all ranks. Waits; collective by ``name``."""
    result = on_processor(tensor)
    if not inplace:
        result = result.clone().resolve_conj().resolve_neg()
    synchronizer().allreduce(name, result, reduction=reduction).wait()
    return tensor if inplace else result


def broadcast_parameters(
    parameters: Union[Mapping[str, Any], Iterable[tuple[str, torch.Tensor]]], root_rank: int = 0
) -> None:
    """Gives rank ``root_rank``'s ``model.state_dict()``, or named parameters, to all ranks.

    Tensors of any type and device, in place; by way of the processor's memory. Collective.
    """
    items = parameters.items() if isinstance(parameters, Mapping) else parameters
    tensors: dict[str, torch.Tensor] = {}
    for name, value in items:
        if not isinstance(value, torch.Tensor):
            continue
        if name in tensors:
            raise usage(f"two of the parameters are called {name}", "give each a name of its own")
        tensors[name] = value
    if not tensors:
        raise usage(
            "there are no tensors among the parameters",
            "give model.state_dict() or model.named_parameters(); of an optimizer's state takes "
            "care broadcast_optimizer_state()",
        )
    _broadcast(tensors, root_rank)


def broadcast_optimizer_state(optimizer: torch.optim.Optimizer, root_rank: int = 0) -> None:
    """Gives all ranks the state of rank ``root_rank``'s optimizer: momenta, steps, rates.

    For an optimizer that one rank has loaded from a file, or that goes on after others have come.
    Groups have the same number of parameters on all ranks; the state may be missing on others.
    Collective.
    """
    rank = synchronizer().ranks.rank
    tensors: dict[str, torch.Tensor] = {}
    mine = _taken_apart(optimizer.state_dict(), tensors) if rank == root_rank else None
    state = broadcast_object(mine, root_rank)
    if rank != root_rank:
        state = _put_together(state, tensors)
    if tensors:
        _broadcast(tensors, root_rank)
    if rank != root_rank:
        optimizer.load_state_dict(state)


def broadcast_object(value: Any, root_rank: int = 0) -> Any:
    """Rank ``root_rank``'s ``value``, which pickle can write, on all ranks. Collective.

    What others give is not looked at.
    """
    engine = synchronizer()
    ranks = engine.ranks
    if not 0 <= root_rank < ranks.size:
        raise usage(f"root_rank is {root_rank}", f"give a rank from 0 to {ranks.size - 1}")
    data, failure = b"", None
    if ranks.rank == root_rank:
        try:
            data = pickle.dumps(value)
        except Exception as error:  # told to all, who wait for it
            failure = error
            data = pickle.dumps(f"{type(error).__name__}: {error}")
    header = torch.tensor([len(data), failure is not None], dtype=torch.int64)
    engine.broadcast("forebay.object.size", header, root_rank).wait()
    size, failed = (int(x) for x in header)
    words = torch.zeros(_words(size), dtype=torch.int32)
    content = memoryview(words.numpy()).cast("B")
    content[: len(data)] = data
    engine.broadcast("forebay.object", words, root_rank).wait()
    if failed:
        raise usage(
            f"the object of rank {root_rank} cannot be pickled: {pickle.loads(content[:size])}",
            "broadcast what it consists of",
        ) from failure
    return value if ranks.rank == root_rank else pickle.loads(content[:size])


class _Slot(NamedTuple):
    """In place of a tensor that is sent by itself."""

    name: str
    type: torch.dtype
    shape: tuple[int, ...]


def _taken_apart(value: Any, tensors: dict[str, torch.Tensor]) -> Any:
    """``value`` with a slot in place of each tensor, which goes to ``tensors``."""
    if isinstance(value, torch.Tensor):
        name = f"optimizer.{len(tensors)}"
        tensors[name] = value
        return _Slot(name, value.dtype, tuple(value.shape))
    if isinstance(value, dict):
        return {key: _taken_apart(each, tensors) for key, each in value.items()}
    if type(value) in (list, tuple):
        return type(value)(_taken_apart(each, tensors) for each in value)
    return value


def _put_together(value: Any, tensors: dict[str, torch.Tensor]) -> Any:
    """The inverse, with room for the tensors."""
    if isinstance(value, _Slot):
        tensors[value.name] = torch.empty(value.shape, dtype=value.type)
        return tensors[value.name]
    if isinstance(value, dict):
        return {key: _put_together(each, tensors) for key, each in value.items()}
    if type(value) in (list, tuple):
        return type(value)(_put_together(each, tensors) for each in value)
    return value


def _words(size: int) -> int:
    return (size + _WORD - 1) // _WORD


def _require_memory(name: str, tensor: torch.Tensor) -> None:
    """Raises UsageError for what cannot be given other numbers."""
    if tensor.layout != torch.strided or tensor.is_quantized or tensor.device.type == "meta":
        kind = "quantized" if tensor.is_quantized else f"{tensor.layout} on {tensor.device}"
        raise usage(
            f"tensor {name} has no plain memory to broadcast: it is {kind}",
            "leave it out, or broadcast_object() what it consists of",
        )
    if any(step == 0 and extent > 1 for step, extent in zip(tensor.stride(), tensor.shape)):
        raise usage(f"elements of tensor {name} share memory", "broadcast tensor.clone()")


def _movable(tensor: torch.Tensor) -> torch.Tensor:
    """The numbers of ``tensor`` as the synchronizer takes them: its own memory, or a copy."""
    memory: torch.Tensor = tensor.detach().cpu().resolve_conj().resolve_neg()
    if memory.dtype in _NATIVE:
        return memory
    content = memory.contiguous().reshape(-1).view(torch.uint8)
    padded = torch.zeros(_words(content.numel()) * _WORD, dtype=torch.uint8)
    padded[: content.numel()] = content
    words: torch.Tensor = padded.view(torch.int32)
    return words


def _take_over(tensor: torch.Tensor, moved: torch.Tensor) -> None:
    if tensor.dtype not in _NATIVE:
        size = tensor.numel() * tensor.element_size()
        moved = moved.view(torch.uint8)[:size].view(tensor.dtype).reshape(tensor.shape)
    if moved.data_ptr() != tensor.data_ptr():
        tensor.copy_(moved)


def _broadcast(tensors: Mapping[str, torch.Tensor], root_rank: int) -> None:
    engine = synchronizer()
    waiting = []
    for name, tensor in tensors.items():
        _require_memory(name, tensor)
    for name, tensor in tensors.items():
        if tensor.numel() == 0:
            continue
        memory = _movable(tensor)
        waiting.append((engine.broadcast(f"broadcast.{name}", memory, root_rank), tensor, memory))
    with torch.no_grad():
        for handle, tensor, memory in waiting:
            handle.wait()
            _take_over(tensor, memory)
