"""What a process and its workers have in memory, looked at from outside while they run. (What runs
shorter than the period is looked at once by the worker itself, at its end.)"""

import contextlib
import os
import signal
import threading

_PERIOD = 0.1  # seconds
_KINDS = ("Pss_Anon", "Pss_File", "Pss_Shmem")


def descendants(process):
    """It, and all that it has started."""
    found, left = [], [process]
    while left:
        each = left.pop()
        found.append(each)
        try:
            for task in os.listdir(f"/proc/{each}/task"):
                with open(f"/proc/{each}/task/{task}/children", encoding="ascii") as file:
                    left += map(int, file.read().split())
        except OSError:
            pass  # it has ended
    return found


def resident(process):
    """Bytes of each kind. Pages that several processes share are divided among them."""
    sizes = dict.fromkeys(_KINDS, 0)
    for each in descendants(process):
        try:
            with open(f"/proc/{each}/smaps_rollup", encoding="ascii") as file:
                for line in file:
                    name, _, rest = line.partition(":")
                    if name in sizes:
                        sizes[name] += int(rest.split()[0]) << 10
        except OSError:
            pass
    return sizes


class Watch:
    """Reads the worker's standard error; from `measuring` to `measured` it looks at its memory."""

    def __init__(self, process):
        self._process = process
        self._ended = threading.Event()
        self._most = dict.fromkeys(_KINDS, 0)
        self._total = 0
        self.errors = []
        self._reader = threading.Thread(target=self._read)
        self._looker = threading.Thread(target=self._look)
        self._reader.start()

    def _read(self):
        for line in self._process.stderr:
            if line == "measuring\n":
                self._looker.start()
            elif line == "measured\n":
                self._ended.set()
            else:
                self.errors.append(line)
        self._ended.set()

    def _look(self):
        while not self._ended.wait(_PERIOD):
            sizes = resident(self._process.pid)
            self._total = max(self._total, sum(sizes.values()))
            self._most = {kind: max(self._most[kind], size) for kind, size in sizes.items()}

    def kill(self):
        """The process with its workers: they are a session of their own."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)

    def join(self):
        self._reader.join()
        if self._looker.ident is not None:
            self._looker.join()

    def peaks(self, at_end):
        """The most of each kind, and together; `at_end` is what resident() told the worker."""
        most = {kind: max(size, at_end[kind]) for kind, size in self._most.items()}
        return {"peak_bytes": max(self._total, sum(at_end.values())),
                **{f"peak_{kind[4:].lower()}_bytes": size for kind, size in most.items()}}
