"""forebay-bench generate: HDF5 files as h5py reads them, and what their targets depend on."""

import os
import subprocess
import unittest

import h5py
import numpy

from command import CommandTest


def read(path):
    with h5py.File(path, "r") as file:
        return {name: file[name][:] for name in file}


class Generate(CommandTest):

    def generate(self, *arguments):
        return self.succeed_json("generate", *arguments)

    def test_cosmoflow_has_the_layout_of_the_paper(self):
        summary = self.generate("cosmoflow", self.path("c.h5"), "--samples", 3, "--side", 8)
        self.assertEqual(summary["samples"], 3)
        self.assertEqual(summary["schema"], "3Dmap:u16[8x8x8x12],unitPar:f32[4]")
        data = read(self.path("c.h5"))
        self.assertEqual(data["3Dmap"].shape, (3, 8, 8, 8, 12))
        self.assertEqual(data["3Dmap"].dtype, numpy.uint16)
        self.assertEqual((data["unitPar"].shape, data["unitPar"].dtype), ((3, 4), numpy.float32))
        self.assertLess(abs(data["unitPar"]).max(), 1)

    def test_neuron_has_the_layout_of_the_paper(self):
        self.generate("neuron", self.path("n.h5"), "--samples", 4)
        data = read(self.path("n.h5"))
        self.assertEqual((data["x"].shape, data["x"].dtype), ((4, 1600, 3), numpy.float32))
        self.assertEqual(data["y"].shape, (4, 19))
        self.assertTrue(numpy.isfinite(data["x"]).all())

    def test_a_seed_gives_the_same_bytes_and_another_one_others(self):
        for application in ("cosmoflow", "neuron"):
            files = []
            for number, seed in enumerate((1, 1, 2)):
                path = self.path(f"{application}{number}.h5")
                self.generate(application, path, "--samples", 2, "--side", 4, "--seed", seed)
                with open(path, "rb") as file:
                    files.append(file.read())
            self.assertEqual(files[0], files[1])
            self.assertNotEqual(files[0], files[2])

    def test_samples_do_not_depend_on_files_chunks_or_compression(self):
        common = ("--samples", 7, "--side", 4, "--channels", 5)
        self.generate("cosmoflow", self.path("one.h5"), *common)
        whole = read(self.path("one.h5"))
        self.generate("cosmoflow", self.path("many.h5"), *common, "--files", 3, "--chunk-rows", 2,
                      "--gzip", 4)
        parts = [read(self.path(f"many-{number}.h5")) for number in range(3)]
        for name, values in whole.items():
            joined = numpy.concatenate([part[name] for part in parts])
            numpy.testing.assert_array_equal(joined, values)
        with h5py.File(self.path("many-0.h5"), "r") as file:
            self.assertEqual(file["3Dmap"].compression, "gzip")
            self.assertEqual(file["3Dmap"].chunks, (2, 4, 4, 4, 5))

    def test_forebay_reads_what_it_wrote(self):
        self.generate("neuron", self.path("n.h5"), "--samples", 5, "--length", 16)
        product = os.environ.get("FOREBAY_PRODUCT", "build/release/src/forebay")
        facts = subprocess.run([product, "inspect", self.path("n.h5"), "--json"], text=True,
                               capture_output=True, timeout=60, check=True).stdout
        self.assertIn("16x3", facts)

    def test_cosmoflow_shows_its_parameters(self):
        self.generate("cosmoflow", self.path("c.h5"), "--samples", 60, "--side", 16, "--channels",
                      1)
        data = read(self.path("c.h5"))
        cubes, targets = data["3Dmap"][..., 0].astype(float), data["unitPar"]
        flat = cubes.reshape(len(cubes), -1)
        strength = numpy.log(flat.var(axis=1))
        smooth = ((numpy.diff(cubes, axis=1) ** 2).mean(axis=(1, 2, 3)) / flat.var(axis=1))
        along = ((numpy.diff(cubes, axis=3) ** 2).mean(axis=(1, 2, 3)) /
                 (numpy.diff(cubes, axis=1) ** 2).mean(axis=(1, 2, 3)))
        skewness = ((flat - flat.mean(axis=1, keepdims=True)) ** 3).mean(axis=1) / flat.std(
            axis=1) ** 3
        for number, figure in enumerate((smooth, along, skewness, strength)):
            self.assertGreater(abs(numpy.corrcoef(figure, targets[:, number])[0, 1]), 0.5, number)

    def test_neuron_shows_its_properties(self):
        self.generate("neuron", self.path("n.h5"), "--samples", 60)
        data = read(self.path("n.h5"))
        for compartment in range(3):
            seen, own = data["x"][..., compartment], data["y"][:, 6 * compartment:]
            rest, height = seen[:, 1:6].mean(axis=1), seen.max(axis=1)
            self.assertGreater(numpy.corrcoef(rest, own[:, 0])[0, 1], 0.9)
            self.assertGreater(numpy.corrcoef(height, own[:, 4])[0, 1], 0.7)

    def test_what_exists_is_replaced_on_demand_only(self):
        self.write("n.h5", b"mine")
        self.fail("generate", "neuron", self.path("n.h5"), "--samples", 2, code=2,
                  naming=("exists", "--force"))
        with open(self.path("n.h5"), "rb") as file:
            self.assertEqual(file.read(), b"mine")
        self.generate("neuron", self.path("n.h5"), "--samples", 2, "--force")
        self.assertEqual(len(read(self.path("n.h5"))["x"]), 2)

    def test_a_folder_that_is_not_there_is_named(self):
        self.fail("generate", "neuron", self.path("missing/n.h5"), naming="missing")

    def test_nothing_partial_is_left(self):
        self.generate("neuron", self.path("whole.h5"), "--samples", 2)
        self.assertFalse([name for name in os.listdir(os.path.dirname(self.path("whole.h5")))
                          if name.endswith(".partial")])

    def test_nonsense_is_refused(self):
        for arguments in (("galaxy", "x.h5"), ("neuron", "x.h5", "--samples", 0),
                          ("neuron", "x.h5", "--samples", 2, "--files", 3),
                          ("cosmoflow", "x.h5", "--side", 1),
                          ("cosmoflow", "x.h5", "--side", 512, "--channels", 64),
                          ("neuron", "x.h5", "--gzip", 10)):
            with self.subTest(arguments=arguments):
                self.assertEqual(self.run_command("generate", *arguments).returncode, 2)


if __name__ == "__main__":
    unittest.main()
