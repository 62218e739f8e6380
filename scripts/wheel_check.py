#!/usr/bin/python3
"""Installs a wheel into an empty environment and does what the quick start does, with nothing but it.

  scripts/wheel_check.py dist/forebay-*.whl [--json FILE]

Run by the interpreter that the wheel is for. All that the process maps has to come from the wheel, from
NumPy, Python, or the C library: what a system without any package of ours has.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

# Of glibc, and of the compiler's own runtime where a system has none it is in the wheel.
SYSTEM = ("ld-linux", "libc.so", "libm.so", "libdl.so", "libpthread.so", "librt.so", "libutil.so",
          "libpython", "libnss", "libresolv", "libgcc_s.so", "libstdc++.so", "libz.so", "libexpat",
          "libffi", "libcrypto", "libssl", "libbz2", "liblzma", "libuuid", "libsqlite3")

QUICK_START = """
import json, os, sys, time
begun = time.perf_counter()
import forebay
imported = time.perf_counter() - begun
import numpy as np

np.save("numbers.npy", np.arange(100000, dtype=np.int64).reshape(10000, 10))

def first_batch():
    begun = time.perf_counter()
    loader = forebay.Loader("numbers.npy", batch_size=64)
    batch = next(iter(loader))
    seconds = time.perf_counter() - begun
    (name,) = [each for each in batch if each not in ("sample", "padded")]
    assert (batch[name][:, 0] == batch["sample"] * 10).all()
    loader.close()
    return seconds

first = first_batch()
times = sorted(first_batch() for _ in range(9))
with forebay.Loader("numbers.npy", batch_size=64, end="exact") as loader:
    assert sum(len(batch["sample"]) for batch in loader) == 10000
mapped = {line.split()[-1] for line in open("/proc/self/maps") if ".so" in line}
print(json.dumps({"import_seconds": imported, "first_batch_seconds": times[4],
                  "very_first_batch_seconds": first, "mapped": sorted(mapped),
                  "package": os.path.dirname(forebay.__file__), "version": forebay.__version__}))
"""

IMPORT = "import time; t = time.perf_counter(); import forebay; print(time.perf_counter() - t)"


def run(words, **options):
    done = subprocess.run(words, check=False, capture_output=True, text=True, **options)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, words))}: {done.stdout}{done.stderr}")
    return done.stdout


def bare_environment():
    """Nothing that leads to a build, or to packages of the system."""
    return {"PATH": "/usr/bin:/bin", "HOME": os.environ.get("HOME", "/"), "LC_ALL": "C.UTF-8"}


def check(wheel, folder):
    python = os.path.join(folder, "venv", "bin", "python")
    run([sys.executable, "-m", "venv", os.path.join(folder, "venv")])
    run([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "numpy"])
    begun = time.monotonic()
    run([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check",
         os.path.abspath(wheel)])
    installed = time.monotonic() - begun
    where = {"cwd": folder, "env": bare_environment()}
    figures = json.loads(run([python, "-c", QUICK_START], **where))
    imports = sorted(float(run([python, "-c", IMPORT], **where)) for _ in range(9))
    site = os.path.join(folder, "venv")
    strangers = [path for path in figures.pop("mapped") if not path.startswith(site)
                 and "/lib-dynload/" not in path
                 and not os.path.basename(path).startswith(SYSTEM)]
    if strangers:
        sys.exit(f"{wheel} needs of the system: {', '.join(strangers)}")
    command = run([os.path.join(folder, "venv", "bin", "forebay"), "--version"], **where)
    if figures["version"] not in command:
        sys.exit(f"the command of {wheel} says: {command}")
    return {"wheel": os.path.basename(wheel), "python": sys.version.split()[0],
            "install_seconds": installed, "import_seconds": imports[4],
            "first_batch_seconds": figures["first_batch_seconds"],
            "very_first_batch_seconds": figures["very_first_batch_seconds"],
            "bytes": os.path.getsize(wheel)}


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("wheel")
    parser.add_argument("--json", help="file for the figures")
    arguments = parser.parse_args()
    folder = tempfile.mkdtemp(prefix="forebay-wheel-")
    try:
        figures = check(arguments.wheel, folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print("installed in {install_seconds:.1f} s, imported in {import_seconds:.3f} s, first batch "
          "after {first_batch_seconds:.3f} s (the very first {very_first_batch_seconds:.3f} s)"
          .format(**figures))
    if arguments.json:
        with open(arguments.json, "w", encoding="utf-8") as file:
            json.dump(figures, file, indent=1)


if __name__ == "__main__":
    main()
