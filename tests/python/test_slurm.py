"""srun, on a cluster of this one machine (scripts/slurm.sh), against the other launchers."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import forebay
import pytest
from conftest import FLAVOUR, run_ranks
from forebay import _launch

CLUSTER = Path(__file__).parents[2] / "scripts" / "slurm.sh"
BATCHES = """
import json, sys
import forebay
loader = forebay.Loader(sys.argv[1], batch_size=8, codec="raw", schema="x:i64[]", seed=5)
found = [[batch["x"].tolist() for batch in loader] for _ in range(2)]
print(json.dumps([loader.ranks.rank, loader.ranks.size, loader.ranks.kind, found]), flush=True)
"""


def srun(arguments, script, *parameters):
    """What srun and its tasks have printed; skips where there is no Slurm."""
    done = subprocess.run(
        [CLUSTER, "srun", *arguments, sys.executable, script, *parameters],
        check=False, capture_output=True, text=True, timeout=120,
        env={name: value for name, value in os.environ.items()
             if not name.startswith(("SLURM_", "PMI", "OMPI_"))},
    )  # fmt: skip
    if done.returncode == 77:
        pytest.skip(done.stderr.strip().splitlines()[-1])
    return done


def lists_in(text):
    """Each rank prints one; launchers may put the ends of their lines behind two of them."""
    decoder, found = json.JSONDecoder(), []
    start = text.find("[")
    while start >= 0:
        each, end = decoder.raw_decode(text, start)
        found.append(each)
        start = text.find("[", end)
    return sorted(found)


def results(done):
    assert done.returncode == 0, done.stdout + done.stderr
    return lists_in(done.stdout)


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    path = tmp_path_factory.mktemp("srun") / "script.py"
    path.write_text(BATCHES)
    return path


@pytest.fixture(scope="module")
def by_mpirun(program, numbers):
    return lists_in(run_ranks(3, program, numbers).stdout)


def test_srun_without_mpi_gives_the_batches_of_mpirun(program, numbers, by_mpirun):
    done = srun(["--mpi=none", "-n", "3"], program, numbers)
    found = results(done)
    assert [each[:3] for each in found] == [[rank, 3, "network"] for rank in range(3)]
    assert [each[3] for each in found] == [each[3] for each in by_mpirun]


# srun's plug-in that Debian's build of each library speaks: with it, that library is taken.
@pytest.mark.parametrize(("plugin", "mpi"), [("pmix", "openmpi"), ("pmi2", "mpich")])
def test_srun_with_mpi_gives_the_batches_of_mpirun(program, numbers, by_mpirun, plugin, mpi):
    if not shutil.which(f"mpirun.{mpi}"):
        pytest.skip(f"no {mpi}")
    assert results(srun([f"--mpi={plugin}", "-n", "3"], program, numbers)) == by_mpirun


# Not the other way round: Open MPI itself refuses what it does not speak.
@pytest.mark.skipif(not shutil.which("mpirun.mpich"), reason="no MPICH")
def test_ranks_that_srun_does_not_connect_are_an_error(program, numbers, monkeypatch):
    monkeypatch.setenv("FOREBAY_MPI_BACKEND", "mpich")
    done = srun(["--mpi=pmix", "-n", "2"], program, numbers)
    assert done.returncode != 0
    assert done.stderr.count("2 processes were started by srun, but each is alone in MPICH") == 2


@pytest.mark.skipif(not shutil.which("sbatch"), reason="no Slurm")
def test_a_batch_script_is_one_process(monkeypatch):
    """It has a number and a count of tasks, but no step: only srun starts them all."""
    monkeypatch.setattr(os, "environ", {"SLURM_PROCID": "0", "SLURM_NTASKS": "2"})
    assert _launch.find_place() is None


@pytest.mark.parametrize(
    ("told", "place"),
    [
        ({"SLURM_PROCID": "5", "SLURM_STEP_NUM_TASKS": "7", "SLURM_NODEID": "3",
          "SLURM_STEP_TASKS_PER_NODE": "2(x3),1"}, (5, 7, 1)),
        ({"SLURM_PROCID": "2", "SLURM_STEP_NUM_TASKS": "7", "SLURM_NODEID": "1",
          "SLURM_STEP_TASKS_PER_NODE": "2(x3),1"}, (2, 7, 2)),
        ({"SLURM_PROCID": "0", "SLURM_STEP_NUM_TASKS": "2",
          "SLURM_STEP_TASKS_PER_NODE": "nonsense"}, (0, 2, 1)),
        ({"RANK": "1", "WORLD_SIZE": "4", "LOCAL_WORLD_SIZE": "2", "SLURM_PROCID": "0",
          "SLURM_STEP_NUM_TASKS": "2"}, (1, 4, 2)),  # torchrun under srun
        ({}, None),
    ],
)  # fmt: skip
def test_places_are_read_from_the_environment(monkeypatch, told, place):
    monkeypatch.setattr(os, "environ", told)
    found = _launch.find_place()
    assert (found and found[:3]) == place


@pytest.mark.parametrize("place", [("2", "2"), ("-1", "2"), ("0", "0")])
def test_impossible_places_are_an_error(monkeypatch, place):
    monkeypatch.setattr(os, "environ", {"RANK": place[0], "WORLD_SIZE": place[1]})
    with pytest.raises(forebay.UsageError, match="no place among ranks"):
        _launch.find_place()


def test_torchrun_under_another_launcher_counts(script, numbers):
    """Each torchrun of a node may be started by srun or mpirun, whose variables stay."""
    text = """
