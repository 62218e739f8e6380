"""How a run is started: the command alone or under MPI, a loop in Python likewise, or under torchrun."""

import functools
import json
import os
import subprocess

import launch

_HERE = os.path.dirname(os.path.abspath(__file__))
PYTHON = os.environ.get("FOREBAY_PYTHON", "")
TIMEOUT = 4  # seconds, of each run


def has(module):
    """Whether the interpreter of the loops in Python has `module`."""
    return (
        bool(PYTHON)
        and subprocess.run(
            [PYTHON, "-c", f"import {module}"], check=False, capture_output=True
        ).returncode
        == 0
    )


def _options(words):
    """Options of the command line as keyword arguments."""
    words = [str(word) for word in words]
    found = {}
    for place, word in enumerate(words):
        if word.startswith("--"):
            value = words[place + 1] if place + 1 < len(words) else "--"
            found[word[2:].replace("-", "_")] = True if value.startswith("--") else value
    return found


def _loop(run):
    """loop.py with the options that the command would get."""
    options = {
        "batch_size": run.batch,
        "epochs": run.epochs,
        "end": "exact",
        "decode": False,
        "timeout": f"{TIMEOUT}s",
        **_options([*run.flags, *run.order]),
    }
    if options["order"] == "strided":
        options["order"] = "sequential"
        del options["coalesce"]
    return [os.path.join(_HERE, "loop.py"), run.name, json.dumps(options), run.folder]


def command(run):
    """[word], ranks of the MPI launcher (0: none)"""
    words = [
        launch.COMMAND,
        "samples",
        run.name,
        *run.flags,
        *run.order,
        "--batch",
        run.batch * max(run.ranks, 1),
        "--epochs",
        run.epochs,
        "--timeout",
        f"{TIMEOUT}s",
    ]
    return [*run.prefix, *words], run.ranks


def python(run):
    return [*run.prefix, PYTHON, *_loop(run)], run.ranks


def torchrun(run):
    # Without --redirects and --tee, torch 1.13 does not start on Python 3.11.
    words = [
        "-m",
        "torch.distributed.run",
        "--nproc_per_node",
        max(run.ranks, 1),
        # Port 0: bound by torchrun where the system has one free. A port drawn here may be taken by then.
        "--rdzv_backend",
        "c10d",
        "--rdzv_endpoint",
        "localhost:0",
        "--redirects",
        1,
        "--tee",
        1,
    ]
    return [PYTHON, *words, *_loop(run)], 0


@functools.cache
def known():
    """{name: function}, those that this machine can start."""
    found = {"command": command}
    if has("forebay"):
        found["python"] = python
        if has("torch"):
            found["torchrun"] = torchrun
    return found


def environment():
    return {
        "PYTHONPATH": os.pathsep.join(
            [os.path.join(_HERE, "..", "acceptance"), _HERE, os.environ.get("PYTHONPATH", "")]
        ),
        "PYTHONDONTWRITEBYTECODE": "1",
        "OMP_NUM_THREADS": "1",
    }
