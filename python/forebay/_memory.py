"""What only Python knows of arrays that others have made.

The rest (types, layouts, who may be written to) is asked in C++, by the buffer protocol and DLPack.
"""

from __future__ import annotations

import operator
import sys
from typing import TYPE_CHECKING, Any

from ._errors import UsageError, usage

if TYPE_CHECKING:
    from numpy.typing import NDArray


def without_history(array: Any, call: str, argument: str, written: bool) -> Any:
    """``array``, or of a tensor its memory alone. Raises UsageError.

    ``written``: the result goes there.
    """
    torch = sys.modules.get("torch")
    tensor = getattr(torch, "Tensor", None)  # another thread may be importing it
    if tensor is not None and isinstance(array, tensor):
        return _detached(torch, array, f"{call}: {argument}", written)
    _require_unmasked(array, f"{call}: {argument}")
    return array


def _require_unmasked(array: Any, argument: str) -> None:
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(array, numpy.ma.MaskedArray):
        raise usage(
            f"{argument} is a masked array, whose mask would be lost",
            "give array.filled(...), and the mask by itself",
        )


class IndexTypeError(UsageError, TypeError):
    """What indexes nothing; a TypeError, as Python's own sequences raise it."""


def whole_numbers(
    numbers: Any, argument: str, *, masks: bool = False, single: bool = False
) -> NDArray[Any]:
    """Whole numbers as an array of one dimension. Raises UsageError, which is a TypeError, too.

    ``masks``: truth values are fine as well; ``single``: so is one number, of no dimension.
    """
    import numpy as np

    _require_unmasked(numbers, argument)
    try:
        array = np.asarray(numbers)
    except (ValueError, TypeError, RuntimeError) as error:  # uneven lists, tensors on devices
        raise _no_numbers(argument, f" ({error})") from None
    if array.dtype.kind == "f" and isinstance(numbers, (list, tuple)):
        array = _of_mixed_types(numbers, argument)
    kinds = "iub" if masks and array.ndim == 1 else "iu"
    dimensions = (0, 1) if single else (1,)
    if array.ndim not in dimensions or (array.size > 0 and array.dtype.kind not in kinds):
        raise _no_numbers(argument, "")
    return array


def _of_mixed_types(numbers: Any, argument: str) -> NDArray[Any]:
    """A list of signed and unsigned numbers, of which NumPy makes floats."""
    import numpy as np

    try:
        return np.array([operator.index(number) for number in numbers], np.int64)
    except (TypeError, OverflowError) as error:
        raise _no_numbers(argument, f" ({error})") from None


def _no_numbers(argument: str, why: str) -> IndexTypeError:
    plain = usage(
        f"{argument} is no list of whole numbers{why}", "give an array, a list or a tensor of them"
    )
    error = IndexTypeError(*plain.args)
    error.__dict__.update(plain.__dict__)
    return error


def plain_array(array: NDArray[Any], argument: str) -> NDArray[Any]:
    """``array`` of NumPy's own class and in this machine's byte order. Raises UsageError."""
    import numpy as np

    _require_unmasked(array, argument)
    plain: NDArray[Any] = np.asarray(array)
    return plain if plain.dtype.isnative else plain.astype(plain.dtype.newbyteorder("="))


def _detached(torch: Any, tensor: Any, argument: str, written: bool) -> Any:
    try:
        return _checked(torch, tensor, argument, written)
    except UsageError:
        raise
    # Tensors that are not what they seem: within a trace or a vmap, or not initialized yet.
    except Exception as error:
        raise usage(
            f"{argument} has no memory of its own ({error})",
            "give a tensor that is filled, outside of transforms",
        ) from None


def _checked(torch: Any, tensor: Any, argument: str, written: bool) -> Any:
    if getattr(tensor, "is_nested", False):
        raise usage(f"{argument} is nested", "give its tensors one by one")
    if tensor.layout != torch.strided:
        raise usage(f"{argument} is of layout {tensor.layout}", "make it dense: tensor.to_dense()")
    if tensor.device.type != "cpu":
        raise usage(
            f"{argument} is on {tensor.device}, which MPI cannot reach",
            "move it to the CPU, or use DistributedDataParallel on CUDA",
        )
    if tensor.is_conj() or tensor.is_neg():
        raise usage(
            f"{argument} is a view of the conjugates or negatives of its memory",
            "give tensor.resolve_conj().resolve_neg()",
        )
    if written and tensor.requires_grad and not tensor.is_leaf:
        raise usage(
            f"{argument} is part of a graph, which would not know of the result",
            "give tensor.detach(), or tensor.clone() of that",
        )
    return _shared(torch, tensor)


def _shared(torch: Any, tensor: Any) -> Any:
    """The same memory, which stays when the tensor is given another; not when it is resized."""
    alone = tensor.detach()
    if type(alone) is not torch.Tensor:
        alone = alone.as_subclass(torch.Tensor)
    if alone.numel() > 0:
        alone.data_ptr()
    return alone
