#!/usr/bin/python3
"""Lists that come out of pipes, and samples that go into them: whoever is at the other end is waited
for as long as --timeout says, and a slow reader as long as it takes."""

import concurrent.futures
import os
import threading
import time

import launch

_BATCH = ("--batch", 30, "--epochs", 1)
_SHORT = ("--timeout", "1s")


class Pipes(launch.AcceptanceCase):

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.dataset = os.path.join(cls.scratch, "train")
        packed = launch.run("pack", "-", cls.dataset, "--from", "synthetic", "--preset",
                            "cifar10-large", "--count", 600)
        assert packed.code == 0, packed.err
        cls.ids = [number * 7 % 600 for number in range(600)]
        cls.list = os.path.join(cls.scratch, "list")
        with open(cls.list, "w", encoding="ascii") as file:
            file.write(" ".join(map(str, cls.ids)))
        cls.right = launch.run("samples", cls.dataset, *_BATCH, "--list", cls.list, "--order",
                               "listed").out.splitlines()
        assert len(cls.right) == 600

    def pipe(self, name):
        os.mkfifo(self.path(name))
        return self.path(name)

    def listed(self, path, *arguments, ranks=0, timeout=_SHORT):
        return launch.run("samples", self.dataset, *_BATCH, *timeout, "--order", "listed", "--list",
                          path, *arguments, ranks=ranks)

    def assert_given_up(self, result, path, text, most=3):
        self.assertEqual((result.code, result.out), (1, ""), result.err[-1000:])
        self.assertEqual(len(result.error_lines()), 1, result.err[-1000:])
        self.assertIn(text, result.error_lines()[0])
        self.assertIn(path, result.error_lines()[0])
        self.assertGreater(result.seconds, 1)
        self.assertLess(result.seconds, 1 + 2 + most)

    def test_a_list_that_nobody_writes_is_given_up(self):
        text = "offset 0: nobody has written to this pipe for 1 s"
        for ranks in (0, 2):
            with self.subTest(ranks=ranks):
                pipe = self.pipe(f"silent-{ranks}")
                self.assert_given_up(self.listed(pipe, ranks=ranks), pipe, text)
        result = launch.run("order", "--samples", 600, "--list", self.pipe("silent"), *_SHORT)
        self.assert_given_up(result, "silent", text)

    def test_a_list_that_stops_coming_is_given_up(self):
        pipe = self.pipe("stopping")

        def write():
            with open(pipe, "w", encoding="ascii") as file:
                file.write("1 2 3 ")
                file.flush()
                time.sleep(2.5)

        writer = threading.Thread(target=write)
        writer.start()
        result = self.listed(pipe)
        writer.join()
        self.assert_given_up(result, pipe, "offset 6: nobody has written to this pipe for 1 s")

    def test_a_list_is_read_as_it_comes(self):
        pipe = self.pipe("coming")

        def write():
            with open(pipe, "w", encoding="ascii") as file:
                for at in range(0, 600, 150):
                    time.sleep(0.6)  # in all longer than --timeout
                    file.write(" ".join(map(str, self.ids[at:at + 150])) + "\n")
                    file.flush()

        for ranks in (0, 2):
            with self.subTest(ranks=ranks):
                writer = threading.Thread(target=write)
                writer.start()
                result = self.listed(pipe, ranks=ranks)
                writer.join()
                self.assertEqual(result.code, 0, result.err)
                if ranks == 0:
                    self.assertEqual(result.out.splitlines(), self.right)
        command = (f"exec {launch.COMMAND} samples {self.dataset} --batch 30 --order listed "
                   f"--list <(cat {self.list})")
        result = launch.Job(["bash", "-c", command]).wait()
        self.assert_lines(result, self.right)

    def test_a_list_that_cannot_be_read_is_named(self):
        for path, text in ((self.path("none"), "no such file"),
                           (self.scratch, "the list of samples is a folder"),
                           ("/dev/null", "the list of samples is empty")):
            with self.subTest(path=path):
                result = self.listed(path)
                self.assertEqual((result.out, len(result.error_lines())), ("", 1), result.err)
                self.assertNotEqual(result.code, 0)
                self.assertIn(text, result.err)

    def test_output_that_nobody_reads_is_given_up(self):
        for ranks in (0, 2):
            with self.subTest(ranks=ranks):
                pipe = self.pipe(f"unread-{ranks}")
                result = self.listed(self.list, "--output", pipe, ranks=ranks)
                self.assert_given_up(result, pipe, "nobody has read from this pipe for 1 s")

    def test_a_slow_reader_has_its_time(self):
        """Other ranks give up one that they have not heard from for 5 s."""

        def read(order):
            pipe = self.pipe("slow-" + order)
            lines = []

            def slowly():
                with open(pipe, encoding="ascii") as file:
                    lines.append(file.readline())
                    time.sleep(6.5)
                    lines.extend(file)

            reader = threading.Thread(target=slowly)
            reader.start()
            result = launch.run("samples", self.dataset, *_BATCH, *_SHORT, "--order", order,
                                "--output", pipe, ranks=2)
            if result.code == 0:
                reader.join()
            return result, lines

        orders = ("strided", "shuffled", "in_memory")
        with concurrent.futures.ThreadPoolExecutor() as pool:
            for order, (result, lines) in zip(orders, pool.map(read, orders)):
                with self.subTest(order=order):
                    self.assertEqual((result.code, result.err), (0, ""))
                    self.assertEqual(len(set(lines)), 600)
                    right = launch.run("samples", self.dataset, *_BATCH, "--order", order, ranks=2)
                    self.assertEqual(sorted(lines), sorted(right.out.splitlines(keepends=True)))


if __name__ == "__main__":
    launch.main()
