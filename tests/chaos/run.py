"""One run of the soak: drawn from a number alone, struck, and judged."""

import collections
import glob
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys

import data_sets
import faults
import launch
import launches

_HERE = os.path.dirname(os.path.abspath(__file__))
_ROOT = os.path.dirname(os.path.dirname(_HERE))
sys.path.insert(0, os.path.join(_ROOT, "bench", "pfs"))
import nodes  # noqa: E402

PFS = os.environ.get("FOREBAY_PFS", os.path.join(_ROOT, "build/release/bench/pfs/forebay-pfs"))
ENGINES = ("auto", "mmap", "pread", "uring")
STRATEGIES = ("auto", "lmm-dio", "lmm-dio-prov", "lmm-dio-prov-coal", "lmm-dio-prov-coal-stag")
OF_LMDB = ("lmdb", "lmm", "lmm-dm")
START = 60  # seconds that a run may take to start and to end when nothing is wrong
ALONE = 15  # seconds after which a launcher does not end any more that has no process left
GRACE = 12  # seconds beside the timeout until all ranks have ended: launchers take some of them
_CRASH = re.compile(r"Assertion|Sanitizer|Segmentation|Signal: |core dumped|terminate called")
# Open MPI 4.1 may then wait in MPI_Init for ever, as programs without Forebay do.
_MPI_HAS_NO_MEMORY = re.compile(r"during shared memory initialization|ORTE_ERROR_LOG")
_TEMPORARY = re.compile(r"\.partial|\.tmp|\.new|~$")


class Finding(Exception):
    """What should not have happened."""


