"""forebay pack --from folder: which files are which samples, as torchvision's ImageFolder has it.

Its rules, from its documentation: classes are the names of the folders in the root, sorted as
Python sorts text; links are followed; a class's samples are its files that end in one of some
extensions. Folders whose names no class has (hidden ones, what systems leave behind) are no
classes here.
"""

import os
import signal
import subprocess
import time
import unittest

from command import COMMAND, CommandTest, datum, png, records


def numbers(root):
    """ImageFolder's class_to_idx."""
    names = sorted(entry.name for entry in os.scandir(root) if entry.is_dir())
    return {name: number for number, name in enumerate(names)}


class FolderTest(CommandTest):
    def image(self, name, value=0):
        return self.write(name, png(3, 2, 2, bytes([value]) * 12))

    def arguments(self, *more, source="in", out="out"):
        return ["pack", self.path(source), self.path(out), "--from", "folder", *more]

    def packed(self, out="out"):
        """[(path, label, first pixel)]"""
        return [(key.split(b"_", 1)[1].decode(), datum(value)[5], datum(value)[4][0])
                for key, value in records(self.path(out))]


class Classes(FolderTest):
    NAMES = ("dog", "Zebra", "cat", "émeu", "a b", "10", "9")

    def make(self, root, names=NAMES):
        for number, name in enumerate(names):
            self.image(f"{root}/{name}/x.png", number)

    def test_they_are_numbered_as_imagefolder_does(self):
        self.make("in")
        summary = self.succeed_json(*self.arguments())
        expected = numbers(self.path("in"))
        self.assertEqual(summary["classes"], sorted(expected))
        self.assertEqual({path.split("/")[0]: label for path, label, _ in self.packed()}, expected)
        inspected = self.succeed_json("inspect", self.path("out"))
        self.assertEqual(inspected["classes"], sorted(expected))
        self.assertRegex(self.succeed("inspect", self.path("out")), r"classes +7: 10, 9, Zebra, a b")
        in_place = self.succeed_json("inspect", self.path("in"))
        self.assertEqual(in_place["classes"], sorted(expected))

    def test_a_split_gets_the_numbers_of_another(self):
        self.make("train")
        self.make("test", ("dog", "a b"))
        self.succeed(*self.arguments(source="train", out="packed"))
        names = self.write("names.txt", "\r\n".join(sorted(self.NAMES)).encode() + b"\n")
        expected = numbers(self.path("train"))
        for classes in (self.path("packed"), self.path("packed", "data.mdb"), self.path("train"), names):
            with self.subTest(classes=classes):
                self.succeed(*self.arguments("--classes", classes, "--force", source="test"))
                self.assertEqual({path.split("/")[0]: label for path, label, _ in self.packed()},
                                 {name: expected[name] for name in ("dog", "a b")})
                self.assertEqual(self.succeed_json("inspect", self.path("out"))["classes"],
                                 sorted(self.NAMES))

    def test_a_class_that_the_other_has_not_is_refused(self):
        self.make("in", ("dog", "yak"))
        names = self.write("names.txt", b"cat\ndog\n")
        self.fail(*self.arguments("--classes", names), code=2, naming=["'yak'", "2 classes", names])
        for text, line in ((b"cat\n\ndog\n", "line 2"), (b"cat\ndog\ncat\n", "line 3")):
            self.write("names.txt", text)
            self.fail(*self.arguments("--classes", names), naming=[names, line])
        self.make("plain", ("only",))
        os.rename(self.path("plain", "only", "x.png"), self.path("plain", "x.png"))
        os.rmdir(self.path("plain", "only"))
        self.fail(*self.arguments("--classes", self.path("plain")), naming=["does not name its classes"])

    def test_a_list_of_names_that_is_far_too_long_is_refused(self):
        self.make("in", ("dog",))
        self.succeed(*self.arguments())
        os.truncate(self.path("out", "data.mdb.classes"), (64 << 20) + 1)
        line = self.fail("verify", self.path("out"), naming=["data.mdb.classes",
                                                             "the name of one class a line"])
        self.assertNotIn("provenance", line)

    def test_names_are_bytes(self):
        for name in (b"cat\xff", b"line\nend", b"back\\slash"):
            os.makedirs(os.path.join(os.fsencode(self.path("in")), name))
            with open(os.path.join(os.fsencode(self.path("in")), name, b"x.png"), "wb") as file:
                file.write(png(3, 2, 2, bytes(12)))
        self.succeed(*self.arguments())
        with open(self.path("out", "data.mdb.classes"), "rb") as file:
            self.assertEqual(file.read(), b"back\\\\slash\ncat\xff\nline\\nend\n")
        self.succeed(*self.arguments("--classes", self.path("out"), out="again"))
        self.assertEqual(records(self.path("out")), records(self.path("again")))
        for place in ("out", "in"):
            self.assertEqual(self.succeed_json("inspect", self.path(place))["classes"],
                             ["back\\slash", "cat\ufffd", "line\nend"])

    def test_other_sources_take_names_and_copies_keep_them(self):
        source, *_ = self.idx_source()
        names = self.write("batches.meta.txt", b"airplane\nautomobile\nbird\n\n")
        self.succeed("pack", source, self.path("idx"), "--from", "idx", "--classes", names)
        self.succeed("pack", self.path("idx"), self.path("copy"), "--from", "synthetic", "--count", 40)
        for place in ("idx", "copy"):
            self.assertEqual(self.succeed_json("inspect", self.path(place))["classes"],
                             ["airplane", "automobile", "bird"])

    def test_databases_one_after_the_other_agree_or_are_refused(self):
        self.make("in")
        self.make("more", ("dog", "cat"))
        self.succeed(*self.arguments())
        self.succeed(*self.arguments(source="more", out="more.lmdb"))
        both = f"{self.path('out')},{self.path('more.lmdb')}"
        self.fail("inspect", both, code=2, naming=["'cat'", "number 0", "number 4", "--classes"])
        self.succeed(*self.arguments("--force", "--classes", self.path("out"), source="more",
                                     out="more.lmdb"))
        self.assertEqual(len(self.succeed_json("inspect", both)["classes"]), 7)


