"""Every block of code in the pages for Python runs, in the order of its page."""

import os
import re
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from conftest import datum, write_lmdb

DOCS = Path(__file__).parents[2] / "docs"
PAGES = ["python/quickstart.md", "python/dataloader.md", "hpc.md", "errors.md"]
BLOCK = re.compile(r"^```(python|sh)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """What the pages speak of."""
    import pickle

    at = tmp_path_factory.mktemp("docs")
    rng = np.random.default_rng(0)
    for name, count in (("train.lmdb", 300), ("more.lmdb", 100)):
        write_lmdb(
            at / name,
            (
                (f"{i:08d}".encode(), datum(rng.integers(0, 255, (1, 28, 28), np.uint8), i % 10))
                for i in range(count)
            ),
        )
    write_lmdb(
        at / "vectors.lmdb",
        (
            (f"{i:05d}".encode(), struct.pack("<16f", *rng.random(16, np.float32)))
            for i in range(100)
        ),
    )
    write_lmdb(
        at / "pickled.lmdb",
        (
            (f"{i:03d}".encode(), pickle.dumps({"name": f"sample {i}", "size": i}))
            for i in range(40)
        ),
    )
    quickstart = (DOCS / "python/quickstart.md").read_text()
    train = next(code for _, code in BLOCK.findall(quickstart) if "forebay.torch" in code)
    (at / "train.py").write_text(train)
    (at / "bin").mkdir()
    program = at / "bin" / "python"  # a link would lose the virtual environment
    program.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    program.chmod(0o755)
    return at


@pytest.mark.parametrize("page", PAGES)
def test_every_block_of_a_page_runs(page, folder):
    pytest.importorskip("torch")
    _run(page, folder)


def test_every_block_of_the_page_on_tensorflow_runs(folder):
    pytest.importorskip("tensorflow")
    import forebay.tf

    if not forebay.tf._deepio._LIBRARY.exists():
        pytest.skip("built without tensorflow")
    _run("python/tensorflow.md", folder)


def _run(page, folder):
    text = (DOCS / page).read_text()
    blocks = BLOCK.findall(text)
    assert blocks, "the page has no code"
    program = "\n".join(
        code if language == "python" else f"import os; assert os.system({code!r}) == 0"
        for language, code in blocks
    )
    environment = {
        **os.environ,
        "PATH": f"{folder / 'bin'}:{Path(sys.executable).parent}:{os.environ['PATH']}",
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        "OMPI_MCA_rmaps_base_oversubscribe": "1",
        "OMPI_MCA_hwloc_base_binding_policy": "none",
        "MPIR_CVAR_POLLS_BEFORE_YIELD": "1",
        "OMP_NUM_THREADS": "1",
    }
    script = folder / (page.replace("/", "_") + ".py")
    script.write_text(program)
    done = subprocess.run(
        [sys.executable, str(script)],
        check=False, cwd=folder, env=environment, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
