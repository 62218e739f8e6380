"""The examples, run small: as their descriptions say."""

import os
import re
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from conftest import run_ranks

EXAMPLES = Path(__file__).parents[2] / "examples" / "python"
FASHION_MNIST = Path("/usr/share/datasets/fashion-mnist")


def run(name, *arguments, ranks=1, launcher="mpirun"):
    """What an example prints."""
    if ranks > 1:
        return run_ranks(ranks, EXAMPLES / name, *arguments, launcher=launcher).stdout
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / name), *map(str, arguments)],
        check=False, capture_output=True, text=True, timeout=120,
        env={**os.environ, "OMP_NUM_THREADS": "1", "TF_CPP_MIN_LOG_LEVEL": "3"},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def figure(pattern, output):
    return float(re.search(pattern, output).group(1))


def write_idx(path, array):
    kind = {np.uint8: 8}[array.dtype.type]
    path.write_bytes(struct.pack(f">BBBB{array.ndim}I", 0, 0, kind, array.ndim, *array.shape))
    with path.open("ab") as file:
        file.write(array.tobytes())


@pytest.fixture(scope="module")
def fashion(tmp_path_factory):
    """Fashion-MNIST where it is installed; else images that are as easy to tell apart."""
    at = tmp_path_factory.mktemp("fashion")
    source = FASHION_MNIST
    if not source.exists():
        source = at / "source"
        source.mkdir()
        rng = np.random.default_rng(0)
        for name, count in (("train", 6000), ("t10k", 1000)):
            labels = rng.integers(0, 10, count).astype(np.uint8)
            images = rng.integers(0, 80, (count, 28, 28), np.uint8)
            for image, label in zip(images, labels):
                image[2 * label : 2 * label + 4, 4:24] += 150
            write_idx(source / f"{name}-images-idx3-ubyte", images)
            write_idx(source / f"{name}-labels-idx1-ubyte", labels)
    found = []
    for split, count in (("train", 12_000), ("test", 1000)):
        target = at / f"{split}.lmdb"
        command = ["forebay", "pack", "--from", "idx", "--split", split, "--count", str(count)]
        subprocess.run([*command, str(source), str(target)], check=True, capture_output=True)
        found.append(str(target))
    return found


FASHION = r"test accuracy ([\d.]+)"


@pytest.mark.parametrize("loader", ["forebay", "dataloader"])
def test_fashion_mnist(fashion, loader):
    pytest.importorskip("torch")
    output = run("fashion_mnist.py", *fashion, "--loader", loader, "--epochs", 1, "--samples", 3200)
    assert figure(FASHION, output) > 0.5
    assert "on 1 ranks" in output


@pytest.mark.parametrize("launcher", ["mpirun", "torchrun"])
def test_fashion_mnist_on_ranks(fashion, launcher):
    pytest.importorskip("torch")
    output = run(
        "fashion_mnist.py", *fashion, "--epochs", 1, "--samples", 3200, "--batch-size", 32,
        ranks=2, launcher=launcher,
    )  # fmt: skip
    assert output.count("test accuracy") == 1
    assert "on 2 ranks" in output
    assert figure(FASHION, output) > 0.5


def test_hdf5_regression(tmp_path):
    pytest.importorskip("torch")
    files = tmp_path / "train.h5", tmp_path / "test.h5"
    run("hdf5_regression.py", *files, "--make", 2000)
    output = run("hdf5_regression.py", *files, "--epochs", 8)
    error, of_mean = (float(x) for x in re.findall(r"\d+\.\d+", output))
    assert error < 0.3 * of_mean


def test_text_recognition(tmp_path):
    pytest.importorskip("torch")
    pytest.importorskip("PIL")
    words = tmp_path / "words.lmdb"
    run("text_recognition.py", "--make", 60, words)
    output = run("text_recognition.py", words, "--epochs", 3)
    losses = [float(x) for x in re.findall(r"loss ([\d.]+) over 60 words", output)]
    assert len(losses) == 3
    assert losses[-1] < losses[0]
    assert "left out" not in output


def test_tensorflow_mnist(fashion):
    pytest.importorskip("tensorflow")
    output = run("tensorflow_mnist.py", *fashion, "--epochs", 1, "--steps", 60)
    assert figure(FASHION, output) > 0.5
