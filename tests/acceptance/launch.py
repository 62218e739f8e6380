"""Runs `forebay` as its users do: as one process or under the launcher of the build's MPI.

Settings come from the environment; tests/acceptance/CMakeLists.txt sets them:
  FOREBAY_COMMAND     the forebay executable
  FOREBAY_MPIRUN      scripts/mpirun.sh
  FOREBAY_MPI         openmpi or mpich
  FOREBAY_TOOLS       directory with make_test_databases
  FOREBAY_TEST_SCALE  how many times the usual number of cases (default 1)
"""

import ctypes
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from dataclasses import dataclass

COMMAND = os.environ.get("FOREBAY_COMMAND", "build/release/src/forebay")
MPIRUN = os.environ.get("FOREBAY_MPIRUN", "scripts/mpirun.sh")
FLAVOUR = os.environ.get("FOREBAY_MPI", "openmpi")
TOOLS = os.environ.get("FOREBAY_TOOLS", "build/release/tests")
SCALE = max(1, int(os.environ.get("FOREBAY_TEST_SCALE", "1")))

# Both launchers tell a process its rank this way.
_RANK_VARIABLES = ("OMPI_COMM_WORLD_RANK", "PMI_RANK")
# Segments that the MPI libraries make; a kill -9 leaves them behind, which is theirs to answer for.
_FOREIGN_SEGMENTS = re.compile(r"vader_|mpich_shar_|psm|ucx_|osc_rdma|sem\.mp|cma-|mpich|ompi")
_CLONE_NEWNS = 0x00020000
private_shared_memory = False


def some(cases, every, on_mpich=None):
    """All cases in the long run; of the short one every `every`-th, and on MPICH, where a start takes
    twice as long and little differs, every `on_mpich`-th."""
    if SCALE > 1:
        every = 1
    elif FLAVOUR == "mpich":
        every = on_mpich or every
    return list(cases)[::every]


@dataclass
class Result:
    code: int
    out: str
    err: str
    seconds: float

    def error_lines(self):
        """What forebay itself complains about; launchers add their own words."""
        return [line for line in self.err.splitlines() if line.startswith("forebay: error: ")]


def _parents():
    parents = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                with open(f"/proc/{entry}/stat", encoding="latin1") as stat:
                    fields = stat.read().rsplit(")", 1)[1].split()
            except OSError:
                continue
            if fields[0] not in "ZX":
                parents[int(entry)] = int(fields[1])
    return parents


def descendants(root):
    """Living processes below `root`, nearest first."""
    parents = _parents()
    found, level = [], [root]
    while level:
        level = [pid for pid, parent in parents.items() if parent in level]
        found += level
    return found


def is_alive(pid):
    return pid in _parents()


def _rank_of(pid):
    """The rank of a forebay process, or None for launchers, proxies and shells."""
    try:
        if os.path.realpath(f"/proc/{pid}/exe") != os.path.realpath(COMMAND):
            return None
        with open(f"/proc/{pid}/environ", "rb") as environ:
            variables = dict(item.split(b"=", 1) for item in environ.read().split(b"\0")
                             if b"=" in item)
    except OSError:
        return None
    for name in _RANK_VARIABLES:
        if name.encode() in variables:
            return int(variables[name.encode()])
    return 0


