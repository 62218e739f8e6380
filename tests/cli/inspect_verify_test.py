"""forebay inspect and forebay verify on sound and on damaged data sets."""

import io
import json
import os
import re
import shutil
import struct
import subprocess
import tarfile
import unittest

from command import COMMAND, CommandTest, encode_datum, liblmdb, png, write_records

PAGE = 4096


def datums(count, **replaced):
    """Numbered raw Datums; `replaced` maps "r3" to another value for record 3."""
    return [(b"%08d" % i,
             replaced.get(f"r{i}", encode_datum(1, 4, 5, bytes([i % 251]) * 20, i % 10)))
            for i in range(count)]


class Inspect(CommandTest):
    def test_json_tells_what_is_there(self):
        write_records(self.path("set"), datums(1000))
        report = self.succeed_json("inspect", self.path("set"))
        self.assertEqual(report["entries"], 1000)
        self.assertEqual(report["page_size"], PAGE)
        self.assertEqual(report["depth"], 2)
        self.assertEqual((report["keys"]["min"], report["keys"]["max"]), (8, 8))
        self.assertEqual(report["values"]["total"], 1000 * len(datums(1)[0][1]))
        self.assertEqual(sum(bucket["count"] for bucket in report["values"]["histogram"]), 1000)
        self.assertEqual(report["codec"], "datum")
        self.assertEqual(report["schema"], "image:u8[1x4x5],label:i32[]")
        self.assertEqual(report["fields"][0],
                         {"name": "image", "type": "u8", "shape": [1, 4, 5]})
        self.assertEqual(report["file_bytes"], os.path.getsize(self.path("set", "data.mdb")))
        self.assertGreater(report["read_amplification"], 1)
        self.assertEqual(report["sidecar"], "none")
        self.assertIn("8 digits", report["key_pattern"])

    def test_values_of_samples_are_dumped(self):
        values = datums(20)
        write_records(self.path("set"), values)
        for which, ids in (("3", [3]), ("7,0,7", [7, 0, 7]), ("all", range(20))):
            result = subprocess.run([COMMAND, "inspect", self.path("set"), "--dump", which],
                                    capture_output=True, check=True)
            self.assertEqual(result.stdout, b"".join(values[i][1] for i in ids))
        self.fail("inspect", self.path("set"), "--dump", "20", code=2, naming="sample 20")

    def test_text_names_the_same(self):
        write_records(self.path("set"), datums(1000))
        text = self.succeed("inspect", self.path("set"))
        for word in ["1,000", "image:u8[1x4x5],label:i32[]", "8 digits", "sidecar", "none"]:
            self.assertIn(word, text)

    def test_sizes_that_vary_show_a_histogram(self):
        write_records(self.path("set"), [(b"%d" % i, bytes(i * 10)) for i in range(10)])
        text = self.succeed("inspect", self.path("set"))
        self.assertIn("#", text)
        self.assertIn("64 - 127", text)

    def test_named_databases_are_listed_and_can_be_opened(self):
        environment = liblmdb.Environment(self.path("set"))
        for name in ("train", "test"):
            with environment.transaction(name=name, flags=liblmdb.CREATE) as transaction:
                for key, value in datums(len(name)):
                    transaction.put(key, value)
        environment.close()
        report = self.succeed_json("inspect", self.path("set"))
        self.assertEqual(report["named_databases"], [{"name": "test", "entries": 4},
                                                     {"name": "train", "entries": 5}])
        self.assertIn("#test", self.succeed("inspect", self.path("set")))
        named = self.succeed_json("inspect", self.path("set") + "#train")
        self.assertEqual((named["entries"], named["codec"]), (5, "datum"))

    def test_single_files_empty_sets_and_sidecars(self):
        write_records(self.path("file.mdb"), datums(3), liblmdb.NOSUBDIR)
        self.write("file.mdb.forebay", b"whatever")
        report = self.succeed_json("inspect", self.path("file.mdb"))
        self.assertEqual(report["entries"], 3)
        self.assertTrue(report["sidecar"].startswith("not used: "))
        write_records(self.path("empty"), [])
        self.assertEqual(self.succeed_json("inspect", self.path("empty"))["entries"], 0)
        self.assertIn("records", self.succeed("inspect", self.path("empty")))

    def test_first_values_that_cannot_be_decoded_are_reported(self):
        write_records(self.path("set"), [(b"%08d" % i, b"\xff\xff") for i in range(3)])
        report = self.succeed_json("inspect", self.path("set"), "--codec", "datum")
        self.assertEqual(report["schema"], "")
        self.assertIn("00000000", report["fields_problem"])

    def test_a_bad_first_value_says_nothing_of_the_others(self):
        write_records(self.path("set"), datums(3, r0=b"\xff\xff"))
        for codec in ("auto", "datum"):
            report = self.succeed_json("inspect", self.path("set"), "--codec", codec)
            self.assertEqual(report["schema"], "image:u8[1x4x5],label:i32[]")
            self.assertNotIn("fields_problem", report)

    def test_every_codec_is_taken_as_by_verify(self):
        write_records(self.path("set"), [(b"%d" % i, b"%07d " % i) for i in range(20)])
        for codec, fields in (("auto", "undecoded bytes"), ("bytes", "undecoded bytes"),
                              ("number", "number:i64[] (number)"), ("f32", "f32[] of any length (f32)"),
                              ("x:u16[2x2]", "x:u16[2x2] (raw)"), ("a:u8[4],b:f32[]", "b:f32[] (raw)")):
            with self.subTest(codec):
                self.assertIn(fields, self.succeed("inspect", self.path("set"), "--codec", codec))
                self.succeed("verify", self.path("set"), "--codec", codec)
        write_records(self.path("parts"), [(b"%s-%03d" % (part, i), b"%07d " % i) for i in range(9)
                                           for part in (b"image", b"label")])
        for codec in ("number", "image=i32,label=number", "label=y:u8[8]"):
            for command in ("inspect", "verify"):
                with self.subTest(codec, command=command):
                    self.succeed(command, self.path("parts"), "--codec", codec)
        for codec in ("tiff", "f33", "x:f33[3]", "label=tiff", "nobody=bytes"):
            for command in ("inspect", "verify"):
                with self.subTest(codec, command=command):
                    self.fail(command, self.path("parts"), "--codec", codec, code=2)

    def test_empty_first_values_say_nothing_of_the_others(self):
        write_records(self.path("some"), datums(3, r0=b""))
        self.assertEqual(self.succeed_json("inspect", self.path("some"))["codec"], "datum")
        write_records(self.path("all"), [(b"%d" % i, b"") for i in range(3)])
        report = self.succeed_json("inspect", self.path("all"))
        self.assertEqual(report["codec"], "bytes")
        self.assertNotIn("fields_problem", report)

    def test_nothing_is_written_beside_the_data(self):
        write_records(self.path("set"), datums(3))
        os.remove(self.path("set", "lock.mdb"))
        for command in ("inspect", "verify"):
            self.succeed(command, self.path("set"))
        self.assertEqual(os.listdir(self.path("set")), ["data.mdb"])