class LeftOut(FolderTest):
    def make(self):
        """Samples, and beside them what the names say."""
        self.image("elsewhere/far/2.png", 2)
        self.image("in/cat/1.png", 1)
        os.symlink(self.path("elsewhere/far/2.png"), self.path("in/cat/2.png"))
        os.symlink(self.path("elsewhere/far"), self.path("in/far"))
        os.symlink("..", self.path("in/cat/back"))
        os.symlink("in", self.path("in/self"))
        for name in ("cat/notes.txt", "cat/sub/a.json", "far/README", "far/x.npy"):
            self.write("in/" + name, b"no image")
        for name in ("cat/lost.png", "lost"):
            os.symlink("/nowhere/y.png", self.path("in", name))
        self.image("in/beside.png")
        for name in (".git/1.png", "__MACOSX/cat/._1.png", "cat/.ipynb_checkpoints/1.png",
                     "cat/Thumbs.db", "cat/._1.png", "cat/.DS_Store"):
            self.image("in/" + name)

    def test_it_is_counted_by_reason(self):
        self.make()
        os.unlink(self.path("in/cat/back"))
        os.unlink(self.path("in/self"))
        text = self.succeed(*self.arguments())
        self.assertIn("7 left out: 4 not images, 2 broken links, 1 outside a class; ", text)
        for name in ("cat/notes.txt", "cat/lost.png", "beside.png"):
            self.assertIn(f"'{name}'", text)
        self.assertEqual(self.packed(), [("cat/1.png", 0, 1), ("cat/2.png", 0, 2), ("far/2.png", 1, 2)])
        self.assertIn("1 hidden", text)

    def test_a_class_without_samples_is_told(self):
        self.make()
        self.write("in/none/notes.txt", b"no image")
        note = "class 'none' has a number and no samples"
        self.assertIn(f"note: {note}", self.succeed(*self.arguments()))
        summary = self.succeed_json(*self.arguments("--force"))
        self.assertEqual((summary["notes"], summary["classes"]), ([note], ["cat", "far", "none"]))

    def test_splits_that_are_taken_for_classes_are_told(self):
        for name in ("Train/cat/1", "Train/dog/2", "val/cat/3"):
            self.image(f"in/{name}.png")
        note = "'Train', 'val' are taken for classes: if splits are meant, give the folder of one of them"
        self.assertIn(f"note: {note}", self.succeed(*self.arguments()))
        self.image("in/bus/4.png")
        self.assertEqual(self.succeed_json(*self.arguments("--force"))["notes"], [])

    def test_links_that_lead_back_are_noticed(self):
        self.make()
        os.mkfifo(self.path("in/cat/pipe.png"))
        summary = self.succeed_json(*self.arguments())
        self.assertEqual(summary["left_out"],
                         {"not images": 4, "broken links": 3, "outside a class": 1,
                          "not files": 1, "links that lead back": 1, "hidden": 1})
        self.assertEqual(summary["classes"], ["cat", "far"])
        os.unlink(self.path("in/self"))
        os.symlink(".", self.path("in/self"))
        self.assertEqual(self.succeed_json(*self.arguments("--force"))["classes"], ["cat", "far"])

    def test_the_same_is_told_where_folders_are_read_in_place(self):
        self.make()
        os.unlink(self.path("in/cat/back"))
        os.unlink(self.path("in/self"))
        line = "7 left out: 4 not images, 2 broken links, 1 outside a class; "
        inspected = self.succeed_json("inspect", self.path("in"))
        self.assertEqual(len([note for note in inspected["notes"] if note.startswith(line)]), 1)
        self.assertEqual((inspected["classes"], inspected["entries"]), (["cat", "far"], 3))
        result = self.run_command("samples", self.path("in"), "--batch", "1", "--epochs", "1")
        self.assertEqual(result.stderr.count(line), 1, result.stderr)


