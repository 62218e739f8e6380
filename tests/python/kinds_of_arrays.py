"""Memory of every kind that somebody may hand to Forebay: what is used, and what is refused.

Imported by tests in one process and by the scripts that they run on several ranks.
"""

import array
import ctypes
import mmap

import numpy as np
import torch

#: What arrays hold before anything is done: a table of 4 x 6, which all kinds can hold exactly.
NUMBERS = np.arange(24, dtype=np.float32).reshape(4, 6)


class Foreign:
    """Speaks DLPack and nothing else."""

    def __init__(self, tensor):
        self.tensor = tensor

    def __dlpack__(self, **options):
        return self.tensor.__dlpack__()

    def __dlpack_device__(self):
        return self.tensor.__dlpack_device__()


def _numpy(make):
    """``make`` returns an array that has room for the numbers of a table."""

    def made(numbers):
        room = make(numbers)
        room[...] = numbers.reshape(room.shape)
        return room, lambda: np.array(room, dtype=np.float64).reshape(numbers.shape)

    return made


def _misaligned(numbers):
    memory = np.zeros(numbers.nbytes + 1, np.uint8)
    return memory[1:].view(np.float32).reshape(numbers.shape)


def _tensor(make):
    def made(numbers):
        room = make(numbers)
        with torch.no_grad():
            room.copy_(torch.from_numpy(numbers).reshape(room.shape))
        return room, lambda: room.detach().to(torch.float64).numpy().reshape(numbers.shape).copy()

    return made


def _buffer(make):
    """``make`` returns an object with the buffer protocol, and an array over its memory."""

    def made(numbers):
        room, there = make(numbers)
        there[...] = numbers.reshape(there.shape)
        return room, lambda: np.array(there, np.float64).reshape(numbers.shape)

    return made


def _standard_array(numbers):
    room = array.array("f", numbers.ravel())
    return room, np.frombuffer(room, np.float32)


def _view_of(memory):
    def made(numbers):
        room = memory(numbers.nbytes)
        return memoryview(room).cast("f"), np.frombuffer(room, np.float32)

    return made


def _reversed_view(numbers):
    there = np.zeros(numbers.size, np.float32)
    return memoryview(there)[::-1], there[::-1]


def _ctypes_array(numbers):
    room = (ctypes.c_float * numbers.size)()
    return room, np.ctypeslib.as_array(room)


def _foreign(numbers):
    tensor = torch.zeros(*numbers.shape[::-1]).t()
    return Foreign(tensor), tensor.numpy()


def _capsule(numbers):
    tensor = torch.zeros(*numbers.shape)
    return torch.utils.dlpack.to_dlpack(tensor), tensor.numpy()


def _as_strided(numbers):
    return torch.zeros(200).as_strided((2, 3, 4), (1, 40, 3))


#: Each makes an object that holds the numbers it is given, and a function that reads them.
USED = {
    "C order": _numpy(np.zeros_like),
    "Fortran order": _numpy(lambda x: np.zeros(x.shape, x.dtype, order="F")),
    "transposed": _numpy(lambda x: np.zeros(x.shape[::-1], x.dtype).T),
    "slice with a step": _numpy(lambda x: np.zeros((9, 13), x.dtype)[1:9:2, 1::2]),
    "reversed": _numpy(lambda x: np.zeros_like(x)[::-1, ::-1]),
    "columns of a larger one": _numpy(lambda x: np.zeros((4, 10), x.dtype)[:, 3:9]),
    "three dimensions, mixed up": _numpy(lambda x: np.zeros((3, 4, 2), x.dtype).transpose(1, 2, 0)),
    "extents of one": _numpy(lambda x: np.zeros((4, 9, 6), x.dtype)[:, None, 3:4]),
    "misaligned": _numpy(_misaligned),
    "big-endian": _numpy(lambda x: np.zeros(x.shape, ">f4")),
    "big-endian, transposed": _numpy(lambda x: np.zeros(x.shape[::-1], ">i8").T),
    "little-endian": _numpy(lambda x: np.zeros(x.shape, "<f8")),
    "float16": _numpy(lambda x: np.zeros(x.shape[::-1], np.float16).T),
    "int32": _numpy(lambda x: np.zeros(x.shape, np.int32)),
    "long": _numpy(lambda x: np.zeros(x.shape, np.longlong)),
    "matrix": _numpy(lambda x: np.asmatrix(np.zeros_like(x))),
    "matrix, transposed": _numpy(lambda x: np.asmatrix(np.zeros(x.shape[::-1], x.dtype)).T),
    "record array": _numpy(lambda x: np.zeros_like(x).view(np.recarray)),
    "memoryview": _buffer(_view_of(bytearray)),
    "memoryview, reversed": _buffer(_reversed_view),
    "memoryview of mapped memory": _buffer(_view_of(lambda size: mmap.mmap(-1, size))),
    "array of the standard library": _buffer(_standard_array),
    "array of ctypes": _buffer(_ctypes_array),
    "DLPack alone": _buffer(_foreign),
    "capsule of DLPack": _buffer(_capsule),
    "tensor": _tensor(lambda x: torch.zeros(4, 6)),
    "tensor, transposed": _tensor(lambda x: torch.zeros(6, 4).t()),
    "tensor, slice of a larger one": _tensor(lambda x: torch.zeros(9, 20)[1:9:2, 2:14:2]),
    "tensor, channels_last": _tensor(
        lambda x: torch.zeros(2, 3, 2, 2).contiguous(memory_format=torch.channels_last)
    ),
    "tensor, odd strides": _tensor(_as_strided),
    "tensor, one element expanded": _tensor(lambda x: torch.zeros(4, 1, 6).expand(4, 1, 6)),
    "tensor of bfloat16": _tensor(lambda x: torch.zeros(6, 4, dtype=torch.bfloat16).t()),
    "tensor of float16": _tensor(lambda x: torch.zeros(4, 6, dtype=torch.half)),
    "tensor of int64": _tensor(lambda x: torch.zeros(4, 6, dtype=torch.int64)),
    "parameter": _tensor(lambda x: torch.nn.Parameter(torch.zeros(4, 6))),
    "parameter, transposed": _tensor(lambda x: torch.nn.Parameter(torch.zeros(6, 4).t())),
    "tensor, detached": _tensor(lambda x: (torch.nn.Parameter(torch.zeros(4, 6)) * 1).detach()),
}

