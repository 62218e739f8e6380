#!/usr/bin/python3
"""Storage that fails in the middle of a run: every strategy ends on all ranks, with one line that
says what happened, in bounded time, and never with a wrong sample.

The faults come from the modelled parallel file system of the benchmarks (bench/pfs): a device that
answers EIO, a server that hangs, answers that are cut short, mounts that refuse to map. What was
printed before the end must be the beginning of what is right.
"""

import concurrent.futures
import io
import os
import re
import sys
import tarfile
import tempfile
import unittest

import launch
import liblmdb

try:
    import h5py
except ImportError:
    h5py = None

_ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(_ROOT, "bench", "pfs"))
import nodes  # noqa: E402

_PFS = os.environ.get("FOREBAY_PFS", os.path.join(_ROOT, "build/release/bench/pfs/forebay-pfs"))
_SKIPPED = 77
_FAST = ("--force", "--bandwidth", "10GB/s", "--latency", "0ms", "--seek-penalty", "0ms",
         "--attr-timeout", "0s")
_STRATEGIES = ("lmdb", "lmm", "lmm-dm", "lmm-dio", "lmm-dio-prov", "lmm-dio-prov-coal",
               "lmm-dio-prov-coal-stag", "auto")
_MAPPED = ("lmm", "lmm-dm")
_BATCH = ("--batch", 30, "--coalesce", 4)
# Each virtual node has one rank, hence a root; or one root reads for all three.
_LAYOUTS = ({"FOREBAY_RANKS_PER_NODE": 1}, {})


