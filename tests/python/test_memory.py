"""Arrays of every kind are used where they lie, or refused by name; what is in use stays.

The table of kinds is in kinds_of_arrays.py. scripts/python-asan.sh runs this under the address
sanitizer.
"""

import contextlib
import gc
import threading
import weakref
from pathlib import Path

import numpy as np
import pytest
from conftest import run_ranks

torch = pytest.importorskip("torch")

import forebay  # noqa: E402
import forebay.torch  # noqa: E402
from kinds_of_arrays import NUMBERS, ODD_SHAPES, REFUSED, USED  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore:the matrix subclass")

HERE = str(Path(__file__).parent)


@pytest.fixture(scope="module")
def alone():
    """A synchronizer of one process: a sum is what went in."""
    synchronizer = forebay.Synchronizer("single")
    yield synchronizer
    synchronizer.close()


@pytest.mark.parametrize("kind", USED)
@pytest.mark.parametrize("reduction", ["sum", "mean", "max"])
def test_a_sum_of_one_rank_is_its_numbers(alone, kind, reduction):
    array, numbers = USED[kind](NUMBERS)
    for _ in range(3):
        if kind.startswith("capsule"):  # which is used up by each call
            array, numbers = USED[kind](NUMBERS)
        result = alone.allreduce("x", array, reduction=reduction).wait()
        assert result is array
        np.testing.assert_array_equal(numbers(), NUMBERS)


@pytest.mark.parametrize("kind", USED)
def test_results_go_to_an_output_of_any_kind(alone, kind):
    array, numbers = USED[kind](NUMBERS)
    output, results = USED[kind](np.zeros_like(NUMBERS))
    assert alone.allreduce("x", array, output, "sum").wait() is output
    np.testing.assert_array_equal(results(), NUMBERS)
    np.testing.assert_array_equal(numbers(), NUMBERS)


def _some_view(rng, dtype):
    """Of up to five dimensions, in any order, with steps either way, and room between."""
    dimensions = int(rng.integers(1, 6))
    shape = rng.integers(1, 90 if dimensions < 3 else 12, dimensions)
    steps = rng.choice([1, 1, 1, 2, 3, -1, -2], dimensions)
    room = np.zeros(tuple(shape * abs(steps) + rng.integers(0, 3, dimensions)), dtype)
    view = room[tuple(slice(None, None, step) for step in steps)]
    view = view[tuple(slice(0, extent) for extent in shape)].transpose(rng.permutation(dimensions))
    return view, room


def test_views_of_all_shapes_and_strides_are_gathered_and_scattered(alone):
    rng = np.random.default_rng(1)
    for _ in range(200):
        dtype = rng.choice(["f2", "f4", ">f4", "f8", "i4", ">i8"])
        array, _ = _some_view(rng, dtype)
        array[...] = rng.integers(-1000, 1000, array.shape)
        output, room = _some_view(rng, dtype)
        if output.shape != array.shape:  # of the same shape, and another layout
            room = np.zeros((*array.shape[::-1], 2), dtype)
            output = room[..., 1].T
        alone.allreduce("x", array, output, "sum").wait()
        np.testing.assert_array_equal(output, array)
        assert np.count_nonzero(room) == np.count_nonzero(array)  # and nothing beside
        before = array.copy()
        alone.allreduce("x", array, reduction="sum").wait()
        np.testing.assert_array_equal(array, before)


@pytest.mark.parametrize("kind", USED)
def test_what_is_broadcast_stays_at_its_root(alone, kind):
    array, numbers = USED[kind](NUMBERS)
    assert alone.broadcast("x", array).wait() is array
    np.testing.assert_array_equal(numbers(), NUMBERS)


@pytest.mark.parametrize("kind", ODD_SHAPES)
def test_arrays_of_few_elements_are_arrays(alone, kind):
    expected, make = ODD_SHAPES[kind]
    result = alone.allreduce("x", make(), reduction="sum").wait()
    np.testing.assert_array_equal(np.asarray(result), np.asarray(make()))
    assert np.asarray(make()).shape == expected.shape or kind.endswith("strided")
    alone.broadcast("x", make()).wait()


