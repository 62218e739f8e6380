"""How the processes of a job meet that no MPI connects, and the connection that they then share.

They need a place where each can leave a few bytes for the others. In this order:

1. ``FOREBAY_RENDEZVOUS``: ``tcp://HOST:PORT``, where rank 0 is to listen, or ``file:FOLDER``.
2. The store of an initialized ``torch.distributed``.
3. ``MASTER_ADDR`` and ``MASTER_PORT``: torch's store there, where there is torch; else rank 0
   listens there itself.
4. All on one node: a folder in its memory, named by the job or the process that has started it.
5. Slurm: a port of the first node of the step, by the number of the job.
"""

from __future__ import annotations

import fcntl
import importlib.util
import os
import re
import shutil
import socket
import stat
import struct
import tempfile
import time
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any, Optional

from . import _core
from ._errors import usage
from ._launch import Place, torch_processes

_PATIENCE = 300.0  # seconds for all processes to come; imports may take minutes on a cluster
_FIRST_SLURM_PORT, _SLURM_PORTS = 20000, 12000
_SIOCGIFADDR = 0x8915


class TorchStore:
    """A store of torch, as _core.store_rendezvous() uses it.

    Never waited on: after a wait in vain a TCPStore of torch 1.13 reads its server's late answer as
    that to the next question. A counter beside each value tells that it is there. Old versions take
    text alone, so bytes are written in hexadecimal.
    """

    _LONGEST_REST = 0.05

    def __init__(self, store: Any, prefix: str) -> None:
        self._store = store
        self._prefix = prefix

    def set(self, key: str, value: bytes) -> None:
        """Leaves ``value`` under ``key``."""
        self._store.set(f"{self._prefix}/{key}", value.hex())
        self._store.add(f"{self._prefix}/{key}/there", 1)

    def get(self, key: str, seconds: float) -> Optional[bytes]:
        """None where it does not come in time."""
        end = time.monotonic() + seconds
        rest = 0.001
        while self._store.add(f"{self._prefix}/{key}/there", 0) == 0:
            if time.monotonic() >= end:
                return None
            time.sleep(rest)
            rest = min(rest * 2, self._LONGEST_REST)
        return bytes.fromhex(self._store.get(f"{self._prefix}/{key}").decode())


class _World:
    """What this process is connected by, once, as long as it lives or until its place changes."""

    def __init__(self) -> None:
        self.pid = 0
        self.place: Optional[tuple[Any, ...]] = None
        self.comm: Any = None
        self.meetings = 0  # in all processes alike


_world = _World()


def connect(place: Place) -> Any:
    """The communicator of all processes of the job. Collective, the first time."""
    group = torch_processes()
    key = (place.rank, place.size, id(group and group.group.WORLD))
    if _world.pid != os.getpid():
        _world.comm, _world.pid = None, os.getpid()
    if _world.comm is None or _world.place != key:
        rendezvous, folder = _find_rendezvous(place)
        try:
            _world.comm = _core.connect_ranks(
                rendezvous, place.rank, place.size, _job(), _listen_on(place), _PATIENCE
            )
        finally:
            _world.meetings += 1
            if folder and place.rank == 0:
                shutil.rmtree(folder, ignore_errors=True)
        _world.place = key
    return _world.comm


def connection() -> Any:
    """What this process is connected by; None where it is not."""
    return _world.comm if _world.pid == os.getpid() else None


def forget() -> None:
    """At the end of the process: the connection ends with whoever holds it."""
    _world.comm = None


def _find_rendezvous(place: Place) -> tuple[Any, Optional[Path]]:
    """And a folder that goes with it."""
    found = _as_told(place) or _by_group() or _by_master(place)
    folder = None if found else _folder_of_node(place)
    if folder is not None:
        return _core.file_rendezvous(str(folder)), folder
    found = found or _by_slurm(place)
    if found is None:
        raise usage(
            f"{place.size} processes, told by {place.told_by}, have no place to meet",
            "call torch.distributed.init_process_group before, set MASTER_ADDR and MASTER_PORT or "
            "FOREBAY_RENDEZVOUS=tcp://HOST:PORT; ranks='env' lets each process read for itself",
        )
    return found, None


def _job() -> str:
    """So that processes of two jobs never talk to each other; the same on all of one.

    A store of torchrun stays when it starts processes again.
    """
    names = ("TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT", "SLURM_JOB_ID", "SLURM_STEP_ID")
    return "/".join([*(os.environ.get(name, "") for name in names), str(_world.meetings)])


