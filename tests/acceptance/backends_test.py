#!/usr/bin/python3
"""The library and the command link no MPI; the backend of the launcher's is loaded when ranks are wanted,
and whatever does not fit together is one clear error."""

import glob
import os
import re
import shutil
import subprocess

import launch

# As launcher, and as the library calls itself.
NAMES = {"openmpi": "Open MPI", "mpich": "MPICH"}
OTHER = {"openmpi": "mpich", "mpich": "openmpi"}[launch.FLAVOUR]
FOLDER = os.path.dirname(os.path.realpath(launch.COMMAND))
MPI_LIBRARY = re.compile(r"libmpi(ch|_abi)?\.so")
LOADED = re.compile(r"calling init: (\S+)")


def backend(flavour):
    return os.path.join(FOLDER, f"libforebay-mpi-{flavour}.so")


class Backends(launch.AcceptanceCase):

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.dataset = os.path.join(cls.scratch, "train")
        packed = launch.run("pack", "-", cls.dataset, "--from", "synthetic", "--preset",
                            "cifar10-large", "--count", 60)
        assert packed.code == 0, packed.err

    def samples(self, ranks=0, **env):
        return launch.run("samples", self.dataset, "--batch", 20, "--epochs", 1, ranks=ranks, env=env)

    def loaded(self, ranks, **env):
        """Names of the MPI libraries that a run loads."""
        result = self.samples(ranks, LD_DEBUG="files", LD_DEBUG_OUTPUT=self.path("loader"), **env)
        self.assertEqual(result.code, 0, result.err[-2000:])
        names = set()
        for path in glob.glob(self.path("loader*")):
            with open(path, encoding="utf-8", errors="replace") as file:
                names |= {os.path.basename(name) for name in LOADED.findall(file.read())
                          if MPI_LIBRARY.search(name) or "libforebay-mpi" in name}
            os.remove(path)
        return names

    def installed(self, name, *flavours):
        """A folder with the library and these backends alone, as LD_LIBRARY_PATH."""
        folder = self.path(name)
        os.makedirs(folder)
        shutil.copy(os.path.join(FOLDER, "libforebay.so.0"), folder)
        for flavour in flavours:
            shutil.copy(backend(flavour), folder)
        return folder

    def assert_names_both(self, result):
        self.assertEqual(result.code, 2, result.err[-2000:])
        self.assertEqual(result.out, "")
        for line in result.error_lines():
            self.assertIn(f"2 processes were started by mpirun of {NAMES[launch.FLAVOUR]}, "
                          f"but each is alone in {NAMES[OTHER]}", line)
        self.assertGreaterEqual(len(result.error_lines()), 1)

    def test_library_and_command_link_no_mpi(self):
        for file in (launch.COMMAND, os.path.join(FOLDER, "libforebay.so.0")):
            needed = subprocess.run(["ldd", file], check=True, capture_output=True, text=True).stdout
            self.assertIn("libc.so", needed)
            self.assertNotRegex(needed, MPI_LIBRARY)

    def test_without_a_launcher_no_mpi_is_loaded(self):
        self.assertEqual(self.loaded(0), set())

    def test_the_backend_is_that_of_the_launcher(self):
        names = self.loaded(2)
        self.assertIn(f"libforebay-mpi-{launch.FLAVOUR}.so", names)
        self.assertNotIn(f"libforebay-mpi-{OTHER}.so", names)

    def test_the_same_samples_come_with_the_backend_by_its_path(self):
        plain = self.samples(2)
        self.assertEqual(plain.code, 0, plain.err)
        named = self.samples(2, FOREBAY_MPI_BACKEND=backend(launch.FLAVOUR))
        self.assertEqual(named.code, 0, named.err)
        self.assertEqual(sorted(named.out.splitlines()), sorted(plain.out.splitlines()))

    def test_the_other_backend_is_an_error_that_names_both(self):
        if not os.path.exists(backend(OTHER)):
            self.skipTest("there is one backend")
        self.assert_names_both(self.samples(2, FOREBAY_MPI_BACKEND=OTHER))

    def test_where_only_the_other_backend_is_it_is_an_error_that_names_both(self):
        if not os.path.exists(backend(OTHER)):
            self.skipTest("there is one backend")
        result = self.samples(2, LD_LIBRARY_PATH=self.installed("other", OTHER))
        self.assert_names_both(result)
        self.assertIn(f"there is no {self.path('other')}/libforebay-mpi-{launch.FLAVOUR}.so", result.err)

    def test_without_any_backend_ranks_are_an_error_that_says_what_to_install(self):
        folder = self.installed("none")
        self.assertEqual(self.samples(LD_LIBRARY_PATH=folder).code, 0)
        result = self.samples(2, LD_LIBRARY_PATH=folder)
        self.assertEqual(result.code, 1, result.err)
        self.assertIn("no MPI library can be loaded", result.err)
        self.assertIn("install Open MPI", result.err)

    def test_what_the_loader_says_of_a_backend_is_told(self):
        folder = self.installed("broken")
        with open(os.path.join(folder, f"libforebay-mpi-{launch.FLAVOUR}.so"), "wb") as file:
            file.write(b"no shared object" * 100)
        result = self.samples(2, LD_LIBRARY_PATH=folder)
        self.assertEqual(result.code, 1, result.err)
        self.assertIn("invalid ELF header", result.err)

    def test_the_version_tells_which_mpi_was_found(self):
        self.assertRegex(launch.run("--version", ranks=1).out,
                         rf"^forebay [0-9.]+ \({NAMES[launch.FLAVOUR]} v?[0-9.]+")
        found = launch.run("--version", env={"LD_LIBRARY_PATH": self.installed("bare")})
        self.assertEqual(found.code, 0)
        self.assertIn("without MPI: ", found.out)


if __name__ == "__main__":
    launch.main()