@pytest.mark.parametrize("kind", REFUSED)
def test_what_cannot_be_written_is_refused_by_name(alone, kind):
    make, told = REFUSED[kind]
    for call in (
        lambda: alone.allreduce("grad", make()),
        lambda: alone.broadcast("grad", make()),
    ):
        with pytest.raises(forebay.UsageError, match=told) as caught:
            call()
        assert "of 'grad': array " in str(caught.value)
        assert caught.value.remedy
    with pytest.raises(forebay.UsageError, match=told) as caught:
        alone.allreduce("grad", np.zeros(3), make())
    assert "allreduce of 'grad': output " in str(caught.value)
    alone.allreduce("grad", np.zeros(3)).wait()  # the name is free


def test_what_is_only_read_may_be_read_only_expanded_or_part_of_a_graph(alone):
    for array in (
        np.frombuffer(np.arange(3, dtype=np.float32).tobytes(), np.float32),
        np.broadcast_to(np.float32(2), (3,)),
        torch.tensor([5.0]).expand(3),
        torch.ones(3, requires_grad=True) * 3,
        np.float32(7).reshape(1).repeat(3),
    ):
        output = np.zeros(3, np.float32)
        alone.allreduce("x", array, output, "sum").wait()
        with torch.no_grad():
            np.testing.assert_array_equal(output, np.asarray(array))


@pytest.mark.parametrize(
    ("array", "output"),
    [
        (np.zeros((2, 3)), np.zeros((3, 2))),
        (np.zeros(6), np.zeros((2, 3))),
        (np.zeros(()), np.zeros(1)),
        (np.zeros(6, np.float32), np.zeros(3, np.float64)),
        (np.zeros(6, np.float32), np.zeros(6, np.int32)),
        (np.zeros(6, np.float32), np.zeros(5, np.float32)),
        (np.zeros(6, np.float16), torch.zeros(6, dtype=torch.bfloat16)),
    ],
)
def test_an_output_of_another_shape_or_type_is_refused(alone, array, output):
    with pytest.raises(forebay.UsageError, match=r"output is .*, array"):
        alone.allreduce("x", array, output)


@pytest.mark.parametrize(
    ("read", "written"),
    [
        (slice(0, 60_000), slice(10, 60_010)),
        (slice(10, 60_010), slice(0, 60_000)),
        (slice(0, 60_000), slice(59_999, None, -1)),
        (slice(0, 60_000, 2), slice(1, 60_001, 2)),
        (slice(0, 60_000), slice(0, 60_000)),
    ],
)
def test_an_output_may_overlap_the_array(read, written):
    """In pieces: the first have long been written when the last are read."""
    with_pieces = forebay.Synchronizer("single", fusion_bytes=65_536)
    memory = np.arange(70_000, dtype=np.float64)
    expected = memory[read].copy()
    with_pieces.allreduce("x", memory[read], memory[written], "sum").wait()
    np.testing.assert_array_equal(memory[written], expected)
    with_pieces.close()


def test_an_array_is_taken_while_it_is_copied(alone):
    """Another thread that writes to it meanwhile is refused, or comes before or behind."""
    flat = np.ones(9_000_000, np.float32)
    fives = np.full_like(flat, 5)
    for _ in range(5):
        flat[:] = 1
        output = np.zeros((1500, 6000), np.float32)

        def write():
            with contextlib.suppress(forebay.UsageError):
                alone.allreduce("write", fives, flat, "sum").wait()

        thread = threading.Timer(0.001, write)
        thread.start()
        turned = flat.reshape(6000, 1500).T
        try:
            alone.allreduce("read", turned, output, "sum").wait()
        except forebay.UsageError:  # the other thread came first
            thread.join()
            alone.allreduce("read", turned, output, "sum").wait()
        thread.join()
        assert output.min() == output.max() > 0


def test_arrays_are_let_go_also_where_a_call_fails(alone):
    values = np.ones(3)
    held = weakref.ref(values)
    with pytest.raises(forebay.UsageError):
        alone.allreduce("forebay:bad", values)
    del values
    gc.collect()
    assert held() is None


def test_arrays_are_let_go_once_they_are_waited_for(alone):
    class Array(np.ndarray):  # which can be referred to weakly
        pass

    for wait in (
        lambda handle: handle.wait(),
        _poll,
        lambda handle: (_poll(handle), alone.allreduce("other", np.zeros(3)).wait()),
    ):
        array, output = np.zeros((5, 7)).view(Array), np.zeros((7, 5)).T.view(Array)
        seen = [weakref.ref(array), weakref.ref(output)]
        handle = alone.allreduce("x", array, output)
        del array, output
        wait(handle)
        del handle
        gc.collect()
        assert [each() for each in seen] == [None, None]