class Order(FolderTest):
    NAMES = ("c/2.png", "c/10.png", "c/sub/1.png", "c/sub-1/1.png", "c/sub/deep/1.png", "c/sub.x/1.png",
             "c/S/1.png", "c/a b.png", "c-1/1.png", "C/1.png", "c.d/1.png")

    def test_it_is_imagefolders_also_in_folders_of_a_class(self):
        for number, name in enumerate(self.NAMES):
            self.image("in/" + name, number)
        expected = []
        for name, label in numbers(self.path("in")).items():
            for folder, _, files in sorted(os.walk(self.path("in", name), followlinks=True)):
                expected += [(os.path.relpath(os.path.join(folder, file), self.path("in")), label)
                             for file in sorted(files)]
        self.succeed(*self.arguments())
        self.assertEqual([(path, label) for path, label, _ in self.packed()], expected)
        self.assertIn("none of 11 samples differ",
                      self.succeed("verify", self.path("out"), "--against", self.path("in")))


class Many(FolderTest):
    def test_folders_of_more_files_than_can_be_mapped_are_shown_and_checked(self):
        for number in range(4200):
            self.image(f"in/{number % 2}/{number:04}.png")
        self.assertEqual(self.succeed_json("inspect", self.path("in"))["entries"], 4200)
        self.assertIn("4,200 samples", self.succeed("verify", self.path("in")))
        self.succeed("order", self.path("in"), "--order", "shuffled", "--batch", 100)