class Job:
    """A started run. Files rather than pipes take its output, so nobody has to drain them."""

    def __init__(self, arguments, ranks=0, env=None, prefix=()):
        launcher = [MPIRUN, FLAVOUR, str(ranks)] if ranks else []
        self.out = tempfile.TemporaryFile()
        self._err = tempfile.TemporaryFile()
        self._begin = time.monotonic()
        self._known = set()
        variables = {**os.environ, **{k: str(v) for k, v in (env or {}).items()}}
        self.process = subprocess.Popen(
            [*launcher, *prefix, *(str(argument) for argument in arguments)], env=variables,
            stdin=subprocess.DEVNULL, stdout=self.out, stderr=self._err, start_new_session=True)

    def processes(self):
        """Every process of the job seen so far, dead ones included."""
        self._known.update(descendants(self.process.pid))
        return self._known | {self.process.pid}

    def ranks(self):
        """{rank: pid} of the forebay processes alive now."""
        found = {_rank_of(pid): pid for pid in self.processes()}
        found.pop(None, None)
        return found

    def wait_for_ranks(self, count, timeout=30):
        return wait_until(lambda: self.ranks() if len(self.ranks()) == count else None, timeout,
                          f"{count} ranks to start")

    def kill(self):
        for pid in self.processes():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        self.process.wait()

    def wait(self, timeout=60):
        """Raises TimeoutError, with what the job printed, when it does not end in time."""
        try:
            self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            self.kill()
            result = self._result()
            raise TimeoutError(f"still running after {timeout} s; stderr: {result.err[-2000:]}; "
                               f"stdout: {result.out[-500:]}") from None
        return self._result()

    def _result(self):
        seconds = time.monotonic() - self._begin
        texts = []
        for stream in (self.out, self._err):
            stream.seek(0)
            texts.append(stream.read().decode(errors="replace"))
            stream.close()
        return Result(self.process.returncode, *texts, seconds)


def run(*arguments, ranks=0, env=None, timeout=60, prefix=()):
    """Runs `forebay ARGUMENTS...` to its end; ranks = 0 starts it without a launcher."""
    return Job([COMMAND, *arguments], ranks, env, prefix).wait(timeout)


def wait_until(condition, timeout, what):
    """The first true value of condition(); raises TimeoutError naming `what`."""
    end = time.monotonic() + timeout
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise TimeoutError(f"waited {timeout} s for {what}")
        time.sleep(0.02)


def resize_shared_memory(size):
    """Changes the size of the private /dev/shm. Never call it where there is none."""
    assert private_shared_memory
    subprocess.run(["mount", "-o", f"remount,size={size}", "/dev/shm"], check=True)


def own_segments():
    """What lies in /dev/shm and was not made by an MPI library."""
    return sorted(name for name in os.listdir("/dev/shm") if not _FOREIGN_SEGMENTS.search(name))


def use_private_shared_memory(size="4g"):
    """Gives this process and its children a /dev/shm of their own, where the system allows it.

    Jobs of others on the machine then neither disturb the check for left-over segments nor get
    disturbed. private_shared_memory tells whether it worked.
    """
    global private_shared_memory
    if ctypes.CDLL(None, use_errno=True).unshare(_CLONE_NEWNS) != 0:
        return
    commands = (["mount", "--make-rprivate", "/"],
                ["mount", "-t", "tmpfs", "-o", f"size={size},mode=1777", "tmpfs", "/dev/shm"])
    private_shared_memory = all(
        subprocess.run(command, stderr=subprocess.DEVNULL, check=False).returncode == 0
        for command in commands)


class AcceptanceCase(unittest.TestCase):
    """A scratch directory, which holds the cache of sidecars as well, and the promise that no test
    leaves shared memory behind."""

    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.mkdtemp(prefix="forebay-acceptance-")
        cls.addClassCleanup(shutil.rmtree, cls.scratch, ignore_errors=True)
        os.environ["XDG_CACHE_HOME"] = os.path.join(cls.scratch, "cache")

    def setUp(self):
        self._segments_before = own_segments()

    def tearDown(self):
        left = set(own_segments()) - set(self._segments_before)
        self.assertFalse(left, "shared-memory segments were left behind")

    def path(self, name):
        return os.path.join(self.scratch, name)

    def assert_lines(self, result, expected):
        """The run succeeded and printed exactly the expected lines."""
        self.assertEqual(result.code, 0, result.err[-2000:])
        actual = result.out.splitlines()
        expected = list(expected)
        for number, (got, wanted) in enumerate(zip(actual, expected)):
            if got != wanted:
                self.fail(f"line {number + 1} differs\n  printed: {got}\n  right:   {wanted}")
        self.assertEqual(len(actual), len(expected), "number of lines")


def main():
    """Entry of every acceptance test program."""
    if not os.access(COMMAND, os.X_OK):
        sys.exit(f"{COMMAND}: no executable; set FOREBAY_COMMAND")
    use_private_shared_memory()
    # Shells start what runs in the background with the signal ignored, and commands inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    unittest.main(verbosity=2)
