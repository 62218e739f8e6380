"""Data sets as users have them, written by the libraries that users write them with."""

import json
import os
import re
import shutil
import struct
import subprocess
import sys
from pathlib import Path

import lmdb
import numpy as np
import pytest

SAMPLES = 203  # a prime plus: divides by no batch size in use here


def _flavour():
    """The MPI whose launcher tests use: FOREBAY_MPI, or the first that is here."""
    found = (name for name in ("openmpi", "mpich") if shutil.which(f"mpirun.{name}"))
    return os.environ.get("FOREBAY_MPI") or next(found, "openmpi")


FLAVOUR = _flavour()
LAUNCHER = shutil.which(f"mpirun.{FLAVOUR}") or "mpirun"


# A run that is left in the middle of an epoch, and one that goes on from its state, on any ranks.
SAVE = """
import json, sys, forebay
loader = forebay.Loader(sys.argv[1], global_batch_size=12, decode=False, seed=4, end="exact")
seen = []
for i, batch in enumerate(loader):
    seen += batch["sample"].tolist()
    if i == 4:
        break
if loader.ranks.rank == 0:
    json.dump(loader.state_dict(), open(sys.argv[2], "w"))
print(json.dumps(seen), flush=True)
loader.close()
"""
LOAD = """
import json, sys, forebay
loader = forebay.Loader(sys.argv[1], global_batch_size=12, decode=False, seed=4, end="exact")
loader.load_state_dict(json.load(open(sys.argv[2])))
print(json.dumps([i for b in loader for i in b["sample"].tolist()]), flush=True)
loader.close()
"""


def datum(image, label):
    """A Caffe Datum, by hand: channels, height, width, data, label."""

    def varint(number):
        out = b""
        while number > 127:
            out += bytes([number & 127 | 128])
            number >>= 7
        return out + bytes([number])

    c, h, w = image.shape
    data = image.tobytes()
    return (
        b"\x08" + varint(c) + b"\x10" + varint(h) + b"\x18" + varint(w)
        + b"\x22" + varint(len(data)) + data + b"\x28" + varint(label)
    )  # fmt: skip


def write_lmdb(path, records):
    env = lmdb.open(str(path), map_size=1 << 28)
    with env.begin(write=True) as txn:
        for key, value in records:
            assert txn.put(key, value)
    env.close()
    return str(path)


def read_lmdb(path):
    """What py-lmdb reads: keys and values in the order of the database."""
    env = lmdb.open(str(path), readonly=True, lock=False)
    with env.begin() as txn:
        records = [(bytes(k), bytes(v)) for k, v in txn.cursor()]
    env.close()
    return records


@pytest.fixture(scope="session")
def data(tmp_path_factory):
    return tmp_path_factory.mktemp("data")


@pytest.fixture(scope="session")
def images(data):
    """Datums, with the images and labels that went into them."""
    rng = np.random.default_rng(1)
    pixels = rng.integers(0, 256, (SAMPLES, 3, 8, 8), np.uint8)
    labels = rng.integers(0, 1000, SAMPLES).astype(np.int32)
    path = write_lmdb(
        data / "images.lmdb",
        ((f"{i:08d}".encode(), datum(pixels[i], int(labels[i]))) for i in range(SAMPLES)),
    )
    return path, pixels, labels


@pytest.fixture(scope="session")
def values(data):
    """Values of all lengths, the empty one among them."""
    rng = np.random.default_rng(2)
    records = [
        (f"{i:05d}".encode(), rng.bytes(int(rng.integers(0, 5000)) if i % 7 else 0))
        for i in range(SAMPLES)
    ]
    return write_lmdb(data / "values.lmdb", records), records


@pytest.fixture(scope="session")
def numbers(data):
    """Record i is the number i."""
    path = write_lmdb(
        data / "numbers.lmdb",
        ((f"{i:08d}".encode(), struct.pack("<q", i)) for i in range(SAMPLES)),
    )
    return path


def run_ranks(ranks, script, *arguments, launcher="mpirun", timeout=120, check=True):
    """Runs a Python script on several ranks; returns what it has printed."""
    environment = dict(os.environ)
    for name in list(environment):
        if name.startswith(("OMPI_", "PMIX_", "PMI_")):
            del environment[name]
    environment.update(
        OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", OMP_NUM_THREADS="1"
    )
    program = [sys.executable, str(script), *map(str, arguments)]
    if launcher == "mpirun":
        command = [LAUNCHER, "-n", str(ranks)]
        if FLAVOUR == "openmpi":
            command += ["--oversubscribe", "--bind-to", "none", "--mca", "mpi_yield_when_idle", "1"]
        environment["MPIR_CVAR_POLLS_BEFORE_YIELD"] = "1"
    else:
        command = [sys.executable, "-m", "torch.distributed.run", "--nnodes", "1"]
        command += ["--rdzv_backend", "c10d", "--rdzv_endpoint", "localhost:0"]
        # Without these two, torch 1.13 does not start on Python 3.11.
        command += ["--redirects", "1", "--tee", "1", "--nproc_per_node", str(ranks)]
        program = program[1:]
    done = subprocess.run(
        command + program,
        check=False,
        env=environment,
        capture_output=True,
        text=True,
        timeout=timeout,
    )
    done.stdout = re.sub(r"^\[default\d+\]:", "", done.stdout, flags=re.MULTILINE)
    if check:
        assert done.returncode == 0, done.stdout + done.stderr
    return done


def json_lists(output):
    """The JSON arrays in what ranks have printed, whose lines may run into each other."""
    found, at = [], output.find("[")
    while at >= 0:
        value, end = json.JSONDecoder().raw_decode(output, at)
        found.append(value)
        at = output.find("[", end)
    return found


@pytest.fixture
def script(tmp_path):
    """Writes a script for run_ranks."""

    def write(text, name="script.py"):
        path = Path(tmp_path) / name
        path.write_text(text)
        return path

    return write


def no_segments():
    """Shared memory of ours in the system."""
    return [name for name in os.listdir("/dev/shm") if "forebay" in name]