def _poll(handle):
    while not handle.done():
        pass


SUMS = """
import sys
sys.path.insert(0, sys.argv[1])
import numpy as np, forebay
from kinds_of_arrays import NUMBERS, ODD_SHAPES, USED
strategy = sys.argv[2]
sync = forebay.Synchronizer(strategy=strategy)
rank, ranks = sync.ranks.rank, sync.ranks.size
kinds = list(USED)
for step in range(3):  # topo: the first is negotiated, then there is a plan
    started = []
    for i, kind in enumerate(kinds):
        # Same layouts on all ranks, then another on each: types and shapes must agree all the same.
        array, numbers = USED[kind](NUMBERS * (rank + 1) + step)
        if kind == "tensor" and step == 2 and rank == 1:
            array, numbers = USED["tensor, transposed"](NUMBERS * (rank + 1) + step)
        if kind == "C order" and step == 2 and rank == 1:
            array, numbers = USED["Fortran order"](NUMBERS * (rank + 1) + step)
        started.append((kind, sync.allreduce(kind, array, reduction="sum"), numbers))
        del array
    sync.end_step()
    for kind, handle, numbers in reversed(started):
        handle.wait()
        expected = NUMBERS * (ranks * (ranks + 1) // 2) + step * ranks
        np.testing.assert_array_equal(numbers(), expected, err_msg=kind)
for kind in kinds:
    array, numbers = USED[kind](NUMBERS * (rank + 1))
    output, results = USED[kind](np.zeros_like(NUMBERS))
    sync.allreduce(kind, array, output, "max").wait()
    np.testing.assert_array_equal(results(), NUMBERS * ranks, err_msg=kind)
    np.testing.assert_array_equal(numbers(), NUMBERS * (rank + 1), err_msg=kind)
    array, numbers = USED[kind](NUMBERS * (rank + 1))
    sync.broadcast(kind, array, 1).wait()
    np.testing.assert_array_equal(numbers(), NUMBERS * 2, err_msg=kind)
for kind, (expected, make) in ODD_SHAPES.items():
    result = sync.allreduce(kind, make(), reduction="sum").wait()
    np.testing.assert_array_equal(np.asarray(result), np.asarray(make()) * ranks, err_msg=kind)
sync.close()
print("fine", flush=True)
"""


@pytest.mark.parametrize("strategy", ["topo", "negotiate"])
def test_ranks_sum_arrays_of_all_kinds(script, strategy):
    assert run_ranks(2, script(SUMS), HERE, strategy).stdout.count("fine") == 2


def test_large_arrays_in_fortran_order_are_summed(script):
    """As they were reported: wrong sums on two ranks, a crash in one process."""
    text = """
import numpy as np, forebay
sync = forebay.Synchronizer()
ranks = sync.ranks.size
for i in range(20):
    for shape in ((300, 200), (2, 200), (200, 2)):
        ones = np.ones(shape, np.float32, order="F")
        sync.allreduce(f"ones{shape}", ones, reduction="sum").wait()
        assert (ones == ranks).all(), ones
        output = np.zeros(shape[::-1], np.float32).T
        sync.allreduce(f"output{shape}", np.ones(shape, np.float32), output, "sum").wait()
        assert (output == ranks).all(), output
print("fine", flush=True)
"""
    for ranks in (1, 2):
        assert run_ranks(ranks, script(text)).stdout.count("fine") == ranks