def _as_told(place: Place) -> Any:
    told = os.environ.get("FOREBAY_RENDEZVOUS", "")
    if not told:
        return None
    if told.startswith("file:"):
        return _core.file_rendezvous(told[len("file:") :])
    found = re.fullmatch(r"tcp://(.+):(\d+)", told)
    if found is None:
        raise usage(f"FOREBAY_RENDEZVOUS is {told!r}", "write tcp://HOST:PORT, or file:FOLDER")
    return _listening(found[1].strip("[]"), int(found[2]), place)


def _listening(host: str, port: int, place: Place) -> Any:
    """Rank 0 keeps what is left there."""
    if place.rank == 0:
        return _core.serve_rendezvous(host, port)
    return _core.join_rendezvous(host, port)


def _by_group() -> Any:
    group = torch_processes()
    if group is None:
        return None
    # Of no documented name, and of this one since torch 1.7.
    store = group.distributed_c10d._get_default_store()
    return _of_torch(store, os.environ.get("MASTER_ADDR", ""))


def _of_torch(store: Any, host: str) -> Any:
    return _core.store_rendezvous(TorchStore(store, f"forebay/{_job()}"), host)


def _by_master(place: Place) -> Any:
    host, port = os.environ.get("MASTER_ADDR", ""), os.environ.get("MASTER_PORT", "")
    if not host or not port.isdigit():
        return None
    if importlib.util.find_spec("torch") is None:
        return _listening(host, int(port), place)
    from torch import distributed

    # As torch itself does it: with an agent's store there is a server already. Else rank 0 serves,
    # and init_process_group, where it comes later, shares that server.
    served = os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True"
    store: Any = distributed.TCPStore(  # type: ignore[attr-defined]
        host,
        int(port),
        place.size,
        not served and place.rank == 0,
        timedelta(seconds=_PATIENCE),
        multi_tenant=True,
        wait_for_workers=False,
    )
    return _of_torch(store, host)


def _folder_of_node(place: Place) -> Optional[Path]:
    if place.on_node != place.size:
        return None
    job, step = os.environ.get("SLURM_JOB_ID"), os.environ.get("SLURM_STEP_ID", "0")
    name = f"slurm-{job}-{step}" if job else f"of-{os.getppid()}-{_began(os.getppid())}"
    memory = Path("/dev/shm")
    of_node = memory if memory.is_dir() else Path(tempfile.gettempdir())
    return _own_folder(of_node / f"forebay-{os.getuid()}-{name}-{_world.meetings}")


def _own_folder(path: Path) -> Path:
    """In a folder of everybody's: what is left in it lets its readers into the job."""
    with suppress(FileExistsError):
        path.mkdir(mode=0o700)
    found = path.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o077:
        raise usage(
            f"{path} is not a folder of this user alone",
            "remove it, or set FOREBAY_RENDEZVOUS=file:FOLDER",
        )
    return path


def _began(pid: int) -> str:
    """When a process began, which tells it from a later one of the same number."""
    with suppress(OSError, IndexError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    return "0"


def _by_slurm(place: Place) -> Any:
    nodes, job = os.environ.get("SLURM_STEP_NODELIST"), os.environ.get("SLURM_JOB_ID", "")
    if not nodes or not job.isdigit():
        return None
    step = os.environ.get("SLURM_STEP_ID", "0")
    number = int(job) * 7 + (int(step) if step.isdigit() else 0)
    return _listening(first_node(nodes), _FIRST_SLURM_PORT + number % _SLURM_PORTS, place)


def first_node(nodes: str) -> str:
    """Of Slurm's short form: ``gpu[07-09,11],login`` begins with ``gpu07``."""
    found = re.match(r"([^\[,]+)(?:\[([^\],-]+))?", nodes)
    return f"{found[1]}{found[2] or ''}" if found else nodes


def _listen_on(place: Place) -> str:
    """The address of one interface; empty where the way to the rendezvous tells it."""
    name = os.environ.get("FOREBAY_INTERFACE") or os.environ.get("GLOO_SOCKET_IFNAME", "")
    if not name:
        return "127.0.0.1" if place.on_node == place.size else ""
    name = name.split(",")[0]
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            asked = struct.pack("256s", name.encode()[:15])
            return socket.inet_ntoa(fcntl.ioctl(probe, _SIOCGIFADDR, asked)[20:24])
    except OSError as error:
        raise usage(
            f"interface {name} has no address: {error.strerror}",
            "set FOREBAY_INTERFACE to one of `ip address`, or to nothing",
        ) from None
