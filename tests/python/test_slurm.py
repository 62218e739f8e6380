"""srun, on a cluster of this one machine (scripts/slurm.sh), against the other launchers."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import forebay._core
import pytest
from conftest import run_ranks
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


def results(done):
    assert done.returncode == 0, done.stdout + done.stderr
    return sorted(json.loads(line) for line in done.stdout.splitlines() if line.startswith("["))


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    path = tmp_path_factory.mktemp("srun") / "script.py"
    path.write_text(BATCHES)
    return path


@pytest.fixture(scope="module")
def by_mpirun(program, numbers):
    return sorted(
        json.loads(line) for line in run_ranks(3, program, numbers).stdout.splitlines() if line
    )


def test_srun_without_mpi_gives_the_batches_of_mpirun(program, numbers, by_mpirun):
    done = srun(["--mpi=none", "-n", "3"], program, numbers)
    found = results(done)
    assert [each[:3] for each in found] == [[rank, 3, "env"] for rank in range(3)]
    assert [each[3] for each in found] == [each[3] for each in by_mpirun]
    assert done.stderr.count("SLURM_PROCID and SLURM_STEP_NUM_TASKS, without MPI") == 1


@pytest.mark.skipif(forebay._core.mpi_flavour != "openmpi", reason="Debian's MPICH has no PMIx")
def test_srun_with_pmix_gives_the_batches_of_mpirun(program, numbers, by_mpirun):
    assert results(srun(["--mpi=pmix", "-n", "3"], program, numbers)) == by_mpirun


@pytest.mark.skipif(not shutil.which("sbatch"), reason="no Slurm")
def test_a_batch_script_is_one_process(monkeypatch):
    """It has a number and a count of tasks, but no step: only srun starts them all."""
    monkeypatch.setattr(os, "environ", {"SLURM_PROCID": "0", "SLURM_NTASKS": "2"})
    assert _launch.find_place() is None
