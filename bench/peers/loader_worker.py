#!/usr/bin/python3
"""Runs one loader on one case in this process. Prints one JSON line. Called by loaders.py.

  loader_worker.py make DATA FOLDER ENVIRONMENT COUNT     writes the data of an environment's peers
  loader_worker.py run PEER CASE FOLDER SECONDS [check]   measures

A line `measuring` goes out on standard error when measuring begins: the caller looks at the memory
from then on.
"""

import itertools
import json
import os
import resource
import statistics
import sys
import time

import loader_cases
import loader_data
import loader_memory


def make(data, folder, environment, count):
    if environment == "torch":
        loader_data.make_lmdb(folder, data, count)
        if data in loader_cases.RAW:
            loader_data.make_hdf5(folder, data, count)
    else:
        loader_data.MAKERS[environment](folder, data, count)


def _seconds_of(process):
    with open(f"/proc/{process}/stat", encoding="ascii", errors="replace") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")  # with its ended children


def cpu_seconds():
    """Of this process and its workers, those that live among them."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    total = used.ru_utime + used.ru_stime + ended.ru_utime + ended.ru_stime
    for task in os.listdir("/proc/self/task"):
        try:
            with open(f"/proc/self/task/{task}/children", encoding="ascii") as file:
                total += sum(_seconds_of(child) for child in file.read().split())
        except OSError:
            pass  # it has ended meanwhile, and is counted above
    return total


def drop(files):
    """Takes the files out of the page cache. What is written is on the device already."""
    for path in files:
        with open(path, "rb") as file:
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def warm(files):
    for path in files:
        with open(path, "rb") as file:
            while file.read(1 << 23):
                pass


def measure(peer, case, folder, seconds):
    """Figures from opening to the last batch, and the function that gives epochs."""
    import loader_peers
    loader_peers.import_peer(peer)
    files = loader_data.files_of(folder, peer)
    (drop if case.cold else warm)(files)
    print("measuring", file=sys.stderr, flush=True)
    opened, cpu = time.monotonic(), cpu_seconds()
    epoch = loader_peers.open_peer(peer, case, folder)
    rates, first = [], None
    while True:
        # Some begin to read when they are opened: with few samples, that counts.
        begin, samples = opened if case.most else time.monotonic(), 0
        for labels, images in itertools.islice(epoch(len(rates)), *_limits(case)):
            samples += len(labels)
            if first is None:
                first = time.monotonic() - opened
                assert len(images) == len(labels)
        last = time.monotonic()
        rates.append(samples / (last - begin))
        if case.most or (len(rates) > 1 and last - opened + (last - begin) > seconds):
            break
    cpu = cpu_seconds() - cpu
    memory = loader_memory.resident(os.getpid())
    # The first epoch starts workers and threads, and may compile: it counts where it is alone.
    return {"samples_per_second": statistics.median(rates[1:] or rates), "epochs": len(rates),
            "first_epoch": rates[0], "memory_at_end": memory, "first_batch_seconds": first,
            "cpu_seconds": cpu,
            "cpu_us_a_sample": cpu / (samples * len(rates)) * 1e6}, epoch, len(rates)


def _limits(case):
    return (case.most // case.batch,) if case.most else (None,)


def quality(labels):
    """As `forebay order` measures: neighbours that stay together, correlation of place and number,
    and how far apart neighbours come over what a full shuffle does."""
    import numpy
    count = len(labels)
    places = numpy.empty(count, numpy.int64)
    places[labels] = numpy.arange(count)
    distance = numpy.abs(numpy.diff(places)).mean() / (count / 3)
    return {"neighbours_kept": float((numpy.diff(labels) == 1).mean()),
            "correlation": float(numpy.corrcoef(numpy.arange(count), labels)[0, 1]),
            "neighbour_distance": float(distance)}


def check(case, folder, batches):
    """Every sample came once, with its bytes; JPEG files: with values that pixels can have."""
    import numpy
    with open(os.path.join(folder, "count"), encoding="ascii") as file:
        count = int(file.read())
    sums = None
    if case.data in loader_cases.RAW:
        sums = numpy.load(os.path.join(folder, "sums.npy"))
    seen = []
    for labels, images in batches:
        labels = numpy.array(labels)  # a copy: some loaders use their memory again
        if sums is None:
            assert images.shape[1:] == (3, loader_cases.SIDE, loader_cases.SIDE), images.shape
            assert images.dtype == numpy.float32 and 0.05 < images.std() < 3
        elif not numpy.array_equal(checksums(images), sums[labels]):
            raise ValueError("bytes are not those of their sample")
        seen.append(labels)
    order = numpy.concatenate(seen).astype(numpy.int64)
    if not numpy.array_equal(numpy.sort(order), numpy.arange(count)):
        raise ValueError(f"an epoch had {len(order)} samples, {len(set(order.tolist()))} of them "
                         f"different, of {count}")
    return order


def checksums(images):
    """One number for each image, in which the place of each byte counts."""
    import numpy
    words = numpy.ascontiguousarray(images).reshape(len(images), -1).view(numpy.uint64)
    places = numpy.arange(1, 2 * words.shape[1], 2, dtype=numpy.uint64)
    return (words * places).sum(axis=1, dtype=numpy.uint64)


def main():
    if sys.argv[1] == "make":
        data, folder, environment, count = sys.argv[2:6]
        make(data, folder, environment, int(count))
        return
    peer, name, folder, seconds = sys.argv[2:6]
    case = next(each for each in loader_cases.CASES if each.name == name)
    figures, epoch, done = measure(peer, case, folder, float(seconds))
    print("measured", file=sys.stderr, flush=True)
    if "check" in sys.argv[6:]:
        if case.most:  # that epoch was given up
            figures["checked"] = False
        else:
            order = check(case, folder, epoch(done))
            figures["checked"] = True
            figures["order"] = quality(order)
    print(json.dumps(figures), flush=True)


if __name__ == "__main__":
    main()
