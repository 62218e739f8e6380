"""The checker of include directions finds what it should, in small trees made for it."""

import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "scripts"))
import check_includes  # noqa: E402


class CheckIncludes(unittest.TestCase):
    def faults(self, path, text):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            for needed in ("src", "include/forebay"):
                (root / needed).mkdir(parents=True)
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(text)
            return check_includes.check(root)

    def assert_fault(self, path, text):
        faults = self.faults(path, text)
        self.assertEqual(len(faults), 1, faults)
        self.assertIn(path, faults[0])

    def test_left_is_allowed(self):
        self.assertEqual(self.faults("src/read/a.cc", '#include "core/b.hpp"\n#include <vector>\n'
                                     '#include "read/a.hpp"\n#include "forebay/order.hpp"\n'), [])

    def test_right_is_refused_with_its_line(self):
        self.assert_fault("src/core/a.cc", '#include "read/b.hpp"\n')
        self.assertIn("a.cc:2:", self.faults("src/core/a.cc", '\n#  include "read/b.hpp"\n')[0])

    def test_public_headers_have_rooms_too(self):
        self.assert_fault("src/format/lmdb/a.hpp", '#include "forebay/loader.hpp"\n')
        self.assert_fault("include/forebay/error.hpp", '#include "forebay/loader.hpp"\n')
        self.assert_fault("include/forebay/error.hpp", '#include "core/log.hpp"\n')

    def test_mpi_stays_where_it_belongs(self):
        self.assertEqual(self.faults("src/comm/mpi/a.cc", "#include <mpi.h>\n"), [])
        self.assertEqual(self.faults("include/forebay/mpi.hpp", "#include <mpi.h>\n"), [])
        self.assertEqual(self.faults("bench/a.cc", '#include "forebay/mpi.hpp"\n'), [])
        self.assertEqual(self.faults("src/cli/a.cc", '#include "forebay/mpi_session.hpp"\n'), [])
        self.assert_fault("src/comm/a.cc", "#include <mpi.h>\n")
        self.assert_fault("src/comm/a.cc", '#include "comm/mpi/a.hpp"\n')
        self.assert_fault("src/cli/a.cc", '#include "forebay/mpi.hpp"\n')
        self.assert_fault("src/loader/a.cc", '#include "forebay/mpi_session.hpp"\n')
        self.assert_fault("include/forebay/loader.hpp", '#include "forebay/mpi.hpp"\n')

    def test_sync_knows_nothing_of_samples(self):
        self.assertEqual(self.faults("src/sync/a.cc", '#include "comm/b.hpp"\n'), [])
        self.assert_fault("src/sync/a.cc", '#include "order/b.hpp"\n')

    def test_programs_stand_side_by_side(self):
        for program, other in (("cli", "train"), ("train", "cli")):
            shared = '#include "program/a.hpp"\n#include "measure/b.hpp"\n#include "sync/c.hpp"\n'
            self.assertEqual(self.faults(f"src/{program}/a.cc", shared), [])
            self.assert_fault(f"src/{program}/a.cc", f'#include "{other}/a.hpp"\n')
        self.assert_fault("src/program/a.cc", '#include "measure/b.hpp"\n')
        self.assert_fault("src/loader/a.cc", '#include "program/b.hpp"\n')

    def test_unknown_rooms_and_headers_must_be_declared(self):
        self.assert_fault("src/attic/a.cc", "\n")
        self.assert_fault("include/forebay/novelty.hpp", "\n")


if __name__ == "__main__":
    unittest.main()
