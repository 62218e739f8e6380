"""What the tests of bench/pfs share: whether they can run here, and a look at what is left behind.

FOREBAY_PFS names the program forebay-pfs; without root or /dev/fuse the tests are skipped (77).
"""

import os
import random
import shutil
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
PFS = os.environ.get("FOREBAY_PFS", os.path.join(ROOT, "build/release/bench/pfs/forebay-pfs"))
_SKIPPED = 77


def processes(text, whole=False):
    """Numbers of living processes, other than this, whose command line contains, or is, `text`."""
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit() and int(entry) != os.getpid():
            try:
                with open(f"/proc/{entry}/cmdline", "rb") as file:
                    words = file.read().replace(b"\0", b" ").decode(errors="replace")
            except OSError:
                continue
            if words.rstrip() == text if whole else text in words:
                found.append(int(entry))
    return found


def mounts(text):
    with open("/proc/self/mounts", encoding="utf-8", errors="replace") as file:
        return [line.split()[1] for line in file if text in line]


class PfsCase(unittest.TestCase):
    """A backing directory with `data`, 8 MiB, and `small`; self.bytes is what `data` holds."""

    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.mkdtemp(prefix="forebay-pfs-test-")
        cls.addClassCleanup(shutil.rmtree, cls.scratch, ignore_errors=True)
        cls.bytes = random.Random(1).randbytes(8 << 20)

    def setUp(self):
        self.backing = tempfile.mkdtemp(dir=self.scratch)
        self.data = os.path.join(self.backing, "data")
        with open(self.data, "wb") as file:
            file.write(self.bytes)
        os.mkdir(os.path.join(self.backing, "folder"))
        with open(os.path.join(self.backing, "folder", "small"), "wb") as file:
            file.write(b"small file\n")


def main():
    if os.geteuid() != 0 or not os.path.exists("/dev/fuse"):
        print("skipped: mounting needs root and /dev/fuse")
        sys.exit(_SKIPPED)
    if not os.access(PFS, os.X_OK):
        sys.exit(f"{PFS}: no executable; set FOREBAY_PFS")
    unittest.main(verbosity=2)
