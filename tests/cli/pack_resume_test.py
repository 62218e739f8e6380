"""forebay pack, interrupted: a data set that has its name is whole, and --resume goes on."""

import fcntl
import os
import resource
import shutil
import signal
import subprocess
import time
import unittest

from command import COMMAND, CommandTest, records, write_records

SHAPE = ["--shape", "3x64x64"]


class Interrupted(CommandTest):
    def arguments(self, *more, count=20000):
        return ["pack", "-", self.path("out"), "--from", "synthetic", *SHAPE, "--count",
                str(count), "--commit-every", "20", *more]

    def partial(self):
        return self.path("out.partial")

    def interrupt(self, signal_number, count=20000):
        """Starts packing, waits for the first commits, sends the signal; returns the process."""
        process = subprocess.Popen([COMMAND, *self.arguments(count=count)],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        data = os.path.join(self.partial(), "data.mdb")
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            if os.path.exists(data) and os.path.getsize(data) > 500_000:
                break
            time.sleep(0.01)
        process.send_signal(signal_number)
        process.out, process.err = process.communicate(timeout=30)
        return process

    def check_partial(self):
        """The database so far is valid, starts at the start, and has no final name."""
        self.assertFalse(os.path.exists(self.path("out")))
        packed = records(self.partial())
        self.assertGreater(len(packed), 0)
        self.assertLess(len(packed), 20000)
        self.assertEqual([key for key, _ in packed], [b"%08d" % i for i in range(len(packed))])
        return len(packed)

    def resume(self, packed):
        """Shortens the job so that the test is quick, and compares with one uninterrupted run."""
        plan = os.path.join(self.partial(), "forebay-pack.json")
        count = packed + 50
        with open(plan, encoding="utf-8") as file:
            text = file.read()
        with open(plan, "w", encoding="utf-8") as file:
            file.write(text.replace("count=20000", f"count={count}"))
        self.succeed(*self.arguments("--resume", count=count))
        resumed = records(self.path("out"))
        os.rename(self.path("out"), self.path("resumed"))
        self.succeed(*self.arguments(count=count))
        self.assertEqual(resumed, records(self.path("out")))
        self.assertFalse(os.path.exists(self.partial()))
        self.assertEqual(sorted(os.listdir(self.path("resumed"))), ["data.mdb", "data.mdb.forebay", "lock.mdb"])

    def test_kill_leaves_a_valid_prefix_and_resume_completes_it(self):
        self.interrupt(signal.SIGKILL)
        self.resume(self.check_partial())

    def test_control_c_commits_what_was_packed_and_says_how_to_go_on(self):
        process = self.interrupt(signal.SIGINT)
        self.assertEqual(process.returncode, 1)
        self.assertIn("--resume", process.err)
        self.assertEqual(len(process.err.splitlines()), 1)
        packed = self.check_partial()
        self.assertIn(f"after {packed} of", process.err)
        self.resume(packed)

    def test_a_full_disk_is_an_error_and_resume_completes_it(self):
        def limit():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (3_000_000, 3_000_000))
        self.fail(*self.arguments(), preexec_fn=limit, naming=["out.partial", "free", "--resume"])
        self.resume(self.check_partial())

    def test_an_interrupted_packing_is_neither_overwritten_nor_mixed(self):
        self.interrupt(signal.SIGKILL)
        packed = self.check_partial()
        self.fail(*self.arguments(), code=2, naming=["out.partial", "--resume", "--force"])
        self.fail(*self.arguments("--resume", "--seed", "9"), code=2, naming="out.partial")
        self.fail(*self.arguments("--resume", count=30), code=2, naming="out.partial")
        self.assertEqual(self.check_partial(), packed)
        self.succeed(*self.arguments("--force", count=30))
        self.assertEqual(len(records(self.path("out"))), 30)

    def test_records_that_are_not_the_sources_are_noticed(self):
        self.interrupt(signal.SIGKILL)
        packed = self.check_partial()
        write_records(self.partial(), [(b"%08d" % (packed - 1), b"something else")])
        self.fail(*self.arguments("--resume"), naming="out.partial")

    def test_two_processes_do_not_pack_in_one_place(self):
        self.interrupt(signal.SIGKILL)
        with open(os.path.join(self.partial(), "forebay-pack.json"), "rb") as plan:
            fcntl.flock(plan, fcntl.LOCK_EX)
            self.fail(*self.arguments("--resume"), naming="another process")


    def test_the_one_that_comes_second_says_who_packs_and_leaves_it_alone(self):
        first = subprocess.Popen([COMMAND, *self.arguments()], stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE)
        try:
            while not os.path.exists(os.path.join(self.partial(), "data.mdb")):
                time.sleep(0.01)
            for more in ([], ["--resume"], ["--force"]):
                self.fail(*self.arguments(*more), naming=[
                    f"another process ({first.pid} of this machine) is packing here",
                    "name another DEST"])
            self.assertIsNone(first.poll())
        finally:
            first.kill()
            first.communicate()
        self.succeed(*self.arguments("--force", count=30))
        self.assertEqual(len(records(self.path("out"))), 30)


class ExistingDestination(CommandTest):
    def pack(self, *more):
        return ["pack", "-", self.path("out"), "--from", "synthetic", *SHAPE, "--count", "5", *more]

    def test_it_is_kept_unless_forced(self):
        self.succeed(*self.pack())
        before = records(self.path("out"))
        self.fail(*self.pack("--seed", "1"), code=2, naming=["out", "--force"])
        self.fail(*self.pack("--resume"), code=2, naming="out")
        self.assertEqual(records(self.path("out")), before)
        self.succeed(*self.pack("--seed", "1", "--force"))
        self.assertNotEqual(records(self.path("out")), before)

    def test_force_replaces_nothing_but_data_sets(self):
        os.makedirs(self.path("out"))
        self.write("out/thesis.tex", b"years of work")
        self.fail(*self.pack("--force"), code=2, naming="out")
        self.assertTrue(os.path.exists(self.path("out", "thesis.tex")))
        shutil.rmtree(self.path("out"))
        self.write("out", b"a file")
        self.fail(*self.pack("--force"), code=2, naming="out")

    def test_no_permission(self):
        options = self.as_someone_else()
        os.makedirs(self.path("closed"))
        os.chmod(self.path("closed"), 0o500)
        self.fail("pack", "-", self.path("closed", "out"), "--from", "synthetic", *SHAPE,
                  "--count", "5", naming="closed", **options)

    def test_parents_are_made_and_a_trailing_slash_does_no_harm(self):
        self.succeed("pack", "-", self.path("a", "b", "out") + "/", "--from", "synthetic", *SHAPE,
                     "--count", "5")
        self.assertEqual(len(records(self.path("a", "b", "out"))), 5)


if __name__ == "__main__":
    unittest.main()
