"""The example storage plug-in, built by itself against an installed Forebay, and data sets read through it.

usage: storage_plugin_test.py BUILD_DIR WORK_DIR EXAMPLE_DIR
"""

import os
import shutil
import subprocess
import sys
import unittest

try:
    import h5py
    import numpy as np
except ImportError:
    h5py = None

BUILD, WORK, EXAMPLE = sys.argv[1:4]
PREFIX = os.path.join(WORK, "prefix")
FOREBAY = os.path.join(PREFIX, "bin", "forebay")
PLUGIN = os.path.join(WORK, "build", "forebay_pieces.so")


def run(*command, **more):
    result = subprocess.run([str(word) for word in command], capture_output=True, timeout=120,
                            check=False, **more)
    if result.returncode != 0:
        raise AssertionError(f"{command} failed: {result.stdout!r} {result.stderr!r}")
    return result.stdout


def cut(path, size):
    """`path` in pieces, as `split -b SIZE -d -a 3` leaves them; the whole file goes."""
    run("split", "-b", size, "-d", "-a", 3, path, path + ".")
    os.remove(path)


class StoragePlugin(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        shutil.rmtree(WORK, ignore_errors=True)
        run("cmake", "--install", BUILD, "--prefix", PREFIX)
        run("cmake", "-S", EXAMPLE, "-B", os.path.join(WORK, "build"),
            f"-DCMAKE_PREFIX_PATH={PREFIX}")
        run("cmake", "--build", os.path.join(WORK, "build"))

    def fails(self, *command, environment=()):
        result = subprocess.run([FOREBAY, *command], capture_output=True, text=True, timeout=60,
                                check=False, env=dict(os.environ, **dict(environment)))
        self.assertNotEqual(result.returncode, 0)
        self.assertEqual(len(result.stderr.strip().splitlines()), 1, result.stderr)
        return result.stderr

    def test_lmdb(self):
        path = os.path.join(WORK, "db")
        run(FOREBAY, "pack", "-", path, "--from", "synthetic", "--shape", "3x8x8", "--count", 300)
        samples = ["samples", "--batch", "16", "--coalesce", "2"]
        plain = run(FOREBAY, *samples, path)
        inspected = run(FOREBAY, "inspect", path, "--json")
        cut(os.path.join(path, "data.mdb"), 70001)
        through = [FOREBAY, "--storage-plugin", PLUGIN]
        for url in ("pieces://" + path, "pieces://" + path + "/data.mdb"):
            self.assertEqual(run(*through, *samples, url), plain)
        self.assertEqual(run(*through, "inspect", "pieces://" + path, "--json").count(b"\n"),
                         inspected.count(b"\n"))
        environment = dict(os.environ, FOREBAY_STORAGE_PLUGINS=PLUGIN)
        self.assertEqual(run(FOREBAY, *samples, "pieces://" + path, env=environment), plain)
        run(*through, "verify", "pieces://" + path)

    @unittest.skipUnless(h5py, "needs h5py")
    def test_hdf5(self):
        path = os.path.join(WORK, "data.h5")
        with h5py.File(path, "w") as file:
            file["x"] = np.arange(60000, dtype="<i4").reshape(300, 200)
            file.create_dataset("y", data=np.arange(2100, dtype=">u2").reshape(300, 7),
                                chunks=(40, 7), compression="gzip")
        plain = run(FOREBAY, "inspect", path, "--dump", "all")
        cut(path, 30011)
        self.assertEqual(run(FOREBAY, "--storage-plugin", PLUGIN, "inspect", "pieces://" + path,
                             "--dump", "all"), plain)

    def test_errors(self):
        self.assertIn("FOREBAY_STORAGE_PLUGINS", self.fails("inspect", "pieces:///x"))
        self.assertIn("absolute", self.fails("--storage-plugin", "pieces.so", "inspect", "pieces:///x"))
        self.assertIn("no storage plug-in", self.fails("--storage-plugin", "/no/such.so", "inspect", "x"))
        self.assertIn("does not export",
                      self.fails("--storage-plugin", shutil.which("true"), "inspect", "x")
                      .replace("cannot be loaded", "does not export"))
        self.assertIn("no such file", self.fails("--storage-plugin", PLUGIN, "inspect", "pieces:///x"))
        self.assertIn("FOREBAY_PIECES_DIGITS is '12'",
                      self.fails("inspect", "pieces:///x", environment={
                          "FOREBAY_STORAGE_PLUGINS": PLUGIN, "FOREBAY_PIECES_DIGITS": "12"}.items()))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
