#!/usr/bin/python3
"""Sidecars are hints: right ones are used and named, all others cost a warning and nothing else.

Whatever lies beside the data or in the user's cache (stale, foreign, cut, damaged, forged, no file
at all), the samples are those of liblmdb's own cursor walk.
"""

import contextlib
import json
import os
import random
import re
import shutil
import struct
import unittest

import launch
import liblmdb
import order_model

NOBODY = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")
USES_PROVENANCE = ("auto", "lmm-dio-prov", "lmm-dio-prov-coal", "lmm-dio-prov-coal-stag")
# Each rank of a job has a cache of its own, as on nodes that share no home directory.
CACHE_BY_RANK = ("sh", "-c",
                 'XDG_CACHE_HOME="$CACHES/${OMPI_COMM_WORLD_RANK:-$PMI_RANK}" exec "$@"', "sh")
HEADER_BYTES = 24            # magic, version, form, checksum: docs/provenance.md


def uniform(count, size=3000):
    return [(b"%08d" % i, bytes([i % 251]) * size) for i in range(count)]


def varying(count):
    return [(b"%08d" % i, bytes([i % 251]) * (i * 37 % 6000)) for i in range(count)]


def varint(number):
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes(out) + bytes([number])


def datum(label, pixels):
    """Caffe's Datum: channels, height, width, data, label."""
    return (b"\x08\x03\x10\x20\x18\x20\x22" + varint(len(pixels)) + pixels + b"\x28" +
            varint(label))


def as_caffe_tools_write(count, name):
    """Keys as convert_imageset makes them; labels that take one byte and two."""
    return [(b"%08d_" % i + name(i), datum(i % 256, bytes([i % 251]) * 3072))
            for i in range(count)]


class Sidecar:
    """The bytes of one, laid out as docs/provenance.md says."""

    def __init__(self, path):
        self.path = path
        with open(path, "rb") as file:
            self.bytes = bytearray(file.read())
        length, at = self.varint_at(HEADER_BYTES)
        self.body = at + length      # behind the fingerprint

    def varint_at(self, at):
        number, shift = 0, 0
        while True:
            number |= (self.bytes[at] & 0x7F) << shift
            shift += 7
            at += 1
            if not self.bytes[at - 1] & 0x80:
                return number, at

    def move_first_pages(self):
        """A table whose first group of leaves lies elsewhere."""
        at = self.body
        for _ in range(3 + 3):       # records, leaves, groups; repeat, records, leaves
            _, at = self.varint_at(at)
        page, end = self.varint_at(at)
        other = varint(page + 1 if len(varint(page + 1)) == end - at else page - 1)
        self.bytes[at:end] = other
        return self

    def seal(self):
        """Makes the checksum valid again."""
        seed = int(liblmdb.xxh3(bytes(self.bytes[:16])), 16)
        self.bytes[16:24] = struct.pack("<Q", liblmdb.xxh3_seeded(bytes(self.bytes[24:]), seed))
        return self

    def write(self, data=None):
        with open(self.path, "wb") as file:
            file.write(self.bytes if data is None else data)