#: Rank 0 has sums on their way that rank 1 starts when it is told to.
IN_FLIGHT = """
import gc, sys
import numpy as np, torch, forebay
sync = forebay.Synchronizer(strategy=sys.argv[1], fusion_bytes=0)
rank = sync.ranks.rank

def meet(name):
    sync.broadcast(name, np.zeros(1)).wait()

def refused(told, call):
    try:
        call()
    except forebay.UsageError as error:
        assert told in str(error), error
    else:
        raise AssertionError(told)

memory = np.ones((100, 300), np.float32)
complex = np.full((4, 6), 1 + 1j, np.complex64)
columns = np.ones((20, 60), np.float32)
parts = complex.real, complex.imag, columns[:, :30], columns[:, 30:]
strided = np.ones((300, 400), np.float32)
keep = bytearray(8000)
if rank == 0:
    first = sync.allreduce("first", memory, reduction="sum")
    second = sync.allreduce("second", strided[::2, ::4], reduction="sum")
    third = sync.allreduce("third", memoryview(keep).cast("f"), reduction="sum")
    reads = np.full(10, 5.0)
    fourth = sync.allreduce("fourth", reads, np.zeros(10), "sum")
    refused("array lies in memory that 'first' works on",
            lambda: sync.allreduce("again", memory))
    refused("array lies in memory that 'first' works on",
            lambda: sync.allreduce("again", memory[7:9].T))
    refused("array lies in memory that 'second' works on",
            lambda: sync.allreduce("again", strided, np.zeros_like(strided)))
    refused("output lies in memory that 'fourth' works on",
            lambda: sync.allreduce("again", np.zeros(10), reads))
    refused("array lies in memory that 'fourth' works on", lambda: sync.broadcast("again", reads))
    refused("'first' is started again", lambda: sync.allreduce("first", np.zeros(3)))
    try:
        keep.extend(b"more")  # would move it
    except BufferError:
        pass
    else:
        raise AssertionError("the memory may go")
    # Reading twice is fine, and so is memory beside.
    fifth = sync.allreduce("fifth", reads, np.zeros(10), "sum")
    apart = [sync.allreduce(f"part{i}", part, reduction="sum") for i, part in enumerate(parts)]
    refused("array lies in memory that 'part", lambda: sync.allreduce("again", columns[:, 29:31]))
    # Dropped: arrays, outputs and handles.
    for i in range(30):
        values = np.arange(999, dtype=np.float32).reshape(37, 27, order="F") + i
        sync.allreduce(f"dropped{i}", values if i % 3 else torch.from_numpy(values).t().t(),
                       None if i % 2 else np.zeros((27, 37), np.float32).T, "sum")
        del values
    gc.collect()
    noise = [np.full((37, 27), -1, np.float32) for _ in range(200)]
    meet("now")
else:
    meet("now")
    first = sync.allreduce("first", memory, reduction="sum")
    second = sync.allreduce("second", strided[::2, ::4], reduction="sum")
    third = sync.allreduce("third", memoryview(keep).cast("f"), reduction="sum")
    reads = np.full(10, 5.0)
    fourth = sync.allreduce("fourth", reads, np.zeros(10), "sum")
    fifth = sync.allreduce("fifth", reads.copy(), np.zeros(10), "sum")
    apart = [sync.allreduce(f"part{i}", part, reduction="sum") for i, part in enumerate(parts)]
    dropped = [
        sync.allreduce(f"dropped{i}", np.arange(999, dtype=np.float32).reshape(37, 27, order="F")
                       + i, reduction="sum") for i in range(30)]
    for i, handle in enumerate(dropped):
        expected = 2 * (np.arange(999).reshape(37, 27, order="F") + i)
        np.testing.assert_array_equal(handle.wait(), expected)
assert (first.wait() == 2).all() and (second.wait() == 2).all()
third.wait()
for each in apart:
    each.wait()
assert (complex == 2 + 2j).all() and (columns == 2).all()
assert (fourth.wait() == 10).all() and (fifth.wait() == 10).all()
whole = np.ones_like(strided)
whole[::2, ::4] = 2
np.testing.assert_array_equal(strided, whole)
third.wait().release()
keep.extend(b"more")
sync.allreduce("first", memory, reduction="mean").wait()  # once done, all may start anew
if rank == 0:
    assert all((each == -1).all() for each in noise)
    # The result is there when done() says so, also where nobody waits.
late = np.ones((50, 60), np.float32, order="F")
handle = sync.allreduce("late", late, reduction="sum")
while not handle.done():
    pass
assert (late == 2).all()
if rank == 0:
    handle = sync.allreduce("differ", np.zeros((3, 2)).T)
else:
    handle = sync.allreduce("differ", np.zeros((3, 2)))
refused("differ", handle.wait)
print("fine", flush=True)
# To the end of the process, with sums on their way, and nothing kept.
for i in range(5):
    sync.allreduce(f"last{i}", np.ones((500, 400), np.float32).T, reduction="sum")
if len(sys.argv) > 2:
    dropped = []
    del sync, handle, first, second, third, fourth, fifth
    gc.collect()
"""


@pytest.mark.parametrize("arguments", [["topo"], ["negotiate"], ["topo", "dropped"]])
def test_memory_that_is_on_its_way_stays_and_is_not_taken_twice(script, arguments):
    done = run_ranks(2, script(IN_FLIGHT), *arguments)
    assert done.stdout.count("fine") == 2
    assert "Error" not in done.stderr


