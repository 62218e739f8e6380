#!/usr/bin/python3
"""Virtual nodes on one machine: brings them up, runs an MPI command on them, takes them down.

  bench/pfs/nodes.py --nodes 16 --backing DIR --servers 4 --stripe 1MiB --bandwidth 50MB/s
      --latency 1ms --seek-penalty 2ms --stats stats.json --
      build/release/src/forebay bench read {mount}/cifar10-large --batch 640 --iterations 100

Every node n0, n1, ... has a host name, so that MPI itself sees separate nodes; a mount of the
modelled parallel file system (forebay-pfs, see docs/pfs.md) over DIR and with it a page cache of
its own; its own /dev/shm and TMPDIR; and with --node-memory a control group that caps its memory,
page cache included. `{mount}` in the command is where a node sees its mount: one path, the same on all.
Needs root. The exit status is the launcher's; 124 after --timeout, 143 after SIGTERM.

As a module, for benchmarks that start many runs on the same nodes:

  with nodes.Nodes(backing, count=16, pfs_options=["--servers", "4"], mpi="mpich") as cluster:
      cluster.drop_caches()                      # cold: all mounts, and the backing directory
      cluster.reset()                            # statistics count from here
      done = cluster.run(["program", "{mount}/data"], ranks_per_node=2, timeout=60)
      print(done.returncode, done.stdout, cluster.stats()["void"])

Nothing stays behind after the block, whatever happened in it: a command runs in a process namespace
that ends with it, processes that left their parents included. After a SIGKILL of this program the
processes and mounts still go, and only an empty working directory (forebay-nodes-* in TMPDIR) and
control groups stay. A module's user turns SIGTERM into an exception (end_by_exception()).
"""

import argparse
import contextlib
import ctypes
import json
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

_HERE = os.path.dirname(os.path.abspath(__file__))
_AGENT = os.path.join(_HERE, "node_agent.sh")
_DEFAULT_PFS = os.path.join(_HERE, "../../build/release/bench/pfs/forebay-pfs")
_PR_SET_PDEATHSIG = 1
_TIMEOUT_STATUS = 124
_GRACE = 10  # seconds for what should end at once


class NodesError(RuntimeError):
    """The nodes cannot be brought up; the message says what to do."""


def die_with_parent(number):
    """For preexec_fn: the child gets signal `number` when the thread that started it is gone."""
    libc = ctypes.CDLL(None)

    def arrange():
        libc.prctl(_PR_SET_PDEATHSIG, number, 0, 0, 0)
    return arrange


class MemoryGroups:
    """One memory control group a node, below the group of this process; version 1 or 2."""

    def __init__(self, hosts, limit):
        """`limit`: bytes for each node, as a number or as text like "512M"."""
        parent, limit_file = self._find()
        self.base = os.path.join(parent, f"forebay-nodes-{os.getpid()}")
        self._paths = [os.path.join(self.base, host) for host in hosts]
        try:
            os.mkdir(self.base)
            if limit_file == "memory.max":
                _write(os.path.join(self.base, "cgroup.subtree_control"), "+memory")
            for path in self._paths:
                os.mkdir(path)
                _write(os.path.join(path, limit_file), str(limit))
        except OSError as error:
            self.remove()
            raise NodesError(f"no memory control group can be made: {error}; "
                             "leave the limit of a node's memory out") from None

    @staticmethod
    def _find():
        """(directory of this process's group, name of the file with the limit)"""
        own = {}
        for line in _read("/proc/self/cgroup").splitlines():
            _, controllers, path = line.split(":", 2)
            own.update({name: path for name in controllers.split(",")})
        for line in _read("/proc/self/mounts").splitlines():
            _, point, kind, options = line.split()[:4]
            version_1 = kind == "cgroup" and "memory" in options.split(",")
            path = point + own.get("memory" if version_1 else "", "")
            path = path if os.path.isdir(path) else point
            if version_1:
                return path, "memory.limit_in_bytes"
            if kind == "cgroup2" and "memory" in _read(f"{path}/cgroup.controllers").split():
                return path, "memory.max"
        raise NodesError("this machine has no memory control groups; "
                         "leave the limit of a node's memory out")

    def remove(self):
        """Processes that ended a moment ago may still be counted: tries for a while."""
        for path in [*self._paths, self.base]:
            end = time.monotonic() + _GRACE
            while os.path.isdir(path):
                try:
                    os.rmdir(path)
                except OSError:
                    if time.monotonic() > end:
                        raise
                    time.sleep(0.02)