class Faults(launch.AcceptanceCase):

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.backing = os.path.join(cls.scratch, "backing")
        os.mkdir(cls.backing)
        cls.original = os.path.join(cls.backing, "train")
        packed = launch.run("pack", "-", cls.original, "--from", "synthetic", "--preset",
                            "cifar10-large", "--count", 6000)
        assert packed.code == 0, packed.err
        started = launch.time.monotonic()
        cls.right = launch.run("samples", cls.original, *_BATCH, "--strategy", "lmm", ranks=3,
                               timeout=120).out.splitlines()
        assert len(cls.right) == 6000, len(cls.right)
        cls.start_seconds = launch.time.monotonic() - started
        cls.middle = os.stat(os.path.join(cls.original, "data.mdb")).st_size // 2

    def start_file_system(self, *options):
        """Another one of the same files, and where it is."""
        folder = tempfile.mkdtemp(dir=self.scratch)
        mount = os.path.join(folder, "m0")
        os.mkdir(mount)
        file_system = nodes.FileSystem(_PFS, self.backing, [mount], folder, [*_FAST, *options])
        self.addCleanup(file_system.stop)
        return file_system, mount

    def mount(self, *options):
        self.file_system, mount = self.start_file_system(*options)
        return os.path.join(mount, "train")

    def samples(self, dataset, *arguments, layout=_LAYOUTS[0], timeout=90):
        return launch.run("samples", dataset, *_BATCH, *arguments, ranks=3, env=layout,
                          timeout=timeout)

    def assert_right_beginning(self, result):
        lines = result.out.splitlines()
        self.assertEqual(lines, self.right[:len(lines)])

    def assert_failed(self, result, naming, seconds):
        self.assertNotIn(result.code, (0, 2), result.err[-500:])
        self.assertEqual(len(result.error_lines()), 1, result.err[-2000:])
        self.assertIn(naming, result.error_lines()[0])
        self.assertLess(result.seconds, seconds)
        self.assert_right_beginning(result)

    def test_a_device_error_reaches_all_ranks(self):
        dataset = self.mount()
        for number, strategy in enumerate(launch.some(_STRATEGIES, every=2)):
            self.file_system.command(f"fail train/data.mdb {self.middle}")
            with self.subTest(strategy=strategy):
                result = self.samples(dataset, "--strategy", strategy,
                                      layout=_LAYOUTS[number % 2])
                self.assert_failed(result, "data.mdb", 30)
            self.file_system.command("clear")
        self.assertEqual(self.samples(dataset).out.splitlines(), self.right, "nothing stays broken")

    def test_turns_are_given_back_when_a_root_fails(self):
        dataset = self.mount()
        self.file_system.command(f"fail train/data.mdb {self.middle}")
        for by, group in launch.some((("token", 1), ("token", 2), ("ticket", 1), ("ticket", 2)),
                                     every=3):
            with self.subTest(by=by, group=group):
                result = self.samples(dataset, "--strategy", "lmm-dio-prov-coal-stag",
                                      "--stagger", group, "--stagger-by", by)
                self.assert_failed(result, "data.mdb", 30)

    def test_a_server_that_hangs_is_given_up(self):
        for number, (strategy, engine) in enumerate(launch.some((
                ("lmm-dio", "pread"), ("lmm-dio-prov", "uring"),
                ("lmm-dio-prov-coal-stag", "pread"), ("auto", "uring")), every=3)):
            with self.subTest(strategy=strategy, engine=engine):
                dataset = self.mount()
                self.file_system.command(f"stall train/data.mdb {self.middle} 60s")
                result = self.samples(dataset, "--strategy", strategy, "--engine", engine,
                                      "--timeout", "3s", layout=_LAYOUTS[number % 2])
                self.assert_failed(result, "data.mdb", 30)
                self.file_system.stop()

    def assert_given_up(self, result, *naming, ranks=3):
        """Within --timeout, which is 3 s, and 2 s more; starting takes its time as well."""
        self.assertEqual(result.code, 1, result.err[-2000:])
        self.assertEqual(len(result.error_lines()), 1, result.err[-2000:])
        for text in ("no answer from the file system for 3 s", "offset ", *naming):
            self.assertIn(text, result.error_lines()[0])
        self.assertLess(result.seconds, 3 + 2 + (2 * self.start_seconds if ranks > 1 else 1))
        self.assertGreater(result.seconds, 3)

    def test_a_page_fault_that_never_ends_is_given_up(self):
        cases = [(*_BATCH, "--strategy", strategy) for strategy in ("lmdb", "lmm", "lmm-dm")]
        cases += 2 * [("--batch", 30, "--order", "in_memory", "--hold", "memory", "--engine", "mmap")]
        for number, arguments in enumerate(launch.some(cases, every=1, on_mpich=2)):
            with self.subTest(arguments=arguments):
                dataset = self.mount()
                self.file_system.command(f"stall train/data.mdb {self.middle} 60s")
                result = launch.run("samples", dataset, *arguments, "--timeout", "3s", ranks=3,
                                    timeout=60, env=_LAYOUTS[number % 2])
                self.assert_given_up(result, "data.mdb")
                if "in_memory" not in arguments:
                    self.assert_right_beginning(result)
                self.file_system.stop()

    def test_opening_is_given_up_in_every_command(self):
        if h5py:
            with h5py.File(os.path.join(self.backing, "some.h5"), "w") as file:
                file["x"] = [[number] * 50 for number in range(2000)]
        for command in (("inspect",), ("verify",), ("provenance", "--check"),
                        ("order", "--batch", 30), ("samples", "--batch", 30)):
            for name in ("train", "some.h5") if h5py else ("train",):
                if name == "some.h5" and command[0] == "provenance":
                    continue  # is for LMDB alone
                ranks = 3 if command[0] == "samples" else 0
                with self.subTest(command=command[0], name=name):
                    dataset = os.path.join(os.path.dirname(self.mount()), name)
                    file = "train/data.mdb" if name == "train" else name
                    self.file_system.command(f"stall {file} 100 60s")
                    result = launch.run(command[0], dataset, *command[1:], "--timeout", "3s",
                                        ranks=ranks, timeout=60)
                    self.assert_given_up(result, os.path.basename(file), ranks=ranks)
                    self.file_system.stop()

    def test_who_opens_together_hears_of_the_root_that_has_no_answer(self):
        for part in range(8):
            with tarfile.open(os.path.join(self.backing, f"part-{part}.tar"), "w") as file:
                for number in range(20):
                    file.addfile(tarfile.TarInfo(f"{part}{number:03}.bin"), io.BytesIO())
        for order in ("strided", "shuffled"):
            with self.subTest(order=order):
                dataset = os.path.join(os.path.dirname(self.mount()), "part-*.tar")
                self.file_system.command("stall part-7.tar 600 60s")
                result = launch.run("samples", dataset, "--order", order, "--batch", 30,
                                    "--timeout", "3s", ranks=3, timeout=60, env=_LAYOUTS[0])
                self.assert_given_up(result, "part-")  # which of those its server has
                self.file_system.stop()

    @unittest.skipUnless(h5py, "h5py makes the file")
    def test_ranks_have_ended_in_time_after_a_read_without_an_answer(self):
        """Ranks, as the launcher may sleep for 2 s more once one has failed."""
        dataset = os.path.join(os.path.dirname(self.mount()), "long.h5")
        with h5py.File(os.path.join(self.backing, "long.h5"), "w") as file:
            file["x"] = [[number] * 50 for number in range(20000)]
        self.file_system.command("stall long.h5 4MB 60s")
        job = launch.Job([launch.COMMAND, "samples", dataset, "--batch", 30, "--order", "shuffled",
                          "--timeout", "3s"], 2)
        job.wait_for_ranks(2)
        launch.wait_until(lambda: not job.ranks(), 3 + 2 + 2 * self.start_seconds, "ranks to end")
        result = job.wait()
        self.assertEqual(len(result.error_lines()), 1, result.err[-2000:])
        self.assertIn("long.h5: offset ", result.error_lines()[0])
        self.assertIn("no answer from the file system for 3 s", result.error_lines()[0])

    def test_verifying_is_given_up_in_the_middle(self):
        for engine in ("mmap", "pread"):
            with self.subTest(engine=engine):
                dataset = self.mount()
                self.file_system.command(f"stall train/data.mdb {self.middle} 60s")
                result = launch.run("verify", dataset, "--engine", engine, "--timeout", "3s",
                                    timeout=60)
                self.assert_given_up(result, "data.mdb", ranks=0)
                self.file_system.stop()

    def test_packing_ends_where_a_read_fails(self):
        # A device that answers EIO says nothing of the file.
        folder = os.path.join(self.backing, "images", "a")
        os.makedirs(folder)
        for number in range(3):
            with open(os.path.join(folder, f"{number}.pgm"), "wb") as file:
                file.write(b"BM no image at all")
        images = os.path.join(os.path.dirname(self.mount()), "images")
        self.file_system.command("fail images/a/1.pgm 0")
        result = launch.run("pack", images, os.path.join(self.scratch, "packed"), "--from",
                            "folder", "--on-error", "skip")
        self.assertEqual(result.code, 1, result.err)
        line, = result.error_lines()
        self.assertIn("images/a/1.pgm: offset 0: the read failed", line)

    def give_up_all(self, cases):
        """Each case: the file that hangs, from where, and the command, in which M is the mount.
        They mostly wait, so they do it together."""

        def run(case):
            file, offset, ranks, command, variables = case
            file_system, mount = self.start_file_system()
            file_system.command(f"stall {file} {offset} 60s")
            try:
                words = [str(word).replace("M/", mount + "/") for word in command]
                return launch.run(*words, "--timeout", "3s", ranks=ranks, timeout=60,
                                  env={name: text.replace("M/", mount + "/")
                                       for name, text in variables.items()})
            finally:
                file_system.stop()

        with concurrent.futures.ThreadPoolExecutor(6) as pool:
            for (file, _, ranks, command, _), result in zip(cases, pool.map(run, cases)):
                with self.subTest(file=file, command=" ".join(map(str, command))):
                    self.assertEqual(result.code, 1, result.err[-2000:])
                    self.assertEqual(len(result.error_lines()), 1, result.err[-2000:])
                    line = result.error_lines()[0]
                    self.assertRegex(line, re.escape(file) + r": offset \d+: no answer from the "
                                     "file system for 3 s")
                    # Room for six that start at once, and for the trainer's libraries.
                    self.assertLess(result.seconds, 3 + 2 + (2 * self.start_seconds + 4), line)
                    self.assertGreater(result.seconds, 3)

    def back(self, name, content):
        """A file behind the mounts."""
        path = os.path.join(self.backing, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(content)
        return path

    def new(self):
        """Where something may be packed to."""
        return os.path.join(tempfile.mkdtemp(dir=self.scratch), "packed")

    def test_files_beside_the_data_that_hang_are_given_up(self):
        """Lists, names and numbers of classes, and what is kept in the cache."""
        as_raw = (self.back("raw", bytes(4800)), self.new(), "--from", "raw", "--shape", "3x4x4")
        self.back("labels", b"0\n" * 100)
        names = self.back("names", b"a\n")
        self.back("list", b" ".join(b"%d" % number for number in range(100)))
        named = launch.run("pack", as_raw[0], os.path.join(self.backing, "named"), *as_raw[2:],
                           "--classes", names)
        self.assertEqual(named.code, 0, named.err)
        liblmdb.write(os.path.join(self.backing, "listed"), [(b"%04d" % i, bytes(300 + i * i))
                                                             for i in range(100)])
        self.back("listed/meta_info.txt", b"".join(b"%04d.png (1,1,3) 1\n" % i for i in range(100)))
        cached = liblmdb.write(os.path.join(self.backing, "cached"),
                               [(b"%06d" % i, bytes(300 + i * 7 % 900)) for i in range(2000)])
        kept = os.path.join(self.backing, "cache")
        first = launch.run("samples", cached, *_BATCH, env={"XDG_CACHE_HOME": kept})
        self.assertEqual(first.code, 0, first.err)
        (entry,) = os.listdir(os.path.join(kept, "forebay"))
        by_list = ("samples", "M/train", "--batch", 30, "--order", "listed", "--list", "M/list")
        self.give_up_all([
            ("list", 0, 0, by_list, {}),
            ("list", 0, 2, by_list, {}),
            ("list", 0, 0, ("order", "--samples", 100, "--list", "M/list"), {}),
            ("labels", 0, 0, ("pack", *as_raw, "--labels", "M/labels"), {}),
            ("names", 0, 0, ("pack", *as_raw, "--classes", "M/names"), {}),
            ("named/data.mdb.classes", 0, 0, ("inspect", "M/named"), {}),
            ("named/data.mdb.classes", 0, 0, ("samples", "M/named", *_BATCH), {}),
            ("listed/meta_info.txt", 0, 0, ("samples", "M/listed", *_BATCH), {}),
            ("cache/forebay/" + entry, 0, 0, ("samples", "M/cached", *_BATCH),
             {"XDG_CACHE_HOME": "M/cache"})])

    def test_every_other_command_gives_up(self):
        as_raw = ("--from", "raw", "--shape", "3x4x4")
        self.back("raw", bytes(4800))
        self.back("folder/a/1.png", bytes(100))
        data, train = "train/data.mdb", ("train", "M/train", "--batch", 30, "--epochs", 1)
        cases = [
            ("raw", 100, 0, ("pack", "M/raw", self.new(), *as_raw), {}),
            ("folder/a/1.png", 0, 0, ("pack", "M/folder", self.new(), "--from", "folder"), {}),
            (data, 100, 0, ("bench", "read", "M/train", "--batch", 30), {}),
            (data, self.middle, 2, ("bench", "read", "M/train", "--batch", 30, "--epochs", 1), {}),
            (data, self.middle, 0, ("inspect", "M/train", "--dump", "all"), {}),
            (data, self.middle, 0, ("verify", "M/train", "--against", self.original), {}),
            (data, self.middle, 0, ("verify", self.original, "--against", "M/train"), {})]
        if os.path.exists(os.path.join(os.path.dirname(launch.COMMAND), "forebay-train")):
            cases += [(data, 100, 0, train, {}), (data, self.middle, 0, train, {})]
        self.give_up_all(cases)

    def test_short_answers_are_read_on(self):
        dataset = self.mount("--direct-io", "--short-reads")
        for strategy, engine in (("lmm", "pread"), ("lmm-dio-prov-coal", "pread"),
                                 ("auto", "uring")):
            with self.subTest(strategy=strategy, engine=engine):
                result = self.samples(dataset, "--strategy", strategy, "--engine", engine)
                self.assertEqual(result.code, 0, result.err[-500:])
                self.assertEqual(result.out.splitlines(), self.right)

    def test_where_nothing_maps_reads_take_over(self):
        dataset = self.mount("--direct-io")
        for strategy in _MAPPED:
            with self.subTest(strategy=strategy):
                result = self.samples(dataset, "--strategy", strategy)
                self.assertEqual(result.code, 0, result.err[-500:])
                self.assertEqual(result.out.splitlines(), self.right)
                self.assertIn("reading by pread", result.err)
                refused = self.samples(dataset, "--strategy", strategy, "--engine", "mmap")
                self.assert_failed(refused, "--engine pread", 30)

    def test_a_file_that_is_cut_or_replaced_while_open_gives_no_wrong_sample(self):
        path = os.path.join(self.original, "data.mdb")
        with open(path, "rb") as file:
            whole = file.read()
        for change, strategies in (("cut", ("lmm", "lmm-dm", "auto", "lmm-dio")),
                                   ("replaced", ("lmm-dio", "auto", "lmm-dm", "lmm"))):
            for strategy in launch.some(strategies, every=3):
                with self.subTest(change=change, strategy=strategy):
                    dataset = self.mount()
                    # Slow enough to be in the middle when the file changes.
                    self.file_system.command(f"stall train/data.mdb {self.middle} 3s")
                    job = launch.Job([launch.COMMAND, "samples", dataset, *_BATCH, "--strategy",
                                      strategy, "--timeout", "20s"], 3, _LAYOUTS[0])
                    job.wait_for_ranks(3)
                    launch.time.sleep(1.5)
                    if change == "cut":
                        os.truncate(path, self.middle)
                    else:
                        with open(path + ".new", "wb") as file:
                            file.write(b"\0" * len(whole))
                        os.rename(path + ".new", path)
                    result = job.wait(90)
                    with open(path + ".new", "wb") as file:
                        file.write(whole)
                    os.rename(path + ".new", path)
                    self.assert_right_beginning(result)
                    if result.code != 0:
                        self.assertEqual(len(result.error_lines()), 1, result.err[-1000:])
                    self.file_system.stop()


if __name__ == "__main__":
    if os.geteuid() != 0 or not os.path.exists("/dev/fuse"):
        print("skipped: mounting needs root and /dev/fuse")
        sys.exit(_SKIPPED)
    launch.main()