ENDS = """
import sys, os, time, numpy as np, forebay
sync = forebay.Synchronizer()
for i in range(50):
    sync.allreduce(f"only here {i}", np.ones((300, 200), np.float32, order="F"))
if sync.ranks.rank == 0 and sys.argv[1] == "raises":
    raise SystemError("on purpose")
sys.exit(0)
"""


@pytest.mark.parametrize("way", ["raises", "ends"])
def test_a_process_may_end_with_sums_on_their_way(script, way):
    done = run_ranks(2, script(ENDS), way, check=False, timeout=60)
    assert (done.returncode == 0) == (way == "ends")
    for crash in ("Segmentation", "corrupt", "free()", "malloc", "signal 6", "signal 11"):
        assert crash not in done.stderr, done.stderr


NUMBERS_OF_RANKS = """
import numpy as np, torch, forebay
for options in ({}, {"deterministic": True}, {"wire": "bfloat16"}, {"wire": "float16"}):
    sync = forebay.Synchronizer(**options)
    rank = sync.ranks.rank
    for dtype in (torch.float16, torch.bfloat16, torch.float32, torch.float64):
        for elements in (3, 30_000):
            for lost in (0, 1):
                for reduction, expected in (("min", 0.0), ("max", 1.0)):
                    values = torch.full((elements,), float(rank), dtype=dtype)
                    values[1] = float("nan") if rank == lost else 0.5
                    sync.allreduce("x", values, reduction=reduction).wait()
                    assert torch.isnan(values[1]), (dtype, reduction, lost, values)
                    assert values[0] == values[2] == expected, (dtype, reduction, values)
    for value, mean in (((3, 4), 3), ((-3, -4), -3), ((-1, 0), 0), ((5, 5), 5)):
        values = np.full(5, value[rank], np.int32)
        sync.allreduce("mean", values).wait()
        assert (values == mean).all(), (value, values)
    sync.close()
print("fine", flush=True)
"""


def test_nan_is_not_lost_and_means_of_integers_round_toward_zero(script):
    assert run_ranks(2, script(NUMBERS_OF_RANKS)).stdout.count("fine") == 2


