"""Forebay for PyTorch: batches as tensors, data sets for DataLoader, gradients in the background.

>>> from forebay.torch import Loader, DistributedOptimizer
>>> loader = Loader("train.lmdb", batch_size=256, device="cuda")
>>> optimizer = DistributedOptimizer(optimizer, model.named_parameters())
"""

from ._collectives import (
    allreduce,
    broadcast_object,
    broadcast_optimizer_state,
    broadcast_parameters,
    synchronizer,
)
from ._data import IterableDataset, Sampler
from ._optimizer import DistributedOptimizer
from ._tensors import Loader, as_tensors, to_device

__all__ = [
    "DistributedOptimizer",
    "IterableDataset",
    "Loader",
    "Sampler",
    "allreduce",
    "as_tensors",
    "broadcast_object",
    "broadcast_optimizer_state",
    "broadcast_parameters",
    "synchronizer",
    "to_device",
]