class Run:
    """`number` decides everything; `only` names faults and kinds to draw from."""

    def __init__(self, number, scratch, starters, only=()):
        self.number, self.generator = number, random.Random(number)
        self.folder = os.path.join(scratch, f"run{number}")
        self.small_disk = os.path.join(scratch, "small-disk")
        self.filler = "/dev/shm/chaos-filler"
        self.output, self.prefix = None, []
        self.struck = False  # whether there was something that the fault could happen to
        self.stopped = []  # ranks that do not go on by themselves
        self.environment = {
            "XDG_CACHE_HOME": os.path.join(self.folder, "cache"),
            "FOREBAY_CHAOS": str(number),
            **launches.environment(),
        }
        self._draw(starters, only)

    def _draw(self, starters, only):
        draw = self.generator.choice
        named = [fault for fault in faults.FAULTS if fault.name in only]
        self.fault = draw(named or faults.FAULTS)
        kinds = [kind for kind in data_sets.MAKERS if kind in only]
        self.dataset = data_sets.make(
            draw(kinds or list(data_sets.MAKERS)), self.generator, os.path.join(self.folder, "data")
        )
        fitting = [
            name for name in starters if not self.fault.launchers or name in self.fault.launchers
        ]
        named = [name for name in fitting if name in only]
        self.launcher = draw(named or fitting)
        self.start = starters[self.launcher]
        self.ranks = draw((2, 3, 4) if self.fault.peers else (0, 1, 2, 3, 4))
        self.batch, self.epochs = self.generator.randint(1, 12), self.generator.randint(1, 3)
        lmdb = self.dataset.kind == "lmdb"
        strategy = draw(STRATEGIES + OF_LMDB if lmdb else STRATEGIES)
        entries = len(self.dataset.right)
        orders = [
            ("shuffled",),
            ("shuffled", "--keep", 3),
            ("strided", "--coalesce", draw((1, 4))),
            ("grouped", "--group", max(1, entries // 12)),
            ("in_memory",),
            ("shuffled", "--hold", "memory"),
        ]
        if self.launcher == "torchrun":
            orders = orders[:4]
        elif strategy in OF_LMDB:
            orders = [orders[2]]
        self.order = ("--order", *draw(orders), "--seed", number_of(self.generator))
        engine = draw(("auto", "mmap")) if strategy in OF_LMDB else draw(ENGINES)
        self.flags = [
            *self.dataset.flags,
            "--strategy",
            strategy,
            "--engine",
            engine,
            "--buffers",
            draw((1, 2, 3)),
            "--window",
            draw((1, 4, 8)),
        ]
        self.seconds = self.generator.uniform(0.5, 2.5)  # that reading all takes
        self.moment = self.generator.uniform(0, 1.2) * self.seconds

    def __str__(self):
        flags = " ".join(str(flag) for flag in (*self.order, *self.flags))
        return (
            f"{self.fault.name}: {self.dataset.kind}, {len(self.dataset.right)} samples, "
            f"{self.launcher}, {self.ranks} ranks, batch {self.batch}, {self.epochs} epochs, {flags}"
        )

    def processes(self):
        """The ranks that live and are past their imports: what other libraries do there when they get
        no memory, or a signal, is theirs (OpenBLAS asks for ever)."""
        found = []
        for pid in launch.descendants(self.job.process.pid) + [self.job.process.pid]:
            try:
                with open(f"/proc/{pid}/cmdline", "rb") as file:
                    words = file.read().split(b"\0")
            except OSError:
                continue
            is_command = os.path.basename(words[0]) == os.path.basename(launch.COMMAND).encode()
            is_loop = os.path.exists(f"{self.folder}/started-{pid}")
            if is_command or is_loop:
                found.append(pid)
        return sorted(found)

    def some_process(self):
        """One of them, or none when all have ended."""
        living = self.processes()
        return [self.generator.choice(living)] if living else []

    def perform(self):
        """How it ended; raises Finding."""
        before = set(launch.own_segments())
        try:
            self._serve()
            result, late = self._suffer()
            if result is None:
                return "MPI waits for ever"
            lines = self._lines(result.out, whole=result.code == 0)
            self._judge(result, lines, late)
        finally:
            self._clean()
        self._require_nothing_left(before)
        errors = self._errors(result)
        return errors[0] if errors else ("whole" if result.code == 0 else f"ended ({result.code})")

    def _serve(self):
        mount = os.path.join(self.folder, "mount")
        os.makedirs(mount)
        size = sum(
            os.path.getsize(os.path.join(at, name))
            for at, _, names in os.walk(self.dataset.folder)
            for name in names
        )
        if "--direct-io" in self.fault.pfs:  # every rank asks for all of it, and again
            size *= 4 * max(self.ranks, 1)
        self.file_system = nodes.FileSystem(
            PFS,
            self.dataset.folder,
            [mount],
            self.folder,
            [
                "--force",
                "--bandwidth",
                f"{max(1, int(size / self.seconds / 1000))}KB/s",
                "--latency",
                "0ms",
                "--seek-penalty",
                "0ms",
                "--attr-timeout",
                "0s",
                *self.fault.pfs,
            ],
        )
        subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", self.small_disk], check=True
        )
        self.name = self.dataset.path(mount)

    def _suffer(self):
        """The result, and how many seconds it took after the fault. None: MPI never ends."""
        if self.fault.prepare:
            self.fault.prepare(self)
        self.struck = bool(self.fault.prepare or self.fault.pfs)
        words, ranks = self.start(self)
        self.job = launch.Job(words, ranks, self.environment)
        begin = launch.time.monotonic()
        if self.fault.strike:
            try:
                launch.wait_until(
                    lambda: self.processes() or self.job.process.poll() is not None,
                    START,
                    "ranks to start",
                )
                if self.fault.after_open:
                    launch.wait_until(self._has_begun, START, "the first sample")
                launch.time.sleep(self.moment)
                self.struck = bool(self.processes())
                self.fault.strike(self)
            except ProcessLookupError:
                pass
        try:
            struck = self._go_on_at_the_end(launch.time.monotonic())
            end = self._end_of_job(START + launches.TIMEOUT + GRACE, ranks > 0)
            result = self.job.wait(0)
        except TimeoutError as error:
            if self.fault.name == "little memory" and re.search(_MPI_HAS_NO_MEMORY, str(error)):
                return None, 0
            raise Finding(f"hangs: {error}") from None
        return result, end - (struck if self.fault.strike else begin)

    def _end_of_job(self, limit, under_mpirun):
        """Waits for the job, and tells when it ended. mpirun of Open MPI 4.1 may wait at its own end for
        ever when all ranks have gone (docs/errors.md): it is ended then, and the rest is judged."""
        begin = alive = launch.time.monotonic()
        while launch.time.monotonic() < begin + limit:
            try:
                self.job.process.wait(0.5)
                return launch.time.monotonic()
            except subprocess.TimeoutExpired:
                if launch.descendants(self.job.process.pid):
                    alive = launch.time.monotonic()
            if under_mpirun and launch.time.monotonic() > alive + ALONE:
                self.job.kill()
                return alive
        return launch.time.monotonic()

    def _go_on_at_the_end(self, struck):
        """Ranks with nothing left to do wait for a stopped one as MPI_Finalize does, without a limit
        (docs/errors.md): there it goes on after a while. The time from which the run must end."""
        if not self.stopped:
            return struck
        try:
            self.job.process.wait(launches.TIMEOUT + GRACE)
        except subprocess.TimeoutExpired:
            if self._others_are_done():
                for pid in self.stopped:
                    os.kill(pid, signal.SIGCONT)
                return launch.time.monotonic()
        return struck

    def _others_are_done(self):
        if self.launcher == "command":  # which says no more than what it delivers
            try:
                self._require_whole(self._lines(self._said(), whole=False))
            except Finding:
                return False
            return True
        others = set(self.processes()) - set(self.stopped)
        return all(os.path.exists(f"{self.folder}/done-{pid}") for pid in others)

    def _said(self):
        out = self.job.out.fileno()
        return os.pread(out, os.fstat(out).st_size, 0).decode(errors="replace")

    def _has_begun(self):
        """Whether something was delivered, or nothing more will be. Under torchrun each rank opens for
        itself: what one opens after the fault is the data set to it."""
        if self.launcher == "torchrun" and len(self._files()) < max(self.ranks, 1):
            return self.job.process.poll() is not None
        said = self.launcher == "command" and os.fstat(self.job.out.fileno()).st_size > 0
        return (
            said or any(map(os.path.getsize, self._files())) or self.job.process.poll() is not None
        )

    def _files(self):
        return [
            path
            for folder in (self.folder, self.small_disk)
            for path in glob.glob(f"{folder}/lines*")
        ]

    def _lines(self, text, whole):
        """What is delivered, by what is printed and by files; `whole`: nothing else may be there."""
        for path in self._files():
            with open(path, encoding="utf-8", errors="replace") as file:
                text += file.read()
        found = []
        for line in text.splitlines():
            try:
                found.append(json.loads(line))
            except ValueError:
                if whole:
                    raise Finding(f"no line of a sample: {line[:200]}") from None
        return [line for line in found if isinstance(line, dict) and "sample" in line]

    def _errors(self, result):
        """What is said, each once: of loops in Python each rank says it."""
        said = [re.sub(r"rank \d+: ", "", line) for line in result.error_lines()]
        return list(dict.fromkeys(said))

    def _judge(self, result, lines, late):
        for line in lines:
            self._require_right(line)
        errors = self._errors(result)
        if result.code == 0:
            return self._require_whole(lines)
        if not self.struck:
            raise Finding(f"failed: {result.err[-2000:]}")
        # torchrun connects no ranks: each has its own trouble.
        one_speaks = self.launcher != "torchrun"
        if (not errors and not self.fault.silent) or (one_speaks and len(errors) > 1):
            raise Finding(f"{len(errors)} errors are told: {result.err[-3000:]}")
        for error in errors:
            if not re.search(self.fault.words or "nothing may fail", error):
                raise Finding(f"the error does not name the fault: {error}")
        # Loops in Python say more where the fault meets the interpreter, and torchrun always does.
        is_judged = self.launcher == "command" and self.fault.name not in ("abort", "little memory")
        if is_judged and re.search(_CRASH, result.err):
            raise Finding(f"crashed: {result.err[-3000:]}")
        if late > launches.TIMEOUT + GRACE + (START if not self.fault.strike else 0):
            raise Finding(f"told {late:.1f} s after it")
        return None

    def _require_right(self, line):
        right = (
            self.dataset.right[line["sample"]]
            if 0 <= line["sample"] < len(self.dataset.right)
            else None
        )
        if "parts" in line:
            said = {name: (part["bytes"], part["xxh3"]) for name, part in line["parts"].items()}
        else:
            said = (line["bytes"], line["xxh3"])
        if said != right:
            raise Finding(f"wrong sample {line['sample']}: {said}, right is {right}")

    def _require_whole(self, lines):
        times = collections.Counter(line["sample"] for line in lines if not line.get("repeat"))
        wrong = {
            sample: times[sample]
            for sample in range(len(self.dataset.right))
            if times[sample] != self.epochs
        }
        if wrong:
            raise Finding(
                f"{len(wrong)} samples were not delivered {self.epochs} times: "
                f"{dict(list(wrong.items())[:5])}"
            )

    def _clean(self):
        if hasattr(self, "job") and self.job.process.poll() is None:
            self.job.kill()
        if hasattr(self, "file_system"):
            self.file_system.stop()
        subprocess.run(["umount", "-l", self.small_disk], check=False, stderr=subprocess.DEVNULL)
        if os.path.exists(self.filler):
            os.unlink(self.filler)

    def _require_nothing_left(self, before):
        left = set(launch.own_segments()) - before
        if left:
            raise Finding(f"left in /dev/shm: {sorted(left)}")
        living = [pid for pid in self.job.processes() if launch.is_alive(pid)]
        if living:
            self.job.kill()
            raise Finding(f"processes still live: {living}")
        for at, _, names in os.walk(self.folder):
            for name in names:
                if _TEMPORARY.search(name):
                    raise Finding(f"left: {os.path.join(at, name)}")
        shutil.rmtree(self.folder, ignore_errors=True)


def number_of(generator):
    return generator.randrange(1000)