OPTIMIZER = """
import torch, forebay.torch as ft
rank = ft.synchronizer().ranks.rank

def model():
    torch.manual_seed(1)
    return torch.nn.Sequential(
        torch.nn.Conv2d(3, 8, 3, padding=1), torch.nn.ReLU(), torch.nn.Conv2d(8, 4, 3),
        torch.nn.Flatten(), torch.nn.Linear(4 * 36, 5)).double()

def inputs(step, part):
    generator = torch.Generator().manual_seed(step)
    x = torch.rand(8, 3, 8, 8, generator=generator, dtype=torch.float64)
    y = torch.randint(0, 5, (8,), generator=generator)
    return (x, y) if part is None else (x[part * 4 : part * 4 + 4], y[part * 4 : part * 4 + 4])

def loss(net, x, y):
    return torch.nn.functional.cross_entropy(net(x), y)

alone = model()
plain = torch.optim.SGD(alone.parameters(), 0.1, momentum=0.9)
# Ranks of different layouts: both must train as one.
together = model().to(memory_format=torch.channels_last if rank == 0 else torch.contiguous_format)
with torch.no_grad():
    flat = together[4].weight
    together[4].weight = torch.nn.Parameter(flat.t().contiguous().t())  # a gradient of this layout
optimizer = ft.DistributedOptimizer(
    torch.optim.SGD(together.parameters(), 0.1, momentum=0.9), together.named_parameters())
ft.broadcast_parameters(together.state_dict())
for step in range(4):
    plain.zero_grad()
    loss(alone, *inputs(step, None)).backward()
    plain.step()
    optimizer.zero_grad()
    x, y = inputs(step, rank)
    loss(together, x.to(memory_format=torch.channels_last) if rank == 0 else x, y).backward()
    if rank == 0 and step == 0:
        assert not together[0].weight.grad.is_contiguous()
    optimizer.step()
for mine, theirs in zip(together.parameters(), alone.parameters()):
    torch.testing.assert_close(mine, theirs)

t = torch.arange(6.0).reshape(2, 3)
mean = ft.allreduce(t.t() * (rank + 1), "strided", "sum")
assert torch.equal(mean, t.t() * 3), mean
inplace = (t * (rank + 1)).t()
assert ft.allreduce(inplace, "inplace", "sum", inplace=True) is inplace
assert torch.equal(inplace, t.t() * 3)
expanded = ft.allreduce(torch.tensor([rank + 1.0]).expand(4), "expanded", "sum")
assert torch.equal(expanded, torch.full((4,), 3.0))
negative = torch.view_as_complex(torch.full((3, 2), rank + 1.0)).conj().imag
assert torch.equal(ft.allreduce(negative, "negative", "sum"), torch.full((3,), -3.0))
graph = torch.ones(3, requires_grad=True) * (rank + 1)
assert torch.equal(ft.allreduce(graph, "graph", "sum"), torch.full((3,), 3.0))
for wrong in (torch.zeros(3).to_sparse(), torch.zeros(3, dtype=torch.bool),
              torch.zeros(3, dtype=torch.complex64), torch.empty(3, device="meta")):
    try:
        ft.allreduce(wrong, "wrong")
    except ValueError as error:
        assert "forebay" in type(error).__module__, error
    else:
        raise AssertionError(wrong)

tensors = {
    "transposed": torch.full((2, 3), float(rank)).t(),
    "channels_last": torch.full((2, 3, 4, 5), float(rank)).to(memory_format=torch.channels_last),
    "bytes": torch.full((3, 5), rank, dtype=torch.uint8).t()[::2],
    "mask": torch.full((3, 5), rank == 1).t(),
    "complex": torch.full((3, 2), rank * (1 + 2j)).t().conj(),
    "negative": torch.view_as_complex(torch.full((3, 2), float(rank))).conj().imag,
    "parameter": torch.nn.Parameter(torch.full((3, 2), float(rank)).t()),
    "none": torch.zeros(0, 3), "one": torch.tensor(rank),
}
ft.broadcast_parameters(tensors, 1)
for name, tensor in tensors.items():
    expected = {"complex": 1 - 2j, "negative": -1, "mask": True}.get(name, 1)
    assert (tensor == expected).all(), (name, tensor)
for name, wrong in (("sparse", torch.eye(3).to_sparse()), ("meta", torch.empty(2, device="meta")),
                    ("expanded", torch.zeros(3).expand(2, 3)),
                    ("quantized", torch.quantize_per_tensor(torch.ones(3), 0.1, 0, torch.qint8))):
    try:
        ft.broadcast_parameters({name: wrong})
    except ValueError as error:
        assert name in str(error) and "forebay" in type(error).__module__, error
    else:
        raise AssertionError(name)
print("fine", flush=True)
"""


def test_torch_trains_and_broadcasts_with_tensors_of_any_layout(script):
    assert run_ranks(2, script(OPTIMIZER)).stdout.count("fine") == 2


#: Lists of the ids 5, 1, 5 and 0, as somebody may have them.
IDS = {
    "int64": lambda: np.array([5, 1, 5, 0]),
    "list": lambda: [5, 1, 5, 0],
    "strided": lambda: np.array([5, 9, 1, 9, 5, 9, 0])[::2],
    "reversed": lambda: np.array([0, 5, 1, 5])[::-1],
    "big-endian": lambda: np.array([5, 1, 5, 0], ">i4"),
    "unsigned": lambda: np.array([5, 1, 5, 0], np.uint64),
    "bytes": lambda: np.array([5, 1, 5, 0], np.uint8),
    "read-only": lambda: np.frombuffer(np.array([5, 1, 5, 0]).tobytes(), np.int64),
    "column": lambda: np.array([[5, 7], [1, 7], [5, 7], [0, 7]])[:, 0],
    "standard library": lambda: __import__("array").array("h", [5, 1, 5, 0]),
    "memoryview": lambda: memoryview(np.array([5, 1, 5, 0])),
    "tensor": lambda: torch.tensor([[5, 7], [1, 7], [5, 7], [0, 7]])[:, 0],
    "NumPy's numbers": lambda: [np.int8(5), np.uint64(1), 5, 0],
}
NO_IDS = {
    "floats": lambda: np.array([1.0, 2.0]),
    "two dimensions": lambda: np.array([[1, 2]]),
    "matrix": lambda: np.matrix([1, 2]),
    "times": lambda: np.array([1, 2], "m8[s]"),
    "masked": lambda: np.ma.array([1, 2], mask=[True, False]),
    "objects": lambda: np.array([1, None]),
    "text": lambda: ["1"],
    "uneven": lambda: [[1, 2], [3]],
    "sparse": lambda: torch.tensor([1, 2]).to_sparse(),
    "without memory": lambda: torch.empty(2, dtype=torch.int64, device="meta"),
    "wide integers": lambda: [1 << 70],
}