def _read(path):
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()


def _write(path, text):
    with open(path, "w", encoding="ascii") as file:
        file.write(text)


class FileSystem:
    """A running forebay-pfs."""

    def __init__(self, program, backing, mounts, work, options=()):
        """Serves `backing` at `mounts`; keeps its socket and its log in directory `work`."""
        self._control, self._mounts = os.path.join(work, "control"), mounts
        log = os.path.join(work, "forebay-pfs.log")
        try:
            with open(log, "w", encoding="utf-8") as errors:
                # A session of its own: Ctrl-C reaches us, and we end it when nobody needs it.
                self.process = subprocess.Popen(
                    [program, backing, *mounts, "--control", self._control, *options],
                    stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors, text=True,
                    start_new_session=True, preexec_fn=die_with_parent(signal.SIGTERM))
        except OSError as error:
            raise NodesError(f"{error}; build the target forebay-pfs, or set FOREBAY_PFS") from None
        try:
            if not self._is_ready():
                raise NodesError(f"the modelled file system did not start: {_read(log).strip()}")
        except BaseException:
            self.stop()
            raise

    def _is_ready(self):
        said_something, _, _ = select.select([self.process.stdout], [], [], _GRACE)
        return bool(said_something) and "ready" in self.process.stdout.readline()

    def command(self, line):
        """The answer to one line of its control socket: `stats`, `reset`, or a fault (--help)."""
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(_GRACE)
            connection.connect(self._control)
            connection.sendall(line.encode() + b"\n")
            with connection.makefile(encoding="utf-8") as answers:
                answer = json.loads(answers.read())
        if "error" in answer:
            raise NodesError(answer["error"])
        return answer

    def stop(self):
        """Wakes readers that wait, with an error, and unmounts."""
        self.process.terminate()
        try:
            self.process.wait(_GRACE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()
        for mount in self._mounts:  # what a killed one left
            if os.path.ismount(mount) or not os.access(mount, os.F_OK):
                subprocess.run(["umount", "--lazy", mount], stderr=subprocess.DEVNULL, check=False)


def launcher(mpi, hosts, ranks_per_node, *, agent=_AGENT, own="lo", network="lo"):
    """(words before the command, environment) of an MPI start on `hosts` through `agent`.

    own      interface over which the nodes reach the launcher
    network  interface, or addresses as in 10.77.0.0/16, between Open MPI's processes
    """
    places = ",".join(f"{host}:{ranks_per_node}" for host in hosts)
    program = shutil.which(f"mpirun.{mpi}") or "mpirun"
    ranks = str(len(hosts) * ranks_per_node)
    if mpi == "mpich":
        return ([program, "-launcher", "rsh", "-launcher-exec", agent, "-iface", own, "-hosts",
                 places, "-n", ranks], {"MPIR_CVAR_POLLS_BEFORE_YIELD": "1"})
    # No tree: a node must not be started from inside another one.
    settings = {"plm_rsh_agent": agent, "plm_rsh_no_tree_spawn": "1",
                "oob_tcp_if_include": network, "btl_tcp_if_include": network,
                "mpi_yield_when_idle": "1"}
    words = [word for setting in settings.items() for word in ("--mca", *setting)]
    # mpirun fails where a node has ended before it is told of the end of the standard input.
    words += ["--stdin", "none"]
    # It asks for the addresses of the nodes, which no name server has: one that does not answer
    # would take ten seconds of every start.
    return ([program, *words, "--bind-to", "none", "--host", places, "-n", ranks],
            {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
             "RES_OPTIONS": "timeout:1 attempts:1"})


class Nodes:
    """Nodes that are up inside a `with` block. Not thread-safe; one command at a time.

    backing       directory that all nodes see
    count         number of nodes
    mpi           "openmpi" or "mpich": whose launcher starts commands
    node_memory   limit of each node's control group, bytes or text like "512M"; None: no group
    pfs_options   words for forebay-pfs, such as ["--servers", "4", "--read-ahead-kb", "1024"]
    pfs           the program forebay-pfs; default: $FOREBAY_PFS, or the release build's

    Attributes: hosts, names of the nodes; path, where each node sees its mount; mounts, the same
    mounts as seen from outside, in the order of the hosts (reading there fills that node's cache,
    outside of its control group).
    """

    def __init__(self, backing, count=2, *, mpi="openmpi", node_memory=None, pfs_options=(),
                 pfs=None):
        self.hosts = [f"n{i}" for i in range(count)]
        self.mpi = mpi
        self._backing = os.path.abspath(backing)
        self._node_memory = node_memory
        self._pfs_options = pfs_options
        self._pfs = pfs or os.environ.get("FOREBAY_PFS", _DEFAULT_PFS)
        self._cleanup = contextlib.ExitStack()
        self._file_system = self._groups = self._job = None
        self._first_process = None  # of the namespace of a job that was killed

    def __enter__(self):
        if not self.hosts:
            raise NodesError("at least one node is needed")
        if os.geteuid() != 0 or not os.path.exists("/dev/fuse"):
            raise NodesError("virtual nodes need root and /dev/fuse")
        with contextlib.ExitStack() as stack:
            work = tempfile.mkdtemp(prefix="forebay-nodes-")
            stack.callback(shutil.rmtree, work, ignore_errors=True)
            self._bring_up(work, stack)
            self._cleanup = stack.pop_all()
        return self

    def __exit__(self, *_):
        self._cleanup.close()

    def _bring_up(self, work, stack):
        self._work = work
        self.path = os.path.join(work, "data")
        self.mounts = [os.path.join(work, "mounts", host) for host in self.hosts]
        temporary = [os.path.join(work, "temporary", host) for host in self.hosts]
        for directory in [self.path, os.path.join(work, "tmp"), *self.mounts, *temporary]:
            os.makedirs(directory)
        if self._node_memory is not None:
            self._groups = MemoryGroups(self.hosts, self._node_memory)
            stack.callback(self._groups.remove)
        stack.callback(self._wait_for_job)  # after the file system has woken whoever waits for it
        self._file_system = FileSystem(self._pfs, self._backing, self.mounts, work,
                                       self._pfs_options)
        stack.callback(self._file_system.stop)
        stack.callback(self._kill_job)

    def run(self, command, *, ranks_per_node=1, timeout=None, env=None, capture=True,
            launcher_options=()):
        """Runs `command` (words, `{mount}` replaced) on all nodes; collects its output as text.

        env               variables in addition to this process's
        capture           False: output goes where this process's goes
        launcher_options  more words for mpirun
        Raises subprocess.TimeoutExpired after `timeout` seconds; nothing of the command is left.
        """
        words, variables = launcher(self.mpi, self.hosts, ranks_per_node)
        words += [*launcher_options, *(str(word).replace("{mount}", self.path) for word in command)]
        # The shell is process 1 of the namespace: it reaps what was left, and with it all end.
        namespace = ["unshare", "--pid", "--fork", "--kill-child=KILL", "--mount-proc", "--",
                     "bash", "-c", '"$@"; exit $?', "nodes"]
        pipe = subprocess.PIPE if capture else None
        self._job = subprocess.Popen(
            [*namespace, *words], env={**os.environ, **variables, **self._variables(),
                                       **{name: str(value) for name, value in (env or {}).items()}},
            stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe, text=True, start_new_session=True,
            preexec_fn=die_with_parent(signal.SIGKILL))
        try:
            out, err = self._job.communicate(timeout=timeout)
        except BaseException:
            self._kill_job()
            raise
        return subprocess.CompletedProcess(words, self._job.returncode, out, err)

    def _variables(self):
        return {"FOREBAY_NODES": self._work, "TMPDIR": os.path.join(self._work, "tmp"),
                "FOREBAY_NODES_GROUPS": self._groups.base if self._groups else ""}

    def _kill_job(self):
        """Kills process 1 of the namespace, so all in it; waits for them, but not for a stall."""
        job = self._job
        if job is None or job.poll() is not None:
            return
        children = _read(f"/proc/{job.pid}/task/{job.pid}/children").split()
        with contextlib.suppress(ProcessLookupError):
            self._first_process = os.pidfd_open(int(children[0])) if children else None
        job.kill()  # it takes process 1 along (--kill-child)
        self._wait_for_job(1)

    def _wait_for_job(self, timeout=_GRACE):
        """Returns when no process of the last command is left, or after `timeout` seconds."""
        if self._first_process is not None:
            ended, _, _ = select.select([self._first_process], [], [], timeout)
            if ended:
                os.close(self._first_process)
                self._first_process = None
        if self._job is not None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._job.communicate(timeout=timeout)

    def stats(self):
        """What was asked since reset(), and what the daemon cost; fields in bench/pfs/meter.hpp."""
        return self._file_system.command("stats")

    def reset(self):
        """Statistics count from here. Call it while nothing runs."""
        self._file_system.command("reset")

    def fault(self, line):
        """Switches a fault on or off: "fail FILE OFFSET", "stall FILE OFFSET 5s", "clear", ..."""
        self._file_system.command(line)

    @staticmethod
    def drop_caches():
        """Empties the page caches of all nodes, and of everything else on this machine."""
        os.sync()
        _write("/proc/sys/vm/drop_caches", "3")


def end_by_exception(number=signal.SIGTERM):
    """From now on signal `number` ends the program as SystemExit, so that with blocks clean up."""
    def end(received, _frame):
        signal.signal(received, signal.SIG_IGN)  # a second one would interrupt the cleaning
        sys.exit(128 + received)
    signal.signal(number, end)


def argument_parser(description):
    """With what every program has that runs a command on nodes."""
    parser = argparse.ArgumentParser(description=description,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=2)
    parser.add_argument("--ranks-per-node", type=int, default=1)
    parser.add_argument("--mpi", default="openmpi", choices=("openmpi", "mpich"))
    parser.add_argument("--timeout", type=float, help="seconds after which all is killed")
    return parser


def parse_arguments():
    parser = argument_parser(__doc__)
    parser.add_argument("--backing", required=True, help="directory that all nodes see")
    parser.add_argument("--node-memory", help="limit of a node's memory, page cache included: 512M")
    parser.add_argument("--stats", help="file for the statistics of the run, JSON")
    parser.add_argument("--pfs", help="the program forebay-pfs")
    model = parser.add_argument_group("modelled file system (see forebay-pfs --help)")
    for name in _PFS_VALUES:
        model.add_argument(f"--{name}", action="append")
    for name in _PFS_FLAGS:
        model.add_argument(f"--{name}", action="store_true")
    parser.add_argument("command", nargs="+", help="after --; {mount} is a node's mount")
    return parser.parse_args()


_PFS_VALUES = ("servers", "stripe", "bandwidth", "latency", "seek-penalty", "server-read-ahead",
               "server-streams", "read-ahead-kb", "attr-timeout", "fail-at", "stall-at")
_PFS_FLAGS = ("direct-io", "short-reads", "force")


def pfs_options(arguments):
    """The words of forebay-pfs among parsed `arguments`."""
    given = {name: getattr(arguments, name.replace("-", "_"))
             for name in (*_PFS_VALUES, *_PFS_FLAGS)}
    return [*(word for name in _PFS_VALUES for value in given[name] or ()
              for word in (f"--{name}", value)),
            *(f"--{name}" for name in _PFS_FLAGS if given[name])]


def main():
    arguments = parse_arguments()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        end_by_exception(number)
    try:
        with Nodes(arguments.backing, arguments.nodes, mpi=arguments.mpi,
                   node_memory=arguments.node_memory, pfs_options=pfs_options(arguments),
                   pfs=arguments.pfs) as cluster:
            done = cluster.run(arguments.command, ranks_per_node=arguments.ranks_per_node,
                               timeout=arguments.timeout, capture=False)
            report(cluster.stats(), arguments.stats)
    except NodesError as error:
        sys.exit(f"nodes.py: {error}")
    except subprocess.TimeoutExpired:
        print(f"nodes.py: killed after {arguments.timeout:g} s", file=sys.stderr)
        sys.exit(_TIMEOUT_STATUS)
    sys.exit(done.returncode)


def report(stats, path):
    if path:
        _write(path, json.dumps(stats, indent=2) + "\n")
    if stats["void"]:
        print(f"nodes.py: void: the file system used {stats['cpu_share']:.0%} of the machine's "
              "processors, so it limited the run instead of its model", file=sys.stderr)


if __name__ == "__main__":
    main()