import os, subprocess, sys
inner = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--redirects", "1",
         "--tee", "1", "--nproc_per_node", "2", sys.argv[1], sys.argv[2]]
sys.exit(subprocess.run(inner).returncode)
"""
    pytest.importorskip("torch")
    inner = script(BATCHES, "inner.py")
    out = run_ranks(1, script(text), inner, numbers).stdout
    lines = [re.sub(r"^\[default\d+\]:", "", line) for line in out.splitlines()]
    found = sorted(json.loads(line) for line in lines if '"network"' in line)
    assert [each[:3] for each in found] == [[0, 2, "network"], [1, 2, "network"]]


def test_processes_of_a_launcher_of_another_mpi_are_an_error(numbers):
    """Each would be alone, and take the whole data set for itself."""
    other, rank = {
        "openmpi": ("PMI_SIZE", "PMI_RANK"),
        "mpich": ("OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"),
    }[FLAVOUR]
    done = subprocess.run(
        [sys.executable, "-c", "import forebay, sys; forebay.Loader(sys.argv[1], 4)", numbers],
        check=False, capture_output=True, text=True, timeout=120,
        env={**os.environ, other: "4", rank: "1", "OMPI_ALLOW_RUN_AS_ROOT": "1",
             "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "FOREBAY_MPI_BACKEND": FLAVOUR},
    )  # fmt: skip
    assert done.returncode == 1
    assert re.search("4 processes were started by mpirun of .*, but each is alone in", done.stderr)


def test_a_place_that_is_given_is_not_looked_for(monkeypatch):
    """What an impossible environment advises helps."""
    monkeypatch.setattr(os, "environ", {"RANK": "2", "WORLD_SIZE": "2"})
    assert forebay.find_ranks((1, 2)).rank == 1


@pytest.mark.parametrize(
    ("told", "cores"),
    [
        ({}, 2),
        ({"SLURM_CPUS_PER_TASK": "8"}, 8),  # bound to the cores of this task alone
        ({"SLURM_CPUS_PER_TASK": "16"}, 8),
        ({"SLURM_CPUS_PER_TASK": "8", "TORCHELASTIC_RUN_ID": "x", "RANK": "0"}, 2),  # shared by 4
    ],
)
def test_cores_are_shared_by_those_who_may_run_on_them(monkeypatch, told, cores):
    monkeypatch.setattr(os, "environ", told)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)))
    assert _launch.cores_of(4) == cores
