"""Gradients summed over ranks while the backward pass goes on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Optional, Union

import torch

from .._errors import usage
from .._sync import Handle, Synchronizer
from ._collectives import on_processor
from ._collectives import synchronizer as shared_synchronizer


class DistributedOptimizer(torch.optim.Optimizer):
    """An optimizer whose ``step()`` takes the mean of all ranks' gradients.

    Each gradient is enqueued by a hook as soon as the backward pass has made it, so transfers
    overlap the rest of the pass (the first pass shows the order: strategy ``topo``).

    >>> optimizer = DistributedOptimizer(torch.optim.SGD(model.parameters(), 0.1),
    ...                                  model.named_parameters())
    >>> loss.backward()
    >>> optimizer.step()

    Between ``backward()`` and ``step()``, ``synchronize()`` waits for the gradients, so that they
    may be clipped.

    Args:
        optimizer: Any torch optimizer; its parameters, state and groups stay its own.
        named_parameters: Names are the same on all ranks, and of one optimizer each. Default:
            numbered.
        backward_passes_per_step: Gradients are summed after so many passes (accumulation).
        reduction: ``mean`` or ``sum``.
        synchronizer: Default: the shared one.
    """

    def __init__(
        self,
        optimizer: torch.optim.Optimizer,
        named_parameters: Union[
            Mapping[str, torch.nn.Parameter], Iterable[tuple[str, torch.nn.Parameter]], None
        ] = None,
        *,
        backward_passes_per_step: int = 1,
        reduction: str = "mean",
        synchronizer: Optional[Synchronizer] = None,
    ) -> None:
        # Not Optimizer's own: groups and state are those of the optimizer inside.
        if backward_passes_per_step < 1:
            raise usage("backward_passes_per_step is below 1", "give at least 1")
        self._optimizer = optimizer
        self._engine = synchronizer if synchronizer is not None else shared_synchronizer()
        self._passes = backward_passes_per_step
        self._reduction = reduction
        pairs = named_parameters.items() if isinstance(named_parameters, Mapping) else (
            named_parameters or ()
        )  # fmt: skip
        self._given = {p: name for name, p in pairs}
        if len(set(self._given.values())) != len(self._given):
            raise usage("two parameters have one name", "give model.named_parameters()")
        self._names: dict[torch.nn.Parameter, str] = {}
        self._left: dict[torch.nn.Parameter, int] = {}
        self._handles: dict[torch.nn.Parameter, tuple[Handle, torch.Tensor]] = {}
        self._hooks: list[Any] = []
        self._synchronized = False
        for group in optimizer.param_groups:
            self._adopt(group)

    def _adopt(self, group: dict[str, Any]) -> None:
        for parameter in group["params"]:
            if parameter.requires_grad and parameter not in self._names:
                number = len(self._names)
                self._names[parameter] = self._given.get(parameter, f"parameter.{number}")
                self._left[parameter] = self._passes
                self._hooks.append(self._hook(parameter))

    def _hook(self, parameter: torch.nn.Parameter) -> Any:
        def made(*_: Any) -> None:
            self._synchronized = False
            self._left[parameter] -= 1
            if self._left[parameter] == 0:
                self._start(parameter)
            elif self._left[parameter] < 0:
                raise usage(
                    f"gradient of {self._names[parameter]} was made more than {self._passes} times "
                    "before step()",
                    "raise backward_passes_per_step, or call step() after each backward pass",
                )

        if hasattr(parameter, "register_post_accumulate_grad_hook"):
            return parameter.register_post_accumulate_grad_hook(made)
        # Before torch 2.1: the node that accumulates the gradient, kept alive by us.
        node = parameter.expand_as(parameter).grad_fn.next_functions[0][0]
        return node, node.register_hook(made)

    def _start(self, parameter: torch.nn.Parameter) -> None:
        gradient = parameter.grad
        assert gradient is not None
        name = self._names[parameter]
        if gradient.is_sparse:
            raise usage(f"gradient of {name} is sparse", "make it dense: sparse=False")
        memory = on_processor(gradient)  # of any strides: layouts may differ between ranks
        handle = self._engine.allreduce(f"gradient.{name}", memory, reduction=self._reduction)
        self._handles[parameter] = (handle, memory)

    def synchronize(self) -> None:
        """Waits until the gradients are those of all ranks; step() does, if nobody did."""
        if self._synchronized:
            return
        for parameter in self._names:
            if parameter not in self._handles:  # took no part in this pass
                if parameter.grad is None:
                    parameter.grad = torch.zeros_like(parameter)
                self._start(parameter)
        self._engine.end_step()
        for parameter, (handle, memory) in self._handles.items():
            handle.wait()
            gradient = parameter.grad
            if gradient is None:
                raise usage(
                    f"gradient of {self._names[parameter]} is gone while it is summed",
                    "call zero_grad() after step()",
                )
            if gradient.data_ptr() != memory.data_ptr():  # it was replaced meanwhile
                with torch.no_grad():
                    gradient.copy_(memory)
        self._handles.clear()
        for parameter in self._left:
            self._left[parameter] = self._passes
        self._synchronized = True

    def step(self, closure: Any = None) -> Any:
        """Waits for the gradients of all ranks, then takes the optimizer's step."""
        if closure is not None:
            raise usage("closures would run before gradients are summed", "call backward() before")
        self.synchronize()
        self._synchronized = False
        return self._optimizer.step()

    def zero_grad(self, *args: Any, **options: Any) -> None:
        """As the optimizer's. Not between backward() and step()."""
        if self._handles:
            raise usage(
                "gradients are being summed over ranks", "call step() or synchronize() first"
            )
        self._optimizer.zero_grad(*args, **options)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """As the optimizer's; on all ranks."""
        self._optimizer.add_param_group(param_group)
        self._adopt(self._optimizer.param_groups[-1])

    def state_dict(self, *args: Any, **options: Any) -> dict[str, Any]:
        """The optimizer's."""
        state: dict[str, Any] = self._optimizer.state_dict(*args, **options)
        return state

    def load_state_dict(self, *args: Any, **options: Any) -> None:
        """As the optimizer's."""
        self._optimizer.load_state_dict(*args, **options)

    def join(self) -> None:
        """This rank has no more batches: the others' gradients are summed without it."""
        self._engine.join()

    def __getattr__(self, name: str) -> Any:
        if name == "_optimizer" or name.startswith("__"):
            raise AttributeError(name)
        return getattr(self._optimizer, name)

    def __repr__(self) -> str:
        return f"DistributedOptimizer({self._optimizer!r})"
