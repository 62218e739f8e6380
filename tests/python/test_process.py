"""How processes begin, fork and end."""

import io
import json
import os
import signal
import subprocess
import sys
import time

import forebay
import numpy as np
import pytest
from conftest import FLAVOUR, LOAD, SAVE, json_lists, no_segments, run_ranks, write_lmdb

LOOP = """
import signal, sys, time, forebay
# What a shell starts in the background ignores it, and Python then leaves it at that.
signal.signal(signal.SIGINT, signal.default_int_handler)
loader = forebay.Loader(sys.argv[1], batch_size=4, decode=False)
print("ready", flush=True)
while True:
    for batch in loader:
        time.sleep(0.01)
"""


def start(script, *arguments):
    process = subprocess.Popen(
        [sys.executable, str(script), *map(str, arguments)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout.readline() == "ready\n"
    return process


def test_importing_needs_no_torch_numpy_or_mpi():
    code = (
        "import sys, forebay\n"
        "assert not {'torch', 'mpi4py', 'tensorflow', 'numpy'} & set(sys.modules), sys.modules\n"
        "from forebay import _core\n"
        "assert _core.mpi_thread_level() == 'not initialised'"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_command_is_installed():
    done = subprocess.run(["forebay", "--version"], check=False, capture_output=True, text=True)
    assert done.returncode == 0
    assert forebay.__version__ in done.stdout


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_process(numbers, script, number):
    process = start(script(LOOP), numbers)
    time.sleep(0.2)
    process.send_signal(number)
    begin = time.monotonic()
    _, errors = process.communicate(timeout=30)
    assert time.monotonic() - begin < 5
    assert process.returncode != 0
    if number == signal.SIGINT:
        assert "KeyboardInterrupt" in errors
    assert not no_segments()


def test_ctrl_c_ends_a_wait_for_data(numbers, script):
    """Rank 1 delivers nothing for a minute, so rank 0 waits inside next()."""
    text = """
import sys, time, forebay
loader = forebay.Loader(sys.argv[1], batch_size=40, decode=False, order="strided", coalesce=1)
if loader.ranks.rank == 1:
    time.sleep(60)
import threading, _thread
threading.Timer(1.5, _thread.interrupt_main).start()
try:
    while True:
        for batch in loader:
            pass
except KeyboardInterrupt:
    print("interrupted", flush=True)
    raise
"""
    begin = time.monotonic()
    done = run_ranks(2, script(text), numbers, check=False, timeout=50)
    assert "interrupted" in done.stdout
    assert done.returncode != 0
    assert time.monotonic() - begin < 40


def test_ctrl_c_while_mpi_begins_ends_all_ranks(numbers, script):
    """Rank 0 waits in MPI_Init for rank 1 when it is interrupted."""
    text = """
import os, signal, sys, threading, time, forebay
signal.signal(signal.SIGINT, signal.default_int_handler)
if (os.environ.get("OMPI_COMM_WORLD_RANK") or os.environ["PMI_RANK"]) == "1":
    time.sleep(2)
else:
    threading.Timer(0.7, os.kill, (os.getpid(), signal.SIGINT)).start()
loader = forebay.Loader(sys.argv[1], batch_size=4, decode=False)
print("opened", flush=True)
"""
    done = run_ranks(2, script(text), numbers, check=False, timeout=30)
    assert done.returncode != 0
    assert "KeyboardInterrupt" in done.stderr
    assert "opened" not in done.stdout


def test_exit_without_closing_anything(numbers, script):
    text = """
import sys, forebay
loader = forebay.Loader(sys.argv[1], batch_size=4, decode=False)
batches = iter(loader)
kept = next(batches)
print("ready", flush=True)
"""
    process = start(script(text), numbers)
    _, errors = process.communicate(timeout=30)
    assert process.returncode == 0, errors
    assert errors == ""
    assert not no_segments()


def test_an_iterator_in_a_reference_cycle_ends(numbers, script):
    text = """
import sys, forebay
class Holder: pass
holder = Holder()
holder.loader = forebay.Loader(sys.argv[1], batch_size=4, decode=False)
holder.batches = iter(holder.loader)
holder.self = holder
next(holder.batches)
print("ready", flush=True)
"""
    process = start(script(text), numbers)
    _, errors = process.communicate(timeout=30)
    assert process.returncode == 0, errors


def refusal(call):
    try:
        call()
    except forebay.UsageError as error:
        return str(error)
    except BaseException as error:
        return repr(error)
    return "nothing"


def test_a_loader_opened_before_a_fork_is_refused_in_the_child(numbers):
    loader = forebay.Loader(numbers, batch_size=4, decode=False)
    state = loader.state_dict()
    batches = iter(loader)
    first = next(batches)["sample"].tolist()
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        said = [refusal(lambda: next(batches))]
        loader.close()  # must not wait for threads that are not there
        asked = (loader.stats, loader.explain, loader.skipped, loader.state_dict)
        said += [refusal(ask) for ask in (*asked, lambda: next(iter(loader)))]
        said.append(refusal(lambda: loader.load_state_dict(state)))
        os.write(writing, json.dumps(said).encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        said = json.loads(pipe.read())
    _, status = os.waitpid(child, 0)
    assert status == 0
    assert len(said) == 7
    assert all("forked" in each for each in said), said
    # The parent goes on.
    rest = [i for batch in batches for i in batch["sample"].tolist()]
    assert len(first) + len(rest) == 4 * len(loader)


def test_a_forked_child_opens_its_own(numbers):
    loader = forebay.Loader(numbers, batch_size=4, decode=False)
    iter(loader)
    child = os.fork()
    if child == 0:
        code = 1
        try:
            own = forebay.Loader(numbers, batch_size=4, decode=False)
            ids = sorted(i for b in own for i in b["sample"][~b["padded"]].tolist())
            code = 0 if ids == list(range(own.samples)) else 2
            own.close()
        finally:
            os._exit(code)
    assert os.waitpid(child, 0)[1] == 0


RANKS = """
import json, sys, forebay
loader = forebay.Loader(sys.argv[1], batch_size=8, decode=False, seed=4)
ranks = loader.ranks
batches = [[b["sample"].tolist() for b in loader] for _ in range(2)]
print(json.dumps([ranks.rank, ranks.size, ranks.kind, batches]))
"""


def of_ranks(output):
    return {rank: (size, kind, batches) for rank, size, kind, batches in json_lists(output)}


def test_mpirun_and_torchrun_give_the_same_batches_to_the_same_ranks(numbers, script):
    path = script(RANKS)
    by_mpi = of_ranks(run_ranks(2, path, numbers).stdout)
    told = run_ranks(2, path, numbers, launcher="torchrun")
    by_torch = of_ranks(told.stdout)
    assert {kind for _, kind, _ in by_mpi.values()} == {"mpi"}
    assert {kind for _, kind, _ in by_torch.values()} == {"network"}
    for rank in (0, 1):
        assert by_mpi[rank][2] == by_torch[rank][2]
    ids = [i for rank in (0, 1) for batch in by_mpi[rank][2][0] for i in batch]
    assert set(ids) == set(range(203))


def test_a_rank_that_fails_ends_the_job(numbers, script):
    text = """
import sys, time, forebay
loader = forebay.Loader(sys.argv[1], batch_size=4, decode=False)
for i, batch in enumerate(loader):
    if i == 3 and loader.ranks.rank == 1:
        raise RuntimeError("this rank has had enough")
    time.sleep(0.01)
while True:
    for batch in loader:
        time.sleep(0.01)
"""
    begin = time.monotonic()
    done = run_ranks(2, script(text), numbers, check=False, timeout=60)
    assert done.returncode != 0
    assert "had enough" in done.stderr
    assert time.monotonic() - begin < 30
    assert not no_segments()


def test_a_state_goes_on_on_other_ranks(numbers, script, tmp_path):
    state = tmp_path / "state.json"

    def ids(output):
        return [i for seen in json_lists(output) for i in seen]

    first = ids(run_ranks(3, script(SAVE, "save.py"), numbers, state).stdout)
    assert len(first) == 60
    rest = ids(run_ranks(2, script(LOAD, "load.py"), numbers, state).stdout)
    assert sorted(first + rest) == list(range(203))


def test_mpi4py_communicators_are_accepted(numbers, script):
    pytest.importorskip("mpi4py")
    if FLAVOUR != "openmpi":
        pytest.skip("Debian's mpi4py is built with Open MPI")
    text = """
import json, sys, forebay
from mpi4py import MPI
half = MPI.COMM_WORLD.Split(MPI.COMM_WORLD.rank % 2)
loader = forebay.Loader(sys.argv[1], batch_size=8, decode=False, ranks=half, end="exact")
ids = [i for batch in loader for i in batch["sample"].tolist()]
both = half.allgather(ids)
assert sorted(sum(both, [])) == list(range(203)), both
loader.close()
print("fine", flush=True)
"""
    assert run_ranks(4, script(text), numbers).stdout.count("fine") == 4


@pytest.mark.parametrize(
    "mistake",
    [
        "forebay.Loader(sys.argv[1], 4 if rank == 0 else -1, decode=False)",
        "loader.load_state_dict(loader.state_dict() if rank == 0 else {'bad': 1})",
        "forebay.Mix({sys.argv[1] if rank == 0 else 'none.lmdb': 1}, 4, decode=False)",
        "forebay.Mix({sys.argv[1]: 1}, 4, samples=7 - 8 * rank, decode=False)",
        "mix.load_state_dict(mix.state_dict() if rank == 0 else {'epoch': 1})",
    ],
)
def test_a_mistake_of_one_rank_is_told_to_all(numbers, script, mistake):
    text = f"""
import sys, forebay
loader = forebay.Loader(sys.argv[1], 4, decode=False)
mix = forebay.Mix({{sys.argv[1]: 1}}, 4, decode=False)
rank = loader.ranks.rank
try:
    {mistake}
except forebay.Error as error:
    sys.stdout.write(f"told of {{error.rank}}\\n")
loader.close()
mix.close()
"""
    assert run_ranks(2, script(text), numbers, timeout=60).stdout.count("told of 1") == 2


def test_an_exception_of_user_code_reaches_all_ranks(numbers, script):
    text = """
import sys, time, forebay
def decode(value):
    if loader.ranks.rank == 1 and loader.stats()["batches"] > 3:
        raise ArithmeticError("bad luck")
    return len(value)
loader = forebay.Loader(sys.argv[1], 4, decode=decode)
try:
    while True:
        for batch in loader:
            time.sleep(0.01)
except forebay.Error as error:
    print(type(error).__name__, error, flush=True)
loader.close()
"""
    out = run_ranks(2, script(text), numbers, timeout=60).stdout
    assert out.count("bad luck") == 2, out
    assert "UserCodeError" in out
    assert "CancelledError" in out


def test_memory_of_sums_is_kept_until_they_are_done(script):
    text = """
import time, forebay, numpy as np
s = forebay.Synchronizer()
if s.ranks.rank == 1:
    time.sleep(0.5)
for k in range(50):
    s.allreduce(f"t{k}", np.full(100000, 7, "f4"), reduction="sum")
junk = [np.zeros(100000, "f4") for _ in range(50)]
s.barrier()
print("fine", flush=True)
"""
    assert run_ranks(2, script(text), timeout=60).stdout.count("fine") == 2


def test_a_rank_that_exits_does_not_leave_the_others_summing(script):
    text = """
import sys, forebay, numpy as np
s = forebay.Synchronizer()
s.allreduce("x", np.ones(10, "f4")).wait()
if s.ranks.rank == 0:
    sys.exit(1)
s.allreduce("y", np.ones(10, "f4")).wait()
"""
    done = run_ranks(2, script(text), timeout=60, check=False)
    assert done.returncode != 0


LEAVING = """
import os, signal, sys, time, forebay, numpy as np
how, what, data, mark = sys.argv[1:]
signal.signal(signal.SIGINT, signal.default_int_handler)
sums = what in ("sums", "both", "closed")
open_ = {"data": "strided", "both": "strided", "memory": "in_memory"}.get(what)
s = forebay.Synchronizer() if sums else None
more = {"memory_ratio": 1.0} if what == "memory" else {}
l = forebay.Loader(data, 4, decode=False, order=open_, **more) if open_ else None
x = np.ones(1000, "f4")
ranks = (s or l).ranks
if what == "closed":
    s.close()
def leave():
    with open(mark, "w") as file:
        file.write(repr(time.time()))
    if how == "sys.exit":
        sys.exit(3)
    if how == "SystemExit":
        raise SystemExit(3)
    if how == "os._exit":
        os._exit(3)
    if how == "raise":
        raise RuntimeError("had enough")
    if how == "done":
        sys.exit(0)
    os.kill(os.getpid(), getattr(signal, how))
    time.sleep(60)
step = 0
while True:
    for batch in l or range(100):
        if step == 5 and ranks.rank == 1:
            leave()
        if s and what != "closed":
            s.allreduce("x", x).wait()
        time.sleep(0.01)
        step += 1
"""


def leave_early(script, numbers, tmp_path, how, what):
    """The job, and the seconds from when one rank of three left to the job's end."""
    mark = tmp_path / "mark"
    done = run_ranks(3, script(LEAVING), how, what, numbers, mark, check=False, timeout=60)
    return done, time.time() - float(mark.read_text())


@pytest.mark.parametrize("what", ["sums", "data", "both", "memory", "closed"])
@pytest.mark.parametrize("how", ["sys.exit", "SystemExit", "raise"])
def test_a_rank_that_leaves_ends_the_job_with_its_own_code(numbers, script, tmp_path, how, what):
    done, seconds = leave_early(script, numbers, tmp_path, how, what)
    assert seconds < 5, done.stderr  # 2 at most on a machine that does nothing else
    assert done.returncode == (1 if how == "raise" else 3), done.stderr
    assert "Exception ignored" not in done.stderr
    assert done.stderr.count("Traceback") == (1 if how == "raise" else 0), done.stderr
    told = [line for line in done.stderr.splitlines() if "forebay" in line and "Error" in line]
    assert len(told) <= 2, done.stderr
    assert all("rank 1: " in line for line in told), told
    assert not no_segments()


@pytest.mark.parametrize("how", ["os._exit", "SIGTERM", "SIGINT", "SIGKILL", "SIGSEGV"])
def test_a_rank_that_dies_ends_the_job(numbers, script, tmp_path, how):
    done, seconds = leave_early(script, numbers, tmp_path, how, "both")
    assert seconds < 6, done.stderr
    assert done.returncode != 0
    assert "Exception ignored" not in done.stderr
    assert "atexit" not in done.stderr
    assert done.stderr.count("Traceback") == (1 if how == "SIGINT" else 0), done.stderr
    assert not no_segments()


def test_a_rank_that_is_done_while_others_sum_is_named(numbers, script, tmp_path):
    done, seconds = leave_early(script, numbers, tmp_path, "done", "sums")
    assert seconds < 5, done.stderr
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert 1 <= done.stderr.count("rank 1: this rank has closed") <= 3, done.stderr


def test_a_rank_that_is_done_waits_for_one_that_works_on(script):
    text = """
import time, forebay, numpy as np
s = forebay.Synchronizer()
s.allreduce("x", np.ones(10, "f4")).wait()
if s.ranks.rank == 0:
    time.sleep(4)  # as one that writes what was trained
print("fine", flush=True)
"""
    assert run_ranks(2, script(text), timeout=60).stdout.count("fine") == 2


def test_a_failure_that_was_handled_is_not_told_again(script):
    text = """
import sys, forebay, numpy as np
s = forebay.Synchronizer()
try:
    if s.ranks.rank == 0:
        s.close()
    s.allreduce("x", np.ones(10, "f4")).wait()
except forebay.Error as error:
    sys.stdout.write(f"told of {error.rank}\\n")
"""
    done = run_ranks(2, script(text), timeout=60)
    assert done.stdout.count("told of 0") == 2, done.stdout
    assert done.stderr == ""


def test_several_synchronizers_and_loaders_end_with_the_process(numbers, script):
    text = """
import sys, forebay
s = [forebay.Synchronizer() for _ in range(3)]
l = [forebay.Loader(sys.argv[1], 4, decode=False) for _ in range(3)]
print("fine", flush=True)
"""
    assert run_ranks(2, script(text), numbers, timeout=60).stdout.count("fine") == 2


def test_daemon_threads_do_not_crash_the_end_of_a_process(numbers, script):
    text = """
import queue, sys, threading, forebay
loader = forebay.Loader(sys.argv[1], 4, decode=False)
ds = forebay.Dataset(sys.argv[1], decode=False)
q = queue.Queue(4)
def consume():
    while True:
        for batch in loader:
            q.put(batch)
def look_up():
    while True:
        ds[3]
for target in (consume, look_up, look_up, look_up):  # several wait for Python's lock at the end
    threading.Thread(target=target, daemon=True).start()
q.get()
raise SystemExit(5)
"""
    program = script(text)
    for _ in range(5):
        done = subprocess.run(
            [sys.executable, str(program), numbers],
            check=False, capture_output=True, text=True, timeout=60,
        )  # fmt: skip
        assert done.returncode == 5, done.stderr


OPENS_AND_CLOSES = """
import gc, os, sys
import forebay

def held():
    gc.collect()
    with open("/proc/self/statm") as file:
        resident = int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return [resident, len(os.listdir("/proc/self/fd")), len(os.listdir("/proc/self/task"))]

for number in range(60):
    if number == 20:
        before = held()
    with forebay.Loader(sys.argv[1], batch_size=16, decode_threads=8) as loader:
        batches = iter(loader)
        for _ in range(3):
            next(batches)
    data = forebay.Dataset(sys.argv[1])
    data[number]
    del data
after = held()
print(after[0] - before[0], *before[1:], *after[1:])
"""


def test_what_was_opened_and_closed_leaves_no_memory_files_or_threads(tmp_path, script):
    """It left 0.8 MB each time: of batches, in an arena of the heap for each thread."""
    pillow = pytest.importorskip("PIL.Image")
    rng = np.random.default_rng(1)
    records = []
    for i in range(64):
        file = io.BytesIO()
        pillow.fromarray(rng.integers(0, 256, (128, 128, 3), np.uint8)).save(file, "JPEG")
        records.append((b"%06d" % i, file.getvalue()))
    path = write_lmdb(tmp_path / "jpeg.lmdb", records)
    program = [sys.executable, str(script(OPENS_AND_CLOSES)), path]
    done = subprocess.run(program, check=False, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    grown, files, threads, files_then, threads_then = map(int, done.stdout.split())
    assert (files_then, threads_then) == (files, threads)
    assert grown < 8 << 20