class ProvenanceCase(launch.AcceptanceCase):

    def setUp(self):
        super().setUp()
        self.cache = self.path("cache-" + self.id().rsplit(".", 1)[1])
        self.environment = {"XDG_CACHE_HOME": self.cache}

    def database(self, records, commit_every=100, **options):
        name = self.id().rsplit(".", 1)[1] + f"-{len(os.listdir(self.scratch))}"
        return liblmdb.write(self.path(name), records, commit_every, **options)

    def command(self, *arguments, **options):
        return launch.run(*arguments, env=self.environment, **options)

    def make(self, dataset, form="auto"):
        """Makes a sidecar and returns what the command tells of it."""
        result = self.command("provenance", dataset, "--form", form, "--json")
        self.assertEqual(result.code, 0, result.err)
        return json.loads(result.out)

    def sidecar_of(self, dataset):
        return Sidecar(os.path.join(dataset, "data.mdb.forebay"))

    def explain(self, dataset, *arguments, strategy="auto", **options):
        result = self.command("samples", dataset, "--batch", 10, "--strategy", strategy,
                              "--explain", *arguments, **options)
        self.assertEqual(result.code, 0, result.err)
        return result.out

    def read_right(self, dataset, *arguments, ranks=0, strategy="auto", warnings=0, batch=30,
                   **options):
        """One and a half epochs equal the oracle; stderr holds so many warnings."""
        records = liblmdb.walk(dataset)
        iterations = max(2, len(records) * 3 // 2 // batch)
        options.setdefault("env", self.environment)
        result = launch.run("samples", dataset, "--batch", batch, "--iterations", iterations,
                            "--coalesce", 4, "--strategy", strategy, *arguments, ranks=ranks,
                            **options)
        self.assert_lines(result, order_model.expected_lines(records, max(ranks, 1), batch, 4,
                                                             iterations))
        said = [line for line in result.err.splitlines() if line.startswith("forebay: warning")]
        self.assertEqual(len(said), warnings, result.err)
        return said


class Making(ProvenanceCase):

    def notice(self, dataset, reason):
        """No recipe fits, the command says why, and the table that it makes is used."""
        printed = self.command("provenance", dataset)
        self.assertEqual(printed.code, 0, printed.err)
        self.assertRegex(printed.out, f"(?m)^no recipe: .*{reason}")
        self.assertRegex(printed.out, r"(?m)^.*data\.mdb\.forebay: table of ")
        told = self.make(dataset)
        self.assertEqual(told["form"], "table")
        self.assertRegex(told["why_no_recipe"], reason)
        refused = self.command("provenance", dataset, "--form", "recipe")
        self.assertEqual(refused.code, 2, refused.err)
        self.assertRegex(refused.err, reason)
        self.use(dataset, "table")

    def use(self, dataset, form):
        path = os.path.join(dataset, "data.mdb.forebay")
        self.assertEqual(self.command("provenance", dataset, "--check", "--form", form).code, 0)
        for strategy in USES_PROVENANCE:
            self.assertIn(f"provenance ({form}) from {path}",
                          self.explain(dataset, strategy=strategy))
        self.read_right(dataset)
        self.read_right(dataset, "--roots", 2, ranks=3, strategy="lmm-dio-prov-coal-stag")

    def test_a_reader_was_open_while_it_was_written(self):
        path = self.path("reader")
        records = uniform(600)
        with liblmdb.Environment(path, liblmdb.NOSYNC | liblmdb.NOTLS) as environment:
            with contextlib.ExitStack() as held:
                for begin in range(0, len(records), 50):
                    with environment.transaction() as transaction:
                        for key, value in records[begin:begin + 50]:
                            transaction.put(key, value)
                    if begin == 100:
                        held.enter_context(environment.transaction(write=False))
        self.notice(path, "no replay of LMDB's allocator gives this layout")

    def test_out_of_order(self):
        records = uniform(600)
        random.Random(1).shuffle(records)
        self.notice(self.database(records), "no replay .* key order")

    def test_with_deletions(self):
        path = self.database(uniform(600))
        with liblmdb.Environment(path, liblmdb.NOSYNC) as environment:
            with environment.transaction() as transaction:
                for i in range(0, 600, 7):
                    transaction.delete(b"%08d" % i)
        self.notice(path, "no replay of LMDB's allocator")

    def test_sizes_that_vary(self):
        self.notice(self.database(varying(500)), "do not all take the same room")

    def test_uneven_commits(self):
        path = self.database(uniform(300))
        liblmdb.write(path, [(b"%08d" % (1000 + i), bytes(3000)) for i in range(33)], 7)
        self.notice(path, "no replay of LMDB's allocator")

    def test_in_order_and_even_becomes_a_recipe(self):
        for size in (30, 3000, 20000):
            path = self.database(uniform(400, size))
            with self.subTest(size=size):
                self.assertEqual(self.make(path)["form"], "recipe")
                self.use(path, "recipe")
                self.assertEqual(self.make(path, "table")["form"], "table")
                self.use(path, "table")

    def test_caffe_tools_with_names_of_one_length(self):
        path = self.database(as_caffe_tools_write(600, lambda i: b"cat%04d.jpg" % i))
        self.assertEqual(self.make(path)["form"], "recipe")
        self.use(path, "recipe")
        self.assertEqual(self.make(path, "table")["form"], "table")
        self.use(path, "table")

    def test_caffe_tools_with_names_of_any_length(self):
        path = self.database(as_caffe_tools_write(
            600, lambda i: b"n%08d/" % (i % 17) + b"x" * (i * 7 % 23) + b".JPEG"))
        self.notice(path, "do not all take the same room")

    def test_pack_writes_one_that_is_right(self):
        path = self.path("packed")
        packed = self.command("pack", "-", path, "--from", "synthetic", "--preset",
                              "cifar10-large", "--count", 500)
        self.assertEqual(packed.code, 0, packed.err)
        self.assertEqual(self.command("provenance", path, "--check").code, 0)
        self.assertIn("data.mdb.forebay", self.explain(path))
        self.read_right(path, ranks=2)

    def test_remove_deletes_it_and_the_cache_entry(self):
        path = self.database(varying(300))
        self.read_right(path)
        self.make(path)
        self.assertEqual(len(os.listdir(os.path.join(self.cache, "forebay"))), 1)
        removed = self.command("provenance", path, "--remove", "--json")
        self.assertEqual(len(json.loads(removed.out)["removed"]), 2, removed.err)
        self.assertEqual(os.listdir(os.path.join(self.cache, "forebay")), [])
        self.assertNotIn("data.mdb.forebay", os.listdir(path))


class Distrust(ProvenanceCase):

    def distrust(self, dataset, ranks=0):
        """Not used, with one warning that names it, on one rank or on several with two roots."""
        arguments = ("--roots", 2) if ranks else ()
        said = self.read_right(dataset, *arguments, ranks=ranks, warnings=1,
                               strategy="lmm-dio-prov-coal")
        self.assertIn("data.mdb.forebay", said[0])
        return said[0]

    def test_the_database_has_changed_since(self):
        path = self.database(uniform(400))
        self.make(path)
        liblmdb.write(path, [(b"00000400", b"one more")])
        self.distrust(path)
        self.distrust(path, ranks=3)
        self.assertEqual(self.command("provenance", path, "--check").code, 1)
        self.make(path)
        self.read_right(path)

    def test_an_overwritten_record_of_the_same_size(self):
        path = self.database(uniform(400))
        self.make(path)
        liblmdb.write(path, [(b"%08d" % 77, b"!" * 3000)])
        self.distrust(path)

    def test_a_sidecar_of_another_data_set(self):
        other = self.database(uniform(500))
        self.make(other)
        for records in (uniform(400), varying(500)):
            path = self.database(records)
            shutil.copy(os.path.join(other, "data.mdb.forebay"), path)
            self.distrust(path)
        self.distrust(path, ranks=3)

    def test_a_twin_of_the_same_shape_may_share_it(self):
        """Their pages lie alike: what the sidecar says is right about both."""
        one, two = self.database(uniform(400)), self.database(uniform(400))
        self.make(one)
        shutil.copy(os.path.join(one, "data.mdb.forebay"), two)
        self.read_right(two)

    def test_other_keys_in_the_same_shape(self):
        """The fingerprint cannot tell them apart; what is read must tell, or be right anyway."""
        one = self.database(uniform(400))
        two = self.database([(b"%08d" % (3 * i), b"?" * 3000) for i in range(400)])
        self.make(one)
        shutil.copy(os.path.join(one, "data.mdb.forebay"), two)
        records = liblmdb.walk(two)
        result = self.command("samples", two, "--batch", 20, "--iterations", 20)
        self.assert_lines(result, order_model.expected_lines(records, 1, 20, 1, 20))

    def test_cut_at_any_length(self):
        for records in (uniform(400), varying(400)):
            path = self.database(records)
            self.make(path)
            sidecar = self.sidecar_of(path)
            size = len(sidecar.bytes)
            lengths = (0, 1, 8, 16, HEADER_BYTES, HEADER_BYTES + 1, sidecar.body, size // 2, size - 1)
            for length in launch.some(lengths, every=2, on_mpich=3):
                with self.subTest(form=sidecar.bytes[12], length=length):
                    sidecar.write(sidecar.bytes[:length])
                    self.distrust(path)
            self.distrust(path, ranks=3)

    def test_longer_than_it_should_be(self):
        path = self.database(varying(400))
        self.make(path)
        sidecar = self.sidecar_of(path)
        sidecar.write(sidecar.bytes + b"\0")
        self.distrust(path)
        with open(sidecar.path, "ab") as file:
            file.truncate(1 << 40)
        self.distrust(path)

    def test_a_flipped_byte(self):
        for records in (uniform(400), varying(400)):
            path = self.database(records)
            self.make(path)
            sidecar = self.sidecar_of(path)
            places = range(0, len(sidecar.bytes), max(1, len(sidecar.bytes) // 12))
            for at in launch.some(places, every=3):
                with self.subTest(form=sidecar.bytes[12], at=at):
                    damaged = bytearray(sidecar.bytes)
                    damaged[at] ^= 0x10
                    sidecar.write(damaged)
                    self.distrust(path)
            self.distrust(path, ranks=3)

    def test_something_that_is_no_file(self):
        path = self.database(varying(200))
        place = os.path.join(path, "data.mdb.forebay")
        os.mkdir(place)
        self.distrust(path)
        os.rmdir(place)
        os.mkfifo(place)
        self.distrust(path)
        os.remove(place)
        os.symlink("/dev/zero", place)
        self.distrust(path)
        os.remove(place)
        os.symlink("data.mdb", place)
        self.distrust(path)

    def test_a_valid_checksum_over_wrong_pages(self):
        """Found out while reading: given up, one warning a node, and nothing wrong is delivered."""
        path = self.database(varying(800))
        self.make(path)
        self.sidecar_of(path).move_first_pages().seal().write()
        self.assertEqual(self.command("provenance", path, "--check").code, 1)
        for strategy in USES_PROVENANCE:
            with self.subTest(strategy=strategy):
                self.read_right(path, strategy=strategy, warnings=1)
        for ranks, roots, nodes in ((2, 2, 1), (4, 2, 1), (4, 2, 2), (4, 1, 4)):
            with self.subTest(ranks=ranks, roots=roots, nodes=nodes):
                self.environment["FOREBAY_RANKS_PER_NODE"] = str(ranks // nodes)
                self.read_right(path, "--roots", roots, ranks=ranks, warnings=nodes)

    def test_any_byte_with_a_valid_checksum(self):
        """Right samples, with at most one warning; what is wrong about unread leaves may pass."""
        for records in (uniform(300), varying(300)):
            path = self.database(records)
            self.make(path)
            sidecar = self.sidecar_of(path)
            expected = liblmdb.walk(path)
            step = max(1, (len(sidecar.bytes) - sidecar.body) // (20 * launch.SCALE))
            places = range(sidecar.body, len(sidecar.bytes), step)
            for at in launch.some(places, every=3, on_mpich=4):
                with self.subTest(form=sidecar.bytes[12], at=at):
                    original = sidecar.bytes[at]
                    sidecar.bytes[at] = (original + 1 + at % 200) % 256
                    sidecar.seal().write()
                    sidecar.bytes[at] = original
                    result = self.command("samples", path, "--batch", 30, "--iterations", 20,
                                          "--strategy", "lmm-dio-prov")
                    self.assert_lines(result, order_model.expected_lines(expected, 1, 30, 1, 20))
                    self.assertLessEqual(result.err.count("forebay: warning"), 1, result.err)


class Places(ProvenanceCase):

    def cached(self, cache=None):
        folder = os.path.join(cache or self.cache, "forebay")
        return sorted(os.listdir(folder)) if os.path.isdir(folder) else []

    def test_auto_keeps_what_a_scan_has_found_in_the_cache_alone(self):
        path = self.database(varying(500))
        before = sorted(os.listdir(path))
        self.assertIn("scan of", self.explain(path))
        self.read_right(path, ranks=2)
        self.assertEqual(sorted(os.listdir(path)), before)
        self.assertEqual(len(self.cached()), 1)
        self.assertRegex(self.explain(path), f"provenance \\(table\\) from {self.cache}/forebay/")

    def test_other_strategies_write_nothing(self):
        path = self.database(varying(300))
        for strategy in USES_PROVENANCE[1:]:
            self.read_right(path, strategy=strategy)
        self.assertEqual(self.cached(), [])

    def test_a_run_from_elsewhere_finds_the_cache_entry(self):
        path = self.database(varying(500))
        self.read_right(path)
        entries = self.cached()
        parent, name = os.path.split(path)
        for directory, dataset in ((parent, name), (path, "data.mdb"), ("/", path)):
            said = self.explain(dataset, prefix=("env", "-C", directory))
            self.assertIn(entries[0], said)
        self.assertEqual(self.cached(), entries)

    def test_no_cache_at_all(self):
        path = self.database(varying(300))
        for variables in ({"XDG_CACHE_HOME": "", "HOME": ""},
                          {"XDG_CACHE_HOME": "/proc/none", "HOME": "/proc/none"},
                          {"XDG_CACHE_HOME": "not/absolute", "HOME": ""}):
            with self.subTest(**variables):
                self.read_right(path, env=variables)
                self.read_right(path, ranks=2, env=variables)

    def test_a_second_data_set_of_the_same_shape_replaces_the_first(self):
        """Quietly: nobody has made a sidecar, and the next one may well be the first again."""
        def alike(longer):
            return [(b"%08d" % i, b"?" * (7000 if i == longer else 3000)) for i in range(400)]

        for strategy in USES_PROVENANCE:
            shutil.rmtree(self.cache, ignore_errors=True)
            one, two = self.database(alike(10)), self.database(alike(11))
            self.read_right(one)
            entry = os.path.join(self.cache, "forebay", self.cached()[0])
            for dataset in (two, one):
                with open(entry, "rb") as file:
                    before = file.read()
                self.read_right(dataset, strategy=strategy)
                with open(entry, "rb") as file:
                    self.assertNotEqual(file.read(), before)
                self.assertIn(entry, self.explain(dataset))
                self.read_right(dataset, strategy=strategy)
            self.assertEqual(len(self.cached()), 1)

    def test_data_sets_of_the_same_shape_with_other_keys_are_told_apart(self):
        one = self.database(uniform(400))
        two = self.database([(b"%08d" % (3 * i), b"?" * 3000) for i in range(400)])
        for _ in range(2):
            for dataset in (one, two):
                self.read_right(dataset)
        entries = self.cached()
        self.assertEqual(len(entries), 2)
        both = [self.explain(dataset) for dataset in (one, two)]
        for entry in entries:
            self.assertEqual([entry in said for said in both].count(True), 1)
        for _ in range(2):
            result = self.command("samples", f"{one},{two}", "--batch", 32, "--iterations", 30)
            self.assertEqual((result.code, result.err), (0, ""))
        self.assertEqual(self.cached(), entries)

    def test_a_damaged_cache_entry_is_replaced(self):
        path = self.database(varying(300))
        self.read_right(path)
        entry = os.path.join(self.cache, "forebay", self.cached()[0])
        with open(entry, "r+b") as file:
            file.seek(100)
            file.write(b"damage")
        said = self.read_right(path, warnings=1)
        self.assertIn(entry, said[0])
        self.read_right(path, warnings=0)

    def by_rank(self, path, *arguments):
        self.environment.update(CACHES=self.cache, FOREBAY_RANKS_PER_NODE="1")
        return self.read_right(path, *arguments, ranks=3, prefix=CACHE_BY_RANK)

    def test_nodes_with_caches_of_their_own_hear_from_rank_0(self):
        path = self.database(varying(500))
        self.by_rank(path)
        caches = [os.path.join(self.cache, str(rank)) for rank in range(3)]
        self.assertEqual([len(self.cached(cache)) for cache in caches], [1, 0, 0])
        said = self.explain(path, ranks=3, prefix=CACHE_BY_RANK)
        self.assertIn(f"from {caches[0]}/forebay/", said)
        self.by_rank(path)
        # What another node has is not looked for.
        os.rename(caches[0], caches[1])
        self.assertIn("scan of", self.explain(path, ranks=3, prefix=CACHE_BY_RANK))
        self.by_rank(path)

    def test_jobs_that_write_one_entry_at_once(self):
        path = self.database(varying(2000))
        records = liblmdb.walk(path)
        arguments = ["samples", path, "--batch", 30, "--coalesce", 1, "--iterations", 20]
        for _ in range(2):
            shutil.rmtree(self.cache, ignore_errors=True)
            jobs = [launch.Job([launch.COMMAND, *arguments], ranks, self.environment)
                    for ranks in (0, 0, 0, 2, 2)]
            for job, ranks in zip(jobs, (1, 1, 1, 2, 2)):
                result = job.wait()
                self.assert_lines(result, order_model.expected_lines(records, ranks, 30, 1, 20))
                self.assertNotIn("forebay: warning", result.err)
            entries = self.cached()
            self.assertEqual(len(entries), 1, entries)
            entry = os.path.join(self.cache, "forebay", entries[0])
            self.assertEqual(self.command("provenance", path, "--check", "--sidecar",
                                          entry).code, 0)

    @unittest.skipUnless(os.geteuid() == 0 and shutil.which("setpriv"), "needs root and setpriv")
    def test_a_read_only_directory(self):
        os.chmod(self.scratch, 0o755)
        path = self.database(varying(400))
        for name in os.listdir(path):
            os.chmod(os.path.join(path, name), 0o444)
        os.chmod(path, 0o555)
        os.mkdir(self.cache)
        os.chown(self.cache, 65534, 65534)
        before = sorted(os.listdir(path))
        refused = self.command("provenance", path, prefix=NOBODY)
        self.assertEqual(refused.code, 1, refused.err)
        self.assertIn(path, refused.err)
        self.read_right(path, prefix=NOBODY)
        self.assertEqual(sorted(os.listdir(path)), before)
        self.assertEqual(len(self.cached()), 1)
        self.assertIn(self.cache, self.explain(path, prefix=NOBODY))
        # One that its owner has put there is used, one that may not be read is passed over.
        self.make(path)
        place = os.path.join(path, "data.mdb.forebay")
        os.chmod(place, 0o444)
        self.assertIn(f"from {place}", self.explain(path, prefix=NOBODY))
        self.read_right(path, prefix=NOBODY, ranks=0)
        os.chmod(place, 0)
        said = self.read_right(path, prefix=NOBODY, warnings=1)
        self.assertIn(place, said[0])

    def test_named_databases_have_sidecars_of_their_own(self):
        path = self.path("named")
        for name in ("train", "test/a b"):
            liblmdb.write(path, varying(200), name=name)
        for name in ("train", "test/a b"):
            told = self.make(f"{path}#{name}")
            self.assertTrue(os.path.exists(told["sidecar"]))
        for name in ("train", "test/a b"):
            self.assertRegex(self.explain(f"{path}#{name}"), re.escape("provenance (table) from"))
            self.read_right(f"{path}#{name}")


if __name__ == "__main__":
    launch.main()