#: The same of other shapes.
ODD_SHAPES = {
    "no dimension": (np.float64(7).reshape(()), lambda: np.array(7.0)),
    "one element": (np.float64(7).reshape(1, 1), lambda: np.array([[7.0]])),
    "no element": (np.zeros((0, 3)), lambda: np.zeros((0, 3))),
    "no element, strided": (np.zeros((0, 3)), lambda: np.zeros((3, 5))[::-2, 5:].T),
    "tensor of no dimension": (np.float64(7).reshape(()), lambda: torch.tensor(7.0)),
    "tensor of no element": (np.zeros((2, 0)), lambda: torch.zeros(2, 0)),
}

_graph = torch.ones(3, requires_grad=True)

#: Objects that cannot be written to, and what is said of them.
REFUSED = {
    "read-only": (lambda: np.frombuffer(b"\0" * 8, np.float32), "read-only"),
    "read-only flag": (lambda: _locked(np.zeros(3)), "read-only"),
    "NumPy's number": (lambda: np.float32(1), "read-only"),
    "memoryview of bytes": (lambda: memoryview(b"\0" * 8).cast("f"), "read-only"),
    "broadcast": (lambda: np.broadcast_to(np.zeros(3), (2, 3)), "read-only"),
    "writable broadcast": (
        lambda: np.lib.stride_tricks.as_strided(np.zeros(3), (2, 3), (0, 8)), "share memory",
    ),
    "windows": (
        lambda: np.lib.stride_tricks.as_strided(np.zeros(9), (4, 3), (8, 8)), "share memory",
    ),
    "expanded tensor": (lambda: torch.zeros(3).expand(2, 3), "share memory"),
    "masked": (lambda: np.ma.array([1.0, 2.0], mask=[True, False]), "masked"),
    "bool": (lambda: np.zeros(3, bool), "type bool"),
    "complex": (lambda: np.zeros(3, complex), "type complex128"),
    "int8": (lambda: np.zeros(3, np.int8), "type int8"),
    "unsigned": (lambda: np.zeros(3, np.uint32), "type uint32"),
    "long double": (lambda: np.zeros(3, np.longdouble), "type float128"),
    "times": (lambda: np.zeros(3, "M8[s]"), "type datetime64"),
    "objects": (lambda: np.array([None, 1]), "type object"),
    "records": (lambda: np.zeros(3, [("a", "f4")]), "has elements of type"),
    "text": (lambda: np.array(["a"]), "has elements of type"),
    "bytearray": (lambda: bytearray(8), "type B"),
    "list": (lambda: [1.0], "no array, but of type list"),
    "number": (lambda: 1.0, "no array, but of type float"),
    "str": (lambda: "text", "no array, but of type str"),
    "bool tensor": (lambda: torch.zeros(3, dtype=torch.bool), "type torch.bool"),
    "complex tensor": (lambda: torch.zeros(3, dtype=torch.complex64), "type torch.complex64"),
    "uint8 tensor": (lambda: torch.zeros(3, dtype=torch.uint8), "type torch.uint8"),
    "sparse tensor": (lambda: torch.eye(3).to_sparse(), "torch.sparse_coo"),
    "tensor without memory": (lambda: torch.empty(3, device="meta"), "on meta"),
    "quantized tensor": (
        lambda: torch.quantize_per_tensor(torch.ones(3), 0.1, 0, torch.qint8), "torch.qint8",
    ),
    "negative view": (
        lambda: torch.view_as_complex(torch.ones(3, 2)).conj().imag, "conjugates or negatives",
    ),
    "tensor of zeros": (lambda: torch._efficientzerotensor((5,)), "has no memory"),
    "uninitialized parameter": (
        torch.nn.parameter.UninitializedParameter, "no memory of its own",
    ),
    "part of a graph": (lambda: _graph * 2, "part of a graph"),
}  # fmt: skip


def _locked(values):
    values.flags.writeable = False
    return values
