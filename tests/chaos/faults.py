"""What happens to a run, and how it may end.

A fault has up to three parts: what is arranged before the start, what strikes at a random moment in
the middle, and the words of an error that names it. Any may come too late, and change nothing.
"""

import os
import re
import signal
import subprocess
from dataclasses import dataclass
from typing import Callable, Optional

import launch
import launches

_LOST = r"rank|signal|interrupt|no answer|terminat|died|gone|timeout|timed out|waited|--timeout"


@dataclass
class Fault:
    name: str
    words: str = ""  # of the error that names it; "" where there is none
    silent: bool = False  # whether the launcher may end the run before we say anything
    after_open: bool = False  # whether it waits for a first sample: before, other data are right
    peers: bool = False  # whether only other ranks can notice
    prepare: Optional[Callable] = None
    strike: Optional[Callable] = None
    pfs: tuple = ()  # options of the modelled file system
    launchers: tuple = ()  # where it means anything; empty: everywhere


def _signal(number):
    def strike(run):
        for pid in run.some_process():
            os.kill(pid, number)

    return strike


def _stop(run):
    run.stopped = run.some_process()
    for pid in run.stopped:
        os.kill(pid, signal.SIGSTOP)


def _pause(run):
    for pid in run.some_process():
        os.kill(pid, signal.SIGSTOP)
        launch.time.sleep(run.generator.uniform(0.1, launches.TIMEOUT / 2))
        try:
            os.kill(pid, signal.SIGCONT)
        except ProcessLookupError:
            pass


def _place(run):
    """A byte of the file that faults happen to, as forebay-pfs wants it."""
    size = os.path.getsize(run.dataset.file)
    name = os.path.relpath(run.dataset.file, run.dataset.folder)
    return f"{name} {run.generator.randrange(size)}" if " " not in name else None


def _command(verb, more=""):
    def strike(run):
        place = _place(run)
        if place:
            run.file_system.command(f"{verb} {place} {more}".strip())

    return strike


def _truncate(run):
    size = os.path.getsize(run.dataset.file)
    os.truncate(run.dataset.file, run.generator.randrange(size))


def _other_content(run):
    with open(run.dataset.file, "rb") as file:
        content = bytearray(file.read())
    half = len(content) // 2
    content[half:] = run.generator.randbytes(len(content) - half)
    return bytes(content)


def _replace(run):
    other = run.dataset.file + ".other"
    with open(other, "wb") as file:
        file.write(_other_content(run))
    os.rename(other, run.dataset.file)


def _rewrite(run):
    with open(run.dataset.file, "r+b") as file:
        file.write(_other_content(run))


def _remove(run):
    os.unlink(run.dataset.file)


def _fill_shared_memory(run):
    """All but some kilobytes."""
    state = os.statvfs("/dev/shm")
    left = run.generator.choice((0, 64 << 10, 3 << 20))
    with open(run.filler, "wb") as file:
        os.posix_fallocate(file.fileno(), 0, max(1, state.f_bavail * state.f_frsize - left))


def _little_disk(run):
    run.environment["XDG_CACHE_HOME"] = run.small_disk
    with open(os.path.join(run.small_disk, "full"), "wb") as file:
        file.write(bytes(run.generator.choice((0, 60 << 10))))


def _output_on_little_disk(run):
    run.output = os.path.join(run.small_disk, "lines")
    run.flags += ["--output", run.output]


def _short_files(run):
    run.output = os.path.join(run.folder, "lines")
    run.flags += ["--output", run.output]
    run.prefix += ["prlimit", f"--fsize={run.generator.choice((1000, 30000))}"]


def _few_descriptors(run):
    for pid in run.some_process():
        count = len(os.listdir(f"/proc/{pid}/fd")) + run.generator.randint(0, 2)
        _limit(pid, f"--nofile={count}:{count}")


def _little_memory(run):
    for pid in run.some_process():
        with open(f"/proc/{pid}/status", encoding="ascii") as file:
            size = re.search(r"VmSize:\s+(\d+)", file.read())
        if size is None:
            continue  # it has just ended
        used = int(size[1]) << 10
        _limit(pid, f"--as={used + run.generator.choice((0, 1 << 20, 200 << 20))}")


def _limit(pid, option):
    subprocess.run(["prlimit", f"--pid={pid}", option], check=False, stderr=subprocess.DEVNULL)


_CHANGED = (
    r"changed|replaced|cut|truncat|short|rewritten|shrank|bytes|damaged|stale|another|ends|opened"
)
_MEMORY = r"memory|allocat|map|thread|bad_alloc|resource|MPI"

FAULTS = (
    Fault("none"),
    Fault("pause", strike=_pause, words=_LOST),
    Fault("kill", silent=True, strike=_signal(signal.SIGKILL), words=_LOST),
    Fault(
        "stop",
        silent=True,
        after_open=True,  # a launcher waits for all that have not started
        peers=True,
        strike=_stop,
        words=_LOST,
        launchers=("command", "python"),
    ),
    Fault("terminate", silent=True, strike=_signal(signal.SIGTERM), words=_LOST),
    Fault("interrupt", silent=True, strike=_signal(signal.SIGINT), words=_LOST),
    Fault("hang up", silent=True, strike=_signal(signal.SIGHUP), words=_LOST),
    Fault("abort", silent=True, strike=_signal(signal.SIGABRT), words=_LOST),
    Fault("bad read", strike=_command("fail"), words=r"nput/output error|I/O|device failed"),
    Fault(
        "bad read at open", prepare=_command("fail"), words=r"nput/output error|I/O|device failed"
    ),
    Fault("hang", strike=_command("stall", "60s"), words=r"no answer|--timeout|answer"),
    Fault(
        "hang at open",
        prepare=_command("stall", "60s"),
        words=r"no answer|--timeout|answer",
    ),
    Fault("late", strike=_command("stall", "1s")),
    Fault("short", pfs=("--direct-io", "--short-reads"), words=r"--engine pread|MDB_INVALID"),
    Fault("cut", after_open=True, strike=_truncate, words=_CHANGED),
    Fault("replaced", after_open=True, strike=_replace, words=_CHANGED),
    Fault("rewritten", after_open=True, strike=_rewrite, words=_CHANGED),
    Fault("removed", after_open=True, strike=_remove, words=r"no such file|" + _CHANGED),
    Fault("full shared memory", prepare=_fill_shared_memory, words=r"/dev/shm"),
    Fault("full disk", prepare=_little_disk),
    Fault(
        "no room for output",
        prepare=_output_on_little_disk,
        words=r"[Nn]o space|space left",
        launchers=("command",),
    ),
    Fault(
        "short files",
        prepare=_short_files,
        words=r"too large|fsize|ulimit|limit",
        launchers=("command",),
    ),
    Fault(
        "few descriptors",
        silent=True,
        strike=_few_descriptors,
        words=r"ulimit -n|open files|descriptors",
    ),
    Fault("little memory", silent=True, strike=_little_memory, words=_MEMORY),
)
