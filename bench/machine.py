"""What a reader of benchmark results must know of the machine, and the few knobs that matter."""

import contextlib
import os
import platform
import re
import subprocess


def _first_line(path, default="unknown"):
    try:
        with open(path, encoding="ascii", errors="replace") as file:
            return file.readline().strip()
    except OSError:
        return default


def _field(path, name):
    with open(path, encoding="ascii", errors="replace") as file:
        for line in file:
            if line.startswith(name):
                return line.split(":", 1)[1].strip()
    return "unknown"


def _output(*command):
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def describe(path, launcher):
    """Processor, memory, kernel, file system of `path`, MPI version."""
    versions = [" ".join(line.split()) for line in _output(launcher, "--version").splitlines()
                if any(character.isdigit() for character in line)]
    return {
        "cpu": _field("/proc/cpuinfo", "model name"),
        "cores": os.cpu_count(),
        "memory_gib": round(int(_field("/proc/meminfo", "MemTotal").split()[0]) / (1 << 20), 1),
        "kernel": re.match(r"[\d.]*\d", platform.release()).group(),
        "file_system": _output("findmnt", "-n", "-o", "FSTYPE", "-T", path),
        "mpi": f"{launcher}: {versions[0]}" if versions else "unknown",
    }


def load_average():
    return os.getloadavg()[0]


def _read_ahead_file(path):
    """Where the kernel keeps the read-ahead of the device below `path`."""
    device = os.stat(path).st_dev
    return f"/sys/class/bdi/{os.major(device)}:{os.minor(device)}/read_ahead_kb"


def read_ahead_kb(path):
    """KiB, or None where the file system has no such device."""
    text = _first_line(_read_ahead_file(path), "")
    return int(text) if text else None


@contextlib.contextmanager
def read_ahead_set_to(path, kilobytes):
    """Files opened inside the block are read ahead by `kilobytes`; restored afterwards."""
    setting = _read_ahead_file(path)
    before = _first_line(setting)
    _write(setting, str(kilobytes))
    try:
        yield
    finally:
        _write(setting, before)


def can_drop_caches():
    return os.access("/proc/sys/vm/drop_caches", os.W_OK)


def _write(path, text):
    with open(path, "w", encoding="ascii") as file:
        file.write(text)