class BadFiles(FolderTest):
    BAD = ("cat/b.png", "dog/a.png", "dog/d.png")

    def make(self):
        for number, name in enumerate(("cat/a.png", "cat/b.png", "cat/c.png", "dog/a.png",
                                       "dog/b.png", "dog/c.png", "dog/d.png")):
            self.image("in/" + name, number)
        for name in self.BAD:
            self.write("in/" + name, b"no image at all")

    def test_all_are_named_in_one_go(self):
        self.make()
        line = self.fail(*self.arguments(), naming=[*self.BAD, "3 of 7 files", "--resume", "--on-error skip"])
        self.assertEqual(line.count("a.png"), 1)
        self.assertFalse(os.path.exists(self.path("out")))

    def test_what_mends_all_of_them_is_said(self):
        self.image("in/a/1.png")
        for number in (2, 3):
            self.write(f"in/a/{number}.png", png(3, 4, 4, bytes(48)))
        self.fail(*self.arguments(), naming=["2 of 3 files", "a/2.png", "a/3.png", "--shape", "--resume"])
        for number in range(200):
            self.write(f"in/b/{number:03}.png", png(3, 4, 4, bytes(48)))
        line = self.fail(*self.arguments("--force"), naming=["100 of 101 files", "not looked at"])
        self.assertEqual(line.count(".png"), 100)

    def test_where_a_read_fails_it_ends(self):
        refused = "/sys/class/net/lo/duplex"  # a file to stat(2), of which no byte can be read
        if not os.path.isfile(refused):
            self.skipTest(f"there is no {refused}")
        for number, name in enumerate(("a/0.png", "a/1.png", "a/3.png")):
            self.image("in/" + name, number)
        os.symlink(refused, self.path("in/a/2.png"))
        for options in ("--on-error", "skip"), ():
            line = self.fail(*self.arguments("--force", *options),
                             naming=["in/a/2.png", "offset 0", "the read failed", "--resume"])
            self.assertNotIn("permissions", line)
            self.assertEqual(len(records(self.path("out.partial"))), 2)
        os.unlink(self.path("in/a/2.png"))
        self.image("in/a/2.png", 9)
        self.assertEqual(self.succeed_json(*self.arguments("--resume"))["resumed_from"], 2)
        self.assertEqual([pixel for *_, pixel in self.packed()], [0, 1, 9, 2])

    def test_nothing_packed_leaves_nothing(self):
        self.write("in/a/0.png", b"no image")
        self.fail(*self.arguments(), naming="a/0.png")
        self.assertFalse(os.path.exists(self.path("out.partial")))
        self.image("in/a/0.png")
        for options in ("--resume",), ("--force",), ():
            with self.subTest(options=options):
                self.succeed(*self.arguments(*options, out="out" + "".join(options)))

    def test_packing_goes_on_after_they_were_mended_or_removed(self):
        self.make()
        self.fail(*self.arguments("--commit-every", 1), naming=self.BAD)
        self.assertEqual([path for path, *_ in self.packed("out.partial")], ["cat/a.png"])
        self.image("in/cat/b.png", 1)
        os.unlink(self.path("in/dog/a.png"))
        self.fail(*self.arguments("--resume"), naming=["dog/d.png", "--resume"])
        self.image("in/dog/d.png", 6)
        text = self.succeed(*self.arguments("--resume"))
        self.assertIn("continued behind 5 records", text)
        resumed = records(self.path("out"))
        self.succeed(*self.arguments("--force"))
        self.assertEqual(resumed, records(self.path("out")))
        self.assertEqual([pixel for *_, pixel in self.packed()], [0, 1, 2, 4, 5, 6])
        self.assertEqual(sorted(os.listdir(self.path("out"))),
                         ["data.mdb", "data.mdb.classes", "data.mdb.forebay", "lock.mdb"])

    def test_they_are_skipped_and_listed(self):
        self.make()
        summary = self.succeed_json(*self.arguments("--on-error", "skip"))
        self.assertEqual([one["file"] for one in summary["skipped"]], list(self.BAD))
        self.assertEqual(summary["records"], 4)
        self.assertEqual([(path, label) for path, label, _ in self.packed()],
                         [("cat/a.png", 0), ("cat/c.png", 0), ("dog/b.png", 1), ("dog/c.png", 1)])
        self.assertEqual([key[:8] for key, _ in records(self.path("out"))],
                         [b"%08d" % number for number in range(4)])
        text = self.succeed(*self.arguments("--on-error", "skip", "--force"))
        self.assertIn("3 skipped", text)
        self.succeed("verify", self.path("out"))
        for name in ("cat/a.png", "cat/c.png", "dog/b.png", "dog/c.png"):
            self.write("in/" + name, b"no image either")
        self.fail(*self.arguments("--on-error", "skip", "--force"), naming=["7 of 7", "cat/a.png"])

    def test_what_is_not_complete_is_no_data_set(self):
        self.make()
        self.fail(*self.arguments(), naming=self.BAD)
        partial = self.path("out.partial")
        self.assertEqual(len(records(partial)), 1)
        for name in partial, partial + "/", os.path.join(partial, "data.mdb"):
            for command in ("verify", name), ("inspect", name), (
                    "samples", name, "--batch", 1, "--epochs", 1):
                with self.subTest(command=command):
                    self.fail(*command, code=2, naming=[partial, "interrupted", "--resume"])
        self.fail("verify", self.path("out*"), code=2, naming=[partial, "interrupted"])
        self.succeed("pack", "-", self.path("out2"), "--from", "synthetic", "--shape", "1x2x2",
                     "--count", 5)
        self.assertEqual(self.succeed_json("verify", self.path("out*"))["samples"], 5)
        os.rename(partial, self.path("moved"))  # for who wants what is there
        self.succeed("verify", self.path("moved"))

    def test_what_failed_may_be_skipped_by_the_run_that_goes_on(self):
        self.make()
        self.fail(*self.arguments(), naming=self.BAD)
        summary = self.succeed_json(*self.arguments("--resume", "--on-error", "skip"))
        self.assertEqual((summary["resumed_from"], summary["records"]), (1, 4))
        self.assertEqual([one["file"] for one in summary["skipped"]], list(self.BAD))

    def test_a_packed_file_that_was_changed_or_removed_is_noticed(self):
        self.make()
        self.image("in/cat/b.png", 1)
        self.fail(*self.arguments(), naming="dog/a.png")
        before = records(self.path("out.partial"))
        self.assertEqual(len(before), 3)
        self.image("in/cat/b.png", 99)
        self.fail(*self.arguments("--resume"), naming=["changed", "--force"])
        os.unlink(self.path("in/cat/b.png"))
        self.fail(*self.arguments("--resume"), naming=["removed", "--force"])
        self.assertEqual(records(self.path("out.partial")), before)

    def test_classes_that_came_or_went_are_another_data_set(self):
        self.make()
        self.fail(*self.arguments(), naming=self.BAD)
        self.image("in/bee/x.png")
        self.fail(*self.arguments("--resume"), code=2, naming="--force")

    def test_a_killed_run_goes_on_where_it_stood_also_shuffled(self):
        for number in range(3000):
            self.image(f"in/c{number % 7}/{number:05}.png", number % 256)
        for bad in (13, 1333, 2999):
            self.write(f"in/c{bad % 7}/{bad:05}.png", b"no image")
        options = ["--on-error", "skip", "--shuffle", "--seed", "5", "--commit-every", "25"]
        process = subprocess.Popen([COMMAND, *map(str, self.arguments(*options))],
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        data = self.path("out.partial", "data.mdb")
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and process.poll() is None:
            if os.path.exists(data) and os.path.getsize(data) > 60_000:
                break
            time.sleep(0.002)
        process.send_signal(signal.SIGKILL)
        process.wait()
        self.assertFalse(os.path.exists(self.path("out")), "it was too quick")
        packed = records(self.path("out.partial"))
        last = packed[-1][0].split(b"_", 1)[1].decode()
        done = {key.split(b"_", 1)[1].decode() for key, _ in packed}
        gone = next(name for number in range(3000) if number not in (13, 1333, 2999)
                    for name in [f"c{number % 7}/{number:05}.png"] if name not in done)
        self.assertNotEqual(gone, last)
        os.unlink(self.path("in", gone))
        summary = self.succeed_json(*self.arguments("--resume", *options))
        self.assertEqual(summary["resumed_from"], len(packed))
        self.assertEqual((summary["records"], len(summary["skipped"])), (2996, 3))
        resumed = records(self.path("out"))
        self.succeed(*self.arguments("--force", *options))
        self.assertEqual(resumed, records(self.path("out")))


if __name__ == "__main__":
    unittest.main()
