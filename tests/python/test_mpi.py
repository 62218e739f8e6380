"""Which MPI a process loads, and that it loads none unless ranks are wanted."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import forebay._core
import pytest
from conftest import FLAVOUR, run_ranks

OTHER = {"openmpi": "mpich", "mpich": "openmpi"}[FLAVOUR]
NAMES = {"openmpi": "Open MPI", "mpich": "MPICH"}
LOADED = """
import re, sys
def mpis():
    "The MPI libraries in this process."
    text = open("/proc/self/maps").read()
    return sorted(set(re.findall(r"/(libmpi(?:ch|_abi)?\\.so|libforebay-mpi-\\w+)", text)))
"""
LIBRARIES = {"openmpi": "libmpi.so", "mpich": "libmpich.so"}
with_both = pytest.mark.skipif(not shutil.which(f"mpirun.{OTHER}"), reason=f"no {OTHER}")


def run(code, *arguments, **variables):
    environment = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("OMPI_", "PMIX_", "PMI_", "FOREBAY_MPI_"))
    }
    environment.update(variables, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    return subprocess.run(
        [sys.executable, "-c", LOADED + code, *arguments],
        check=False, capture_output=True, text=True, env=environment, timeout=120,
    )  # fmt: skip


def ldd(path):
    return subprocess.run(["ldd", path], check=True, capture_output=True, text=True).stdout


def test_the_module_links_no_mpi():
    text = ldd(forebay._core.__file__)
    assert "libforebay.so" in text
    assert "libmpi" not in text


def test_a_process_alone_loads_no_mpi(numbers):
    done = run(
        "import forebay\n"
        "assert mpis() == [], mpis()\n"
        "with forebay.Loader(sys.argv[1], 4, decode=False) as loader:\n"
        "    next(iter(loader))\n"
        "assert mpis() == [], mpis()\n",
        numbers,
    )
    assert done.returncode == 0, done.stderr


def test_the_wish_for_mpi_loads_one():
    done = run("import forebay; forebay.find_ranks('mpi'); print(mpis())")
    assert done.returncode == 0, done.stderr
    assert done.stdout in {
        "['libforebay-mpi-openmpi', 'libmpi.so']\n",
        "['libforebay-mpi-mpich', 'libmpich.so']\n",
    }


def test_the_launcher_decides(script):
    code = LOADED + "import forebay; forebay.find_ranks(); print(f'it is {mpis()}', flush=True)"
    out = run_ranks(2, script(code)).stdout
    assert out.count(f"it is ['libforebay-mpi-{FLAVOUR}', '{LIBRARIES[FLAVOUR]}']") == 2


@with_both
def test_the_backend_of_another_launcher_is_an_error_that_names_both(script, monkeypatch):
    monkeypatch.setenv("FOREBAY_MPI_BACKEND", OTHER)
    done = run_ranks(2, script("import forebay; forebay.find_ranks()"), check=False, timeout=60)
    assert done.returncode != 0
    both = f"by mpirun of {NAMES[FLAVOUR]}, but each is alone in {NAMES[OTHER]}"
    assert both in done.stderr


def test_without_a_backend_the_error_says_what_to_install():
    done = run("import forebay; forebay.find_ranks('mpi')", FOREBAY_MPI_BACKEND="/nowhere/mpi.so")
    assert done.returncode == 1
    assert "there is no /nowhere/mpi.so" in done.stderr
    assert "install Open MPI" in done.stderr


def test_the_mpi_of_mpi4py_is_taken():
    pytest.importorskip("mpi4py")
    code = (
        "from mpi4py import MPI\n"
        "before = [name for name in mpis() if name.startswith('libmpi')]\n"
        "import forebay\n"
        "ranks = forebay.find_ranks(MPI.COMM_WORLD)\n"
        "assert (ranks.rank, ranks.size) == (0, 1)\n"
        "assert [name for name in mpis() if name.startswith('libmpi')] == before, mpis()\n"
    )
    # Also where the environment would have it otherwise.
    for variables in ({}, {"PMI_RANK": "0"}):
        done = run(code, **variables)
        assert done.returncode == 0, done.stderr


@with_both
def test_another_backend_than_that_of_mpi4py_is_an_error_that_names_both():
    mpi4py = pytest.importorskip("mpi4py")
    mpi = next(Path(mpi4py.__file__).parent.glob("MPI*.so"), None)
    if mpi is None or "libmpi.so.40" not in ldd(mpi):
        pytest.skip("mpi4py is not built with Open MPI")
    done = run(
        "from mpi4py import MPI; import forebay; forebay.find_ranks(MPI.COMM_WORLD)",
        FOREBAY_MPI_BACKEND="mpich",
    )
    assert done.returncode == 1
    assert "FOREBAY_MPI_BACKEND=mpich, but this process has Open MPI" in done.stderr