class Verify(CommandTest):
    def check_fault(self, *words, options=(), code=1):
        """One fault, named in the listing by all of `words`, and the summary on stderr."""
        result = self.run_command("verify", self.path("set"), *options)
        self.assertEqual(result.returncode, code, result.stdout + result.stderr)
        self.assertEqual(len(result.stderr.splitlines()), 1, result.stderr)
        listing = result.stdout.splitlines()[:-1]
        self.assertTrue(any(all(word in line for word in words) for line in listing),
                        result.stdout)
        return listing

    def test_sound_data_sets(self):
        write_records(self.path("set"), datums(1000))
        report = self.succeed_json("verify", self.path("set"))
        self.assertEqual((report["sound"], report["records"], report["faults"]), (True, 1000, []))
        self.assertEqual(report["schema"], "image:u8[1x4x5],label:i32[]")
        self.assertIn("sound", self.succeed("verify", self.path("set"), "--engine", "pread"))

    def test_bad_values_are_named_by_key_and_the_others_still_decode(self):
        good = datums(1)[0][1]
        for name, value in {"empty": b"", "cut": good[:-5], "text": b"not a datum",
                            "other shape": encode_datum(1, 5, 4, bytes(20), 1),
                            "lying shape": encode_datum(1, 4, 6, bytes(20), 1),
                            "no image": b"\x38\x01\x22\x05hello\x28\x01"}.items():
            for record in (0, 500):
                with self.subTest(name, record=record):
                    shutil.rmtree(self.path("set"), ignore_errors=True)
                    write_records(self.path("set"), datums(1000, **{f"r{record}": value}))
                    listing = self.check_fault("%08d" % record, "page")
                    self.assertEqual(len(listing), 1)

    def test_faults_are_limited_in_the_listing_but_all_counted(self):
        write_records(self.path("set"), datums(1) + [(b"%08d" % i, b"x") for i in range(1, 300)] +
                      [(b"9%07d" % i, datums(1)[0][1]) for i in range(1000)])
        result = self.run_command("verify", self.path("set"), "--max-faults", 5)
        self.assertEqual(result.returncode, 1)
        self.assertIn("299 faults", result.stderr)
        self.assertIn("294 more", result.stdout)

    def test_json_lists_page_and_key(self):
        write_records(self.path("set"), datums(1000, r700=b"x"))
        result = self.run_command("verify", self.path("set"), "--json")
        self.assertEqual(result.returncode, 1)
        report = json.loads(result.stdout)
        self.assertEqual(report["fault_count"], 1)
        self.assertEqual(report["faults"][0]["key"], "00000700")
        self.assertEqual(report["faults"][0]["offset"], report["faults"][0]["page"] * PAGE)

    def test_declared_schemas_are_checked(self):
        write_records(self.path("set"), [(b"%d" % i, bytes(60)) for i in range(10)])
        self.succeed("verify", self.path("set"), "--codec", "raw", "--schema", "image:u8[3x4x5]")
        self.check_fault("59", options=["--codec", "raw", "--schema", "image:u8[59]"])
        self.fail("verify", self.path("set"), "--codec", "raw", code=2, naming="--schema")
        self.fail("verify", self.path("set"), "--schema", "x", code=2)
        self.fail("verify", self.path("set"), "--codec", "tiff", code=2)

    def damage(self, change):
        """A data set whose file `change` edits in place; returns its pages with their flags."""
        write_records(self.path("set"), datums(2000))
        path = self.path("set", "data.mdb")
        with open(path, "rb") as file:
            data = bytearray(file.read())
        change(data)
        with open(path, "wb") as file:
            file.write(data)

    @staticmethod
    def pages(data, flag):
        return [n for n in range(2, len(data) // PAGE)
                if struct.unpack_from("<H", data, n * PAGE + 10)[0] == flag]

    def test_a_zeroed_page_is_named(self):
        zeroed = []

        def change(data):
            zeroed.append(self.pages(data, 2)[3])
            data[zeroed[0] * PAGE:(zeroed[0] + 1) * PAGE] = bytes(PAGE)
        self.damage(change)
        self.check_fault(f"page {zeroed[0]}")

    def test_a_cut_file(self):
        def change(data):
            del data[len(data) // 2:]
        self.damage(change)
        result = self.run_command("verify", self.path("set"))
        self.assertEqual(result.returncode, 1)
        self.assertEqual(len(result.stderr.splitlines()), 1)

    def test_page_numbers_out_of_range_and_loops(self):
        for target in ("beyond", "itself"):
            with self.subTest(target):
                def change(data):
                    branch = self.pages(data, 1)[0]
                    node = branch * PAGE + struct.unpack_from("<H", data, branch * PAGE + 18)[0]
                    number = branch if target == "itself" else 0x00ffffff
                    struct.pack_into("<I", data, node, number)
                shutil.rmtree(self.path("set"), ignore_errors=True)
                self.damage(change)
                result = self.run_command("verify", self.path("set"))
                self.assertEqual(result.returncode, 1, result.stdout)
                self.assertEqual(len(result.stderr.splitlines()), 1, result.stderr)

    def test_node_offsets_outside_the_page(self):
        leaves = []

        def change(data):
            leaves.append(self.pages(data, 2)[2])
            struct.pack_into("<H", data, leaves[0] * PAGE + 16, 0xfff0)
        self.damage(change)
        self.check_fault(f"page {leaves[0]}")


class VerifyClasses(CommandTest):
    def test_labels_that_no_class_has_are_a_fault(self):
        write_records(self.path("set"), datums(25))
        for names, outcome in ((b"a\n" * 0, 0), (b"".join(b"c%d\n" % i for i in range(10)), 0),
                               (b"".join(b"c%d\n" % i for i in range(8)), 1)):
            with self.subTest(names=names):
                if names:
                    self.write("set/data.mdb.classes", names)
                result = self.run_command("verify", self.path("set"), "--json")
                self.assertEqual(result.returncode, outcome, result.stderr)
                faults = json.loads(result.stdout)["faults"]
        self.assertEqual(len(faults), 1)
        for word in ("4 samples have labels that none of its 8 classes has",
                     "the first is 8 of sample 8 (key 00000008)", "set/data.mdb.classes"):
            self.assertIn(word, faults[0]["text"])
        self.assertIn("1 faults", self.run_command("verify", self.path("set")).stdout)


class SameWords(CommandTest):
    """Of databases and of archives."""

    def test_verify(self):
        write_records(self.path("set"), datums(3))
        with tarfile.open(self.path("shard.tar"), "w") as tar:
            for i in range(3):
                member = tarfile.TarInfo(f"s{i}.png")
                content = png(3, 4, 5, bytes(60))
                member.size = len(content)
                tar.addfile(member, io.BytesIO(content))
        for name, words in (("set", "3 samples of image:u8[1x4x5],label:i32[] and 1 pages"),
                            ("shard.tar", "3 samples of image:u8[3x4x5]")):
            text = self.succeed("verify", self.path(name))
            self.assertRegex(text, re.escape(f"{self.path(name)}: {words} checked in ") +
                             r"[0-9.]+ s: sound")

    def test_a_schema_is_what_the_format_takes_for_one(self):
        self.write("tokens.bin", bytes(64))
        options = ("--format", "tokens", "--schema", "u16", "--length", 8)
        for command in ("inspect", "verify"):
            report = self.succeed_json(command, self.path("tokens.bin"), *options)
            self.assertEqual(report["schema"], "tokens:u16[8]")

    def test_an_empty_file_is_no_matter_of_lmdb(self):
        for name in ("shard.tar", "set/data.mdb", "a.npy"):
            self.write(name, b"")
            result = self.run_command("verify", self.path(name))
            self.assertEqual(result.returncode, 1)
            self.assertRegex(result.stderr, f"{name}.* is empty; .*--format")
            self.assertNotIn("LMDB", result.stderr)


class VerifyMembers(CommandTest):
    """Members of archives are decoded as well, not only read."""

    def shard(self, **replaced):
        with tarfile.open(self.path("shard.tar"), "w") as tar:
            for i in range(12):
                image = replaced.get(f"m{i}", png(3, 4, 5, bytes([i]) * 60))
                for name, content in ((f"s{i:02}.png", image), (f"s{i:02}.cls", b"%d" % i)):
                    member = tarfile.TarInfo(name)
                    member.size = len(content)
                    tar.addfile(member, io.BytesIO(content))
        return self.path("shard.tar")

    def test_sound(self):
        report = self.succeed_json("verify", self.shard())
        self.assertEqual((report["sound"], report["samples"]), (True, 12))
        self.assertIn("u8[3x4x5]", report["schema"])

    def test_an_image_that_does_not_decode_is_named(self):
        for damaged in (0, 7):
            path = self.shard(**{f"m{damaged}": png(3, 4, 5, bytes(60))[:50]})
            result = self.run_command("verify", path, "--json")
            self.assertEqual(result.returncode, 1)
            faults = json.loads(result.stdout)["faults"]
            self.assertEqual([fault["sample"] for fault in faults], [damaged])
            self.assertIn(f"s{damaged:02}", faults[0]["text"])

    def test_the_first_image_does_not_decide_against_the_others(self):
        path = self.shard(m0=png(3, 4, 6, bytes(72)))
        result = self.run_command("verify", path, "--json")
        self.assertEqual(result.returncode, 1)
        report = json.loads(result.stdout)
        self.assertEqual([fault["sample"] for fault in report["faults"]], [0])
        self.assertIn("u8[3x4x5]", report["schema"])

    def test_all_say_the_same_of_images_among_which_some_are_none(self):
        for bad in ([0], range(5), range(3, 12), range(11)):
            path = self.shard(**{f"m{i}": b"<html>" for i in bad})
            with self.subTest(bad=bad):
                report = json.loads(self.run_command("verify", path, "--json").stdout)
                self.assertEqual([fault["sample"] for fault in report["faults"]], list(bad))
                self.assertEqual(report["schema"], "png:u8[3x4x5],cls:i64[]")
                self.assertEqual(self.succeed_json("inspect", path)["schema"], report["schema"])
                self.fail("samples", path, "--decode", "--batch", 4, "--epochs", 1, code=1)
                lines = self.succeed("samples", path, "--decode", "--undecodable", "skip", "--batch", 4,
                                     "--end", "exact", "--order", "shuffled", "--epochs", 1)
                ids = sorted(json.loads(line)["sample"] for line in lines.splitlines())
                self.assertEqual(ids, [i for i in range(12) if i not in bad])

    def test_arrays_of_any_length_are_checked_and_named(self):
        path = self.path("arrays.tar")
        sound = struct.pack("<2f", 1, 2)
        for damaged in (None, 2):
            with tarfile.open(path, "w") as tar:
                for i in range(4):
                    content = sound[:7] if i == damaged else sound
                    for name, value in (("emb", content), ("cls", b"1")):
                        member = tarfile.TarInfo(f"{i}.{name}")
                        member.size = len(value)
                        tar.addfile(member, io.BytesIO(value))
            arguments = (path, "--codec", "emb=f32")
            result = self.run_command("verify", *arguments, "--json")
            report = json.loads(result.stdout)
            self.assertEqual(report["any_length"], [{"name": "emb", "type": "f32"}])
            if damaged is None:
                self.assertEqual(report["faults"], [])
                self.assertIn("cls:i64[],emb:f32[] of any length checked",
                              self.succeed("verify", *arguments))
                continue
            self.assertEqual([fault["sample"] for fault in report["faults"]], [damaged])
            text = self.fail("samples", *arguments, "--decode", "--batch", 4, code=1)
            for word in ("arrays.tar", "sample 2", "part 'emb'", "7 bytes are no array of f32"):
                self.assertIn(word, text)

    def test_where_nothing_decodes_every_sample_is_a_fault(self):
        broken = png(3, 4, 5, bytes(60))[:30]
        path = self.shard(**{f"m{i}": broken for i in range(12)})
        result = self.run_command("verify", path, "--json")
        self.assertEqual(result.returncode, 1)
        report = json.loads(result.stdout)
        self.assertEqual(report["fault_count"], 12)
        self.assertTrue(all("shard.tar" in fault["text"] for fault in report["faults"]))
        report = self.succeed_json("inspect", path)
        self.assertEqual(report["schema"], "")
        self.assertIn("s00", report["fields_problem"])

    def test_inspect_says_what_values_are_as_it_does_of_records(self):
        path = self.shard()
        report = self.succeed_json("inspect", path)
        self.assertEqual((report["codec"], report["schema"]), ("parts", "png:u8[3x4x5],cls:i64[]"))
        self.assertIn("png:u8[3x4x5],cls:i64[] (parts)", self.succeed("inspect", path))
        write_records(self.path("set"), datums(3))
        self.assertIn("image:u8[1x4x5],label:i32[] (datum)",
                      self.succeed("inspect", self.path("set")))

    def test_what_was_left_out_is_told(self):
        with tarfile.open(self.path("part.tar"), "w") as tar:
            for name in ("a.png", "a.cls", "b.png", "b.cls", "c.png"):
                content = png(3, 4, 5, bytes(60)) if name.endswith("png") else b"1"
                member = tarfile.TarInfo(name)
                member.size = len(content)
                tar.addfile(member, io.BytesIO(content))
        for command in ("inspect", "verify"):
            notes = self.succeed_json(command, self.path("part.tar"))["notes"]
            self.assertIn("cls (2 of 3)", notes[0])


class Refused(CommandTest):
    """What is no readable data set: one line, for both commands."""

    def refuse(self, path, *words, **options):
        for command in ("inspect", "verify"):
            self.fail(command, path, naming=[os.path.basename(self.root), *words], **options)

    def test_missing(self):
        self.refuse(self.path("none"))
        os.makedirs(self.path("empty"))
        self.refuse(self.path("empty"))

    def test_text_file_named_data_mdb(self):
        self.write("set/data.mdb", b"to be done\n" * 2000)
        self.refuse(self.path("set"), "data.mdb")
        self.write("short/data.mdb", b"to be done")
        self.refuse(self.path("short"), "data.mdb")
        self.write("zero/data.mdb", b"")
        self.refuse(self.path("zero"), "data.mdb")

    def test_duplicate_value_databases(self):
        environment = liblmdb.Environment(self.path("set"))
        with environment.transaction(flags=liblmdb.CREATE | 0x04) as transaction:
            transaction.put(b"a", b"1")
            transaction.put(b"a", b"2")
        environment.close()
        self.refuse(self.path("set"))

    def test_many_duplicates_are_no_damage(self):
        for name in (None, "many"):
            path = self.path(f"of-{name}")
            environment = liblmdb.Environment(path)
            if name:
                with environment.transaction() as transaction:
                    transaction.put(b"one", b"sample")
            with environment.transaction(name=name, flags=liblmdb.CREATE | 0x04) as transaction:
                for i in range(30000):
                    transaction.put(b"key %d" % (i % 2), b"%020d" % i)
            environment.close()
            dataset = path if name is None else path + "#many"
            self.assertNotIn("damaged", self.fail("inspect", dataset, naming=["MDB_DUPSORT"]))
        report = self.succeed_json("verify", path)
        self.assertEqual((report["sound"], report["records"]), (True, 1))
        self.assertIn("MDB_DUPSORT", report["notes"][-1])
        pages = self.succeed_json("inspect", path)
        self.assertEqual((pages["samples"], pages["pages"]["unaccounted"]), (1, 0))

    def test_a_file_short_of_a_page_is_refused_at_open(self):
        path = self.path("set")
        write_records(path, datums(1000))
        data = os.path.join(path, "data.mdb")
        size = os.path.getsize(data)
        for short in (4096, 1, 8192):
            os.truncate(data, size - short)
            self.refuse(path, str(size - short), str(size), "cut short")
            for strategy in ("auto", "lmdb", "lmm", "lmm-dio-prov"):
                self.fail("samples", path, "--batch", 10, "--strategy", strategy,
                          naming=[str(size - short), str(size)])

    def test_free_pages_at_the_end_need_not_be_there(self):
        path = self.path("set")
        write_records(path, datums(20))
        expected = self.succeed("samples", path, "--batch", 1)
        write_records(path, [(b"large", bytes(400000))])
        environment = liblmdb.Environment(path)
        with environment.transaction() as transaction:
            transaction.delete(b"large")
        for _ in range(6):  # until nothing of use is behind what was freed
            with environment.transaction() as transaction:
                transaction.put(b"00000000", datums(1)[0][1])
        environment.close()
        data = os.path.join(path, "data.mdb")
        os.truncate(data, os.path.getsize(data) - 4096)
        self.assertEqual(self.succeed("samples", path, "--batch", 1), expected)
        self.assertEqual(self.succeed_json("verify", path)["sound"], True)

    def test_empty_values_are_told_wherever_they_are(self):
        for name, order in (("first", (b"", b"x", b"")), ("last", (b"x", b"y", b""))):
            write_records(self.path(name), [(b"k%d" % i, value) for i, value in enumerate(order)])
            report = self.succeed_json("verify", self.path(name))
            number = order.index(b"")
            self.assertEqual(report["sound"], True)
            self.assertEqual(len(report["notes"]), 1)
            self.assertIn(f"sample {number} (key k{number})", report["notes"][0])
            self.assertIn("empty", self.succeed("verify", self.path(name)))

    def test_of_a_sparse_file_only_what_is_used_is_taken(self):
        path = self.path("set")
        write_records(path, datums(50))
        expected = self.succeed("samples", path, "--batch", 1)
        os.truncate(os.path.join(path, "data.mdb"), 1 << 40)
        for url in (path, "mem://" + path):
            self.assertEqual(self.succeed("samples", url, "--batch", 1), expected)
            self.assertEqual(self.succeed_json("verify", url)["sound"], True)

    def test_unknown_named_database(self):
        write_records(self.path("set"), datums(3))
        self.refuse(self.path("set") + "#other", "other")

    def test_no_permission(self):
        options = self.as_someone_else()
        write_records(self.path("set"), datums(3))
        os.chmod(self.path("set", "data.mdb"), 0)
        self.refuse(self.path("set"), "data.mdb", **options)


if __name__ == "__main__":
    unittest.main()
