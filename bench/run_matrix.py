#!/usr/bin/python3
"""Measures reading and training over ranks, nodes, data sets and file systems.

  bench/run_matrix.py --build build/release                 a few minutes
  bench/run_matrix.py --build build/release --full          hours, the figures of docs/results

Every configuration (bench/matrix.py) is one run of `forebay bench read` or `forebay bench train`
under the launcher; strategies are interleaved inside of it. All results go into one JSON file, which
is whole after each configuration; `forebay-bench report` draws it. A configuration that fails is listed
in the file, the others go on, and the exit status is 1. Cold caches, other read-ahead and the
modelled file system need root; without, they are left out, and the results say so.
"""

import contextlib
import os
import subprocess
import sys

import machine
import matrix
import measuring
import nodes


def parse_arguments():
    parser = measuring.parser(__doc__, "results", timeout=1800)
    parser.add_argument("--full", action="store_true", help="all ranks, all nodes, large data")
    parser.add_argument("--only", choices=("local", "pfs", "train"), nargs="+",
                        default=["local", "pfs", "train"])
    parser.add_argument("--scaling", choices=("strong", "weak", "seek", "blocks"), nargs="+",
                        default=["strong", "weak", "seek", "blocks"])
    parser.add_argument("--repetitions", type=int, help="of every run (default: 2, full: 5)")
    parser.add_argument("--strategies", help="as forebay bench read takes them (default: all)")
    parser.add_argument("--dry-run", action="store_true", help="print what would be measured")
    return parser.parse_args()


class Matrix(measuring.Measuring):

    bench = "matrix"

    def __init__(self, options):
        super().__init__(options, go_on=False)
        self.privileged = machine.can_drop_caches()
        self.left_out = []

    def configurations(self):
        """What this machine and build can measure; fills left_out."""
        storages = []
        if "local" in self.options.only:
            storages.append(matrix.LOCAL)
            self._add_if(storages, matrix.LOCAL_128, self.privileged, "needs root")
        if "pfs" in self.options.only:
            self._add_if(storages, matrix.PFS, self.privileged and os.path.exists(self.pfs),
                         "needs root and forebay-pfs")
        found = [configuration for configuration in matrix.configurations(self.options.full,
                                                                          storages)
                 if configuration.scaling in self.options.scaling]
        if "train" in self.options.only:
            trainings = list(matrix.trainings(self.options.full))
            trainer = os.path.join(self.build, "src", "forebay-train")
            if os.path.exists(trainer):
                found += trainings
            else:
                self.left_out.append("training: forebay-train was not built")
        return found

    def _add_if(self, storages, storage, possible, why):
        if possible:
            storages.append(storage)
        else:
            self.left_out.append(f"{storage}: {why}")

    def words(self, configuration, dataset, output):
        """The command of one configuration, without its launcher."""
        words = [self.command, "bench", configuration.kind, dataset, *configuration.words,
                 "--json", output, "--repetitions", str(self._repetitions(configuration))]
        if configuration.kind == "read" and self.privileged:
            words.append("--cold")
        if self.options.strategies and "--strategies" not in words:
            words += ["--strategies", self.options.strategies]
        return words

    def _repetitions(self, configuration):
        if configuration.scaling in ("seek", "blocks"):
            return 1
        return self.options.repetitions or (5 if self.options.full else 2)

    def make_data(self, configurations):
        for data in {configuration.data.name: configuration.data
                     for configuration in configurations}.values():
            if os.path.exists(os.path.join(self.data, data.name, "data.mdb")):
                continue
            os.makedirs(self.data, exist_ok=True)
            subprocess.run([self.command, *data.pack_words(self.data)], check=True,
                           stdout=sys.stderr)

    def measure(self, configuration):
        name, load = configuration.data.name, machine.load_average()
        read_ahead = matrix.READ_AHEAD_KB.get(configuration.storage)
        with (machine.read_ahead_set_to(os.path.join(self.data, name), read_ahead) if read_ahead
              else contextlib.nullcontext()):
            result, file_system = self.json_of(
                configuration, name, lambda *places: self.words(configuration, *places))
        return {"kind": configuration.kind, "data": name, "storage": configuration.storage,
                "scaling": configuration.scaling, "load": load, "file_system": file_system,
                "result": result}

    def facts(self):
        return {"name": "full matrix" if self.options.full else "quick matrix",
                "read_ahead_kb": machine.read_ahead_kb(self.data), "left_out": self.left_out}

    def measure_all(self):
        configurations = self.configurations()
        for text in self.left_out:
            print(f"left out: {text}", file=sys.stderr)
        if self.options.dry_run:
            for configuration in configurations:
                print(configuration.text())
            return
        self.make_data(configurations)
        self.run(configurations)
        print(self.output)


def main():
    nodes.end_by_exception()
    matrix_run = Matrix(parse_arguments())
    matrix_run.measure_all()
    sys.exit(1 if matrix_run.failures else 0)


if __name__ == "__main__":
    main()
