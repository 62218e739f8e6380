"""Commands under limits of the user: one line that says what ran short, and what to change."""

import os
import resource
import unittest

from command import CommandTest, records, write_records


def limited(kind, value):
    """Options of a run under a limit."""
    return {"preexec_fn": lambda: resource.setrlimit(kind, (value, value))}


def is_sanitized():
    return "asan" in os.environ.get("FOREBAY_COMMAND", "")


class Limits(CommandTest):
    def set_up_data(self):
        write_records(self.path("set"), [(b"%08d" % i, bytes([i % 251]) * 3000)
                                         for i in range(400)])
        return self.path("set")

    def test_files_that_may_not_grow(self):
        """SIGXFSZ would end the process without a word."""
        size = limited(resource.RLIMIT_FSIZE, 50_000)
        data = self.set_up_data()
        self.fail("samples", data, "--batch", 8, "--epochs", 2, "--output", self.path("lines"),
                  naming=[self.path("lines"), "File too large", "'ulimit -f', now 50000 bytes"],
                  **size)
        self.fail("samples", data, "--batch", 1, "--epochs", 5, "--output", os.devnull, "--trace",
                  self.path("trace"), naming=[self.path("trace"), "'ulimit -f'"], **size)
        self.fail("pack", "-", self.path("made"), "--from", "synthetic", "--shape", "3x32x32",
                  "--count", 500, naming=["'ulimit -f' allows files of 50.0 kB", "--resume"],
                  **size)
        # What was written before is kept, and goes on once it may.
        self.succeed("pack", "-", self.path("made"), "--from", "synthetic", "--shape", "3x32x32",
                     "--count", 500, "--resume")
        self.assertEqual(len(records(self.path("made"))), 500)

    def test_few_open_files(self):
        if is_sanitized():
            self.skipTest("the sanitizer looks at memory through pipes, which it cannot open then")
        data = self.set_up_data()
        refused = 0
        for command in (["verify", data], ["samples", data, "--batch", 8, "--epochs", 1]):
            for files in range(4, 12):
                result = self.run_command(*command, **limited(resource.RLIMIT_NOFILE, files))
                if result.returncode != 0:
                    refused += 1
                    self.assertRegex(result.stderr, "^forebay: error: .*'ulimit -n', now .*\n$")
            self.assertEqual(result.returncode, 0)
        self.assertGreater(refused, 0)

    def test_little_memory(self):
        """From nothing to enough: a line that names the limit, or all samples."""
        if is_sanitized():
            self.skipTest("the sanitizer takes more than any limit")
        data = self.set_up_data()
        lines = 0
        for mebibytes in range(200, 640, 40):
            result = self.run_command("samples", data, "--batch", 8, "--epochs", 1, "--decode",
                                      "--codec", "raw", "--schema", "x:u8[3000]",
                                      **limited(resource.RLIMIT_AS, mebibytes << 20))
            if result.returncode == 0:
                lines = len(result.stdout.splitlines())
                continue
            if "error while loading shared libraries" in result.stderr:
                continue
            self.assertEqual(result.returncode, 1, result.stderr)
            self.assertRegex(result.stderr, "^forebay: error: .*ulimit -v.*\n$")
        self.assertEqual(lines, 400)


if __name__ == "__main__":
    unittest.main()