@pytest.mark.parametrize("kind", IDS)
def test_lists_of_ids_are_of_any_kind(images, kind):
    path, _, labels = images
    expected = labels[[5, 1, 5, 0]].tolist()
    assert forebay.Dataset(path)[IDS[kind]()]["label"].tolist() == expected
    with forebay.Loader(path, batch_size=4, order="listed", ids=IDS[kind]()) as loader:
        assert next(iter(loader))["label"].tolist() == expected


@pytest.mark.parametrize("kind", NO_IDS)
def test_what_is_no_list_of_ids_is_refused_by_name(images, kind):
    path, _, _ = images
    with pytest.raises(forebay.UsageError, match="index is"):
        forebay.Dataset(path)[NO_IDS[kind]()]
    with pytest.raises(forebay.UsageError, match="ids is"):
        forebay.Loader(path, batch_size=4, order="listed", ids=NO_IDS[kind]())


def test_masks_and_single_indices_are_of_any_kind(images):
    path, _, labels = images
    data = forebay.Dataset(path)
    for one in (np.int32(3), np.array(3), np.array(3, ">u2"), torch.tensor(3)):
        assert data[one]["label"] == labels[3]
    mask = np.arange(len(data)) % 3 == 0
    for each in (mask, mask.tolist(), torch.from_numpy(mask), mask.repeat(2)[::2]):
        assert data[each]["label"].tolist() == labels[mask].tolist()
    for wrong in (True, np.True_, np.array(True), np.ma.array(mask, mask=mask), 1.0, np.array(1.0)):
        with pytest.raises(forebay.UsageError, match="index is"):
            data[wrong]
    for far in (np.array([2**64 - 1], np.uint64), np.array([2**63], np.uint64), 2**63 - 1):
        with pytest.raises(IndexError):
            data[far]


#: What a transform may return for a sample with the label 7.
RETURNED = {
    "big-endian": (lambda x: np.array([x, 1], ">f4"), [7, 1]),
    "read-only": (lambda x: np.frombuffer(np.array([x, 1.0]).tobytes()), [7, 1]),
    "transposed": (lambda x: np.array([[x, 1], [2, 3]]).T, [[7, 2], [1, 3]]),
    "reversed": (lambda x: np.array([1, x])[::-1], [7, 1]),
    "matrix": (lambda x: np.matrix([[x, 1], [2, 3]]), [[7, 1], [2, 3]]),
    "no dimension": (np.array, 7),
    "expanded": (lambda x: np.broadcast_to(np.float32(x), (2, 2)), [[7, 7], [7, 7]]),
    "no element": (lambda x: np.zeros((0, 2)), np.zeros((0, 2))),
    "memoryview": (lambda x: memoryview(np.array([x, 1.0])), [7, 1]),
    "tensor": (lambda x: torch.tensor([[x, 1], [2, 3]]).t(), [[7, 2], [1, 3]]),
}


@pytest.mark.parametrize("kind", RETURNED)
@pytest.mark.parametrize("loader", [forebay.Loader, forebay.torch.Loader])
def test_transforms_return_arrays_of_any_kind(images, kind, loader):
    path, _, _ = images
    returns, expected = RETURNED[kind]
    opened = loader(path, batch_size=3, transform=lambda _: {"x": returns(7)}, end="exact")
    with opened as batches:
        batch = next(iter(batches))
        for value in batch["x"]:
            np.testing.assert_array_equal(np.asarray(value), expected)


def test_masks_and_text_of_transforms_do_not_become_numbers(images):
    path, _, _ = images

    def masked(_):
        return {"x": np.ma.array([1.0, 2.0], mask=[True, False])}

    with forebay.Loader(path, batch_size=3, transform=masked) as loader:
        batch = next(iter(loader))
        assert batch["x"].mask.tolist() == [[True, False]] * 3
    for transform in (masked, lambda _: {"x": np.array(["a"])}, lambda _: {"x": np.array([None])}):
        with (
            forebay.torch.Loader(path, batch_size=3, transform=transform) as loader,
            pytest.raises(forebay.UsageError, match="field x"),
        ):
            next(iter(loader))
