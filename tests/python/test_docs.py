"""Blocks of code in the documentation run, in the order of their page, or say why not."""

import os
import re
import shutil
import struct
import subprocess
import sys
import zlib
from pathlib import Path

import numpy as np
import pytest
from conftest import LAUNCHER, datum, write_lmdb

DOCS = Path(__file__).parents[2] / "docs"
PAGES = ["python/quickstart.md", "python/dataloader.md", "hpc.md", "errors.md"]
COMMAND_PAGES = ["orders.md", "provenance.md", "decoding.md"]
TENSORFLOW_PAGE = "python/tensorflow.md"
BLOCK = re.compile(
    r"^(?:<!-- not run: (?P<reason>[^>]+) -->\n)?```(?P<language>\w+)\n(?P<code>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)


def blocks_to_run(text):
    """Language and code of each block that is not excused."""
    return [
        (block["language"], block["code"])
        for block in BLOCK.finditer(text)
        if block["reason"] is None and block["language"] in ("python", "sh")
    ]


@pytest.mark.parametrize("page", sorted(str(p.relative_to(DOCS)) for p in DOCS.rglob("*.md")))
def test_every_block_runs_or_says_why_not(page):
    """Commands marked `console`, and texts, are not run: they are no code."""
    text = (DOCS / page).read_text()
    if page in (*PAGES, *COMMAND_PAGES, TENSORFLOW_PAGE):
        silent = [b for b in BLOCK.finditer(text) if b["language"] == "cpp" and not b["reason"]]
    else:
        silent = [
            b for b in BLOCK.finditer(text)
            if b["language"] in ("python", "sh", "cpp") and not b["reason"]
        ]  # fmt: skip
    assert not silent, f"not run, without a reason: {silent[0]['code']}"


def gray_png(pixels, width):
    """A file of these pixels, by hand."""

    def chunk(kind, data):
        body = kind + data
        return struct.pack(">I", len(data)) + body + struct.pack(">I", zlib.crc32(body))

    height = len(pixels) // width
    lines = b"".join(b"\0" + pixels[i * width : (i + 1) * width] for i in range(height))
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0))
        + chunk(b"IDAT", zlib.compress(lines))
        + chunk(b"IEND", b"")
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """What the pages speak of."""
    import pickle

    at = tmp_path_factory.mktemp("docs")
    rng = np.random.default_rng(0)
    for name, count in (("train.lmdb", 5000), ("more.lmdb", 100)):
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
    train = next(code for _, code in blocks_to_run(quickstart) if "forebay.torch" in code)
    (at / "train.py").write_text(train)
    (at / "bin").mkdir()
    program = at / "bin" / "python"  # a link would lose the virtual environment
    program.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    program.chmod(0o755)
    program = at / "bin" / "mpirun"  # MPICH's would look for its helpers beside a link
    program.write_text(f'#!/bin/sh\nexec {LAUNCHER} "$@"\n')
    program.chmod(0o755)
    return at


@pytest.mark.parametrize("page", PAGES)
def test_every_block_of_a_page_runs(page, folder):
    pytest.importorskip("torch")
    _run(page, folder)


@pytest.mark.parametrize(
    "page",
    [
        "provenance.md",
        "decoding.md",
        pytest.param(
            "orders.md",
            marks=pytest.mark.skipif(
                os.environ.get("FOREBAY_TEST_SCALE", "1") == "1", reason="left to make test-full"
            ),
        ),
    ],
)
def test_every_command_of_a_page_runs(page, folder, tmp_path):
    shutil.copytree(folder / "bin", tmp_path / "bin", symlinks=True)
    if page == "provenance.md":  # makes its data set
        (tmp_path / "images" / "cat").mkdir(parents=True)
        for i in range(3):
            (tmp_path / "images" / "cat" / f"{i}.png").write_bytes(gray_png(bytes([i]) * 64, 8))
    else:
        shutil.copytree(folder / "train.lmdb", tmp_path / "train.lmdb")
    (tmp_path / "ids").write_text(" ".join(map(str, range(64))))
    _run(page, tmp_path)


def test_every_block_of_the_page_on_tensorflow_runs(folder):
    pytest.importorskip("tensorflow")
    import forebay.tf

    if not forebay.tf._deepio._LIBRARY.exists():
        pytest.skip("built without tensorflow")
    _run(TENSORFLOW_PAGE, folder)


def _as_python(language, code):
    shell = "set -e\n" + code
    return code if language == "python" else f"import os; assert os.system({shell!r}) == 0"


def _run(page, folder):
    text = (DOCS / page).read_text()
    blocks = blocks_to_run(text)
    assert blocks, "the page has no code"
    program = "\n".join(_as_python(language, code) for language, code in blocks)
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
