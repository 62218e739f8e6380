"""The emulated training of `forebay-bench sync`, for other libraries that sum gradients.

The same operations (from `forebay-bench sync --operations`), the same virtual device, threads that
decode JPEGs of the same size; only who sums differs. What cannot be the same: this is Python, whose
scheduler takes more time for an operation and shares one interpreter lock with the input threads.
"""

import argparse
import collections
import io
import json
import os
import queue
import resource
import statistics
import threading
import time

import numpy
import torch

_STORED = 256  # side of the stored images
_FILES = 32


def parse_arguments(description):
    parser = argparse.ArgumentParser(description=description,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("operations", help="what `forebay-bench sync --operations` printed")
    parser.add_argument("--net", help="which of its networks (default: the first)")
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--warmup", type=int, default=5)
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--input", choices=("real", "synthetic", "none"), default="real")
    parser.add_argument("--input-threads", type=int, default=2)
    parser.add_argument("--dispatch-us", type=float, default=5)
    parser.add_argument("--queue", type=int, default=64)
    return parser.parse_args()


def launched_rank_and_size():
    """As the launcher of Open MPI or MPICH tells them."""
    rank = os.environ.get("OMPI_COMM_WORLD_RANK", os.environ.get("PMI_RANK", "0"))
    size = os.environ.get("OMPI_COMM_WORLD_SIZE", os.environ.get("PMI_SIZE", "1"))
    return int(rank), int(size)


def read_network(path, name):
    with open(path, encoding="utf-8") as file:
        networks = json.load(file)["nets"]
    for network in networks:
        if name in (None, network["net"]):
            return network
    raise SystemExit(f"{path}: has no network {name}")


def sleep_until(when_ns):
    left = when_ns - time.monotonic_ns()
    if left > 0:
        time.sleep(left * 1e-9)


class Device:
    """Kernels follow each other on one time line; nothing is computed."""

    def __init__(self, length):
        self._length = length
        self._ends = collections.deque()
        self.end = 0

    def begin(self):
        self.end = max(self.end, time.monotonic_ns())

    def full(self):
        now = time.monotonic_ns()
        while self._ends and self._ends[0] <= now:
            self._ends.popleft()
        return len(self._ends) >= self._length

    def first_end(self):
        return self._ends[0]

    def dispatch(self, takes_ns):
        self.end = max(self.end, time.monotonic_ns()) + takes_ns
        self._ends.append(self.end)
        return self.end


class Images:
    """Threads that decode, crop and normalize images, two batches ahead."""

    def __init__(self, options, batch, side):
        self._kind = options.input
        if self._kind == "none":
            return
        self._side = side
        self._files = [_make_file(i, max(_STORED, side)) for i in range(_FILES)]
        self._wanted = queue.SimpleQueue()
        self._done = queue.SimpleQueue()
        self._batch = batch
        self._batches = [numpy.empty((batch, 3, side, side), numpy.float32) for _ in range(2)]
        self._next = 0
        for _ in self._batches:
            self._order()
        for _ in range(options.input_threads):
            threading.Thread(target=self._live, daemon=True).start()

    def next(self):
        if self._kind == "none":
            return
        for _ in range(self._batch):
            self._done.get()
        self._order()

    def _order(self):
        for _ in range(self._batch):
            self._wanted.put(self._next)
            self._next += 1

    def _live(self):
        from PIL import Image
        while True:
            number = self._wanted.get()
            into = self._batches[number // self._batch % len(self._batches)][number % self._batch]
            if self._kind == "synthetic":
                into.fill(number % 256)
            else:
                picture = Image.open(io.BytesIO(self._files[number * 7 % _FILES]))
                left, top = (number * 5 % (picture.width - self._side + 1),
                             number * 11 % (picture.height - self._side + 1))
                pixels = numpy.asarray(picture)[top:top + self._side, left:left + self._side]
                numpy.subtract(pixels.transpose(2, 0, 1), 118, out=into, casting="unsafe")
                into *= 1 / 58
            self._done.put(number)


def _make_file(number, side):
    from PIL import Image
    random = numpy.random.default_rng(number)
    y, x = numpy.mgrid[0:side, 0:side]
    planes = []
    for _ in range(3):
        a, b, c, d = 1e-3 * random.integers(3, 100, 4)
        planes.append(128 + 60 * numpy.sin(a * x + b * y) + 40 * numpy.cos(c * x - d * y) +
                      random.integers(-16, 17, (side, side)))
    picture = Image.fromarray(numpy.stack(planes, 2).clip(0, 255).astype(numpy.uint8))
    file = io.BytesIO()
    picture.save(file, "JPEG", quality=90)
    return file.getvalue()


class Schedule:
    """Walks over the operations of a step, as far ahead of the device as its queue allows."""

    def __init__(self, network, options):
        self._operations = network["operations"]
        self._dispatch_ns = int(options.dispatch_us * 1000)
        self.device = Device(options.queue)
        self._at = 0
        self._ready = {}

    def begin(self):
        self._at = 0
        self._ready.clear()
        self.device.begin()

    def _one(self):
        operation = self._operations[self._at]
        self._at += 1
        end = time.monotonic_ns() + self._dispatch_ns
        while time.monotonic_ns() < end:
            pass
        if operation["kind"] in ("kernel", "gradient", "update"):
            while self.device.full():
                sleep_until(self.device.first_end())
            ready = self.device.dispatch(operation["takes_ns"])
            if operation["kind"] == "gradient":
                self._ready[operation["tensor"]] = ready

    def wait_for_gradient(self, tensor):
        """Dispatches what comes before it and, while there is room, what comes after it."""
        while tensor not in self._ready:
            self._one()
        while (self._at < len(self._operations) and not self.device.full() and
               self._operations[self._at]["kind"] != "update" and
               time.monotonic_ns() < self._ready[tensor]):
            self._one()
        sleep_until(self._ready[tensor])

    def finish(self):
        """All gradients are summed: dispatches the updates, and waits for their end."""
        while self._at < len(self._operations):
            self._one()
        sleep_until(self.device.end)


class Model(torch.nn.Module):
    """One parameter a tensor; going backward it waits for the device, tensor by tensor."""

    def __init__(self, network, schedule):
        super().__init__()
        self._schedule = schedule
        self.weights = torch.nn.ParameterList(
            torch.nn.Parameter(torch.zeros(shape))
            for shape in (tensor["shape"] for tensor in network["tensors"]))
        self._gradients = [torch.ones_like(weight) for weight in self.weights]

    def forward(self, x):
        # The first gradient to be ready is that of the last in the chain.
        for tensor in reversed(range(len(self.weights))):
            x = _Wait.apply(x, self.weights[tensor], self, tensor)
        return x.sum()

    def gradient(self, tensor):
        self._schedule.wait_for_gradient(tensor)
        return self._gradients[tensor]


class _Wait(torch.autograd.Function):

    @staticmethod
    def forward(context, x, _weight, model, tensor):
        context.model, context.tensor = model, tensor
        return x.clone()

    @staticmethod
    def backward(context, gradient):
        return gradient, context.model.gradient(context.tensor), None, None


def measure(network, options, images, schedule, step, barrier, size):
    """Images a second of all ranks, of each repetition. `step` runs backward and sums."""

    def run(steps):
        for _ in range(steps):
            images.next()
            schedule.begin()
            step()
            schedule.finish()

    run(options.warmup)
    rates = []
    before = resource.getrusage(resource.RUSAGE_SELF)
    for _ in range(options.repetitions):
        barrier()
        begin = time.monotonic()
        run(options.steps)
        barrier()
        rates.append(options.steps * network["batch"] * size / (time.monotonic() - begin))
    after = resource.getrusage(resource.RUSAGE_SELF)
    return {"images_per_second": {"median": statistics.median(rates), "least": min(rates),
                                  "most": max(rates)},
            "user_seconds": after.ru_utime - before.ru_utime,
            "system_seconds": after.ru_stime - before.ru_stime,
            "involuntary_switches": after.ru_nivcsw - before.ru_nivcsw}
