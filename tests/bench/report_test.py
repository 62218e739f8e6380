"""forebay-bench report: one page with all figures, from any results."""

import json
import os
import re
import unittest

from command import CommandTest

FIGURES = ("read-performance", "ladder", "time-breakdown", "seek-by-rank", "context-switches",
           "extra-bytes", "speculation", "block-sizes", "strong-scaling", "weak-scaling",
           "train-throughput", "train-breakdown")
STRATEGIES = {"lmdb": 10.0, "lmm": 15.0, "lmm-dm": 20.0, "auto": 40.0}


def spread(value):
    return {"median": value, "least": 0.9 * value, "most": 1.1 * value}


def summary(rate):
    figures = {name: spread(1.0) for name in ("seek_seconds", "read_seconds", "turn_seconds",
                                              "wait_seconds", "exposed_seconds", "skew_seconds")}
    return {**figures, "delivered_mb_per_second": spread(rate), "seconds": spread(100 / rate),
            "file_bytes_over_plain": spread(rate / 50), "voluntary_switches": spread(1000 / rate),
            "involuntary_switches": spread(0.0), "missed_pages": spread(7.0),
            "redundant_pages": spread(70.0)}


def read_result(ranks, **more):
    rows = [{"strategy": name, **summary(rate * ranks)} for name, rate in STRATEGIES.items()]
    runs = [{"strategy": name, "kind": "strategy", "repetition": 0, "ranks": [
        {"rank": rank, "reads": True, "extra_bytes": 1e6 * rank} for rank in range(ranks)]}
            for name in STRATEGIES]
    return {"bench": "read", "ranks": ranks, "nodes": ranks, "summary": rows, "runs": runs,
            "plain_mb_per_second": spread(50.0), "seek_only": [], "block_sizes": [],
            "verified": [{"strategy": "lmm-dm",
                          "speculation": {"missed": [5, 7], "redundant": [40, 70]}}],
            "data_set": {"path": "/data/set"}, **more}


def train_result():
    rows = [{"strategy": name, "images_per_second": spread(rate), "read_seconds": spread(1.0),
             "skew_seconds": spread(1.0), "compute_seconds": spread(7.0),
             "sync_seconds": spread(1.0), "other_seconds": spread(0.0)}
            for name, rate in STRATEGIES.items()]
    return {"bench": "train", "ranks": 2, "nodes": 1, "threads": 1, "net": "lenet", "summary": rows,
            "runs": []}


def matrix():
    def cell(kind, scaling, result):
        return {"kind": kind, "data": "set", "storage": "disk", "scaling": scaling, "load": 1.5,
                "file_system": {}, "result": result}
    seeks = [{"engine": engine, "rank": rank, "seconds": 0.001 * (1 + rank)}
             for engine in ("liblmdb", "mmap") for rank in range(4)]
    blocks = [{"engine": engine, "block": 4096 * 4 ** i, "bytes": 1e6, "seconds": 0.01 / (1 + i)}
              for engine in ("mmap", "pread") for i in range(4)]
    return {"bench": "matrix", "name": "test", "date": "2026-01-01",
            "machine": {"cpu": "a <processor>", "cores": 2, "memory_gib": 8, "kernel": "6.1",
                        "mpi": "mpiexec 1"},
            "cells": [cell("read", "strong", read_result(1)), cell("read", "strong", read_result(4)),
                      cell("read", "weak", read_result(1)), cell("read", "weak", read_result(4)),
                      cell("read", "seek", read_result(4, summary=[], runs=[], seek_only=seeks)),
                      cell("read", "blocks", read_result(1, block_sizes=blocks)),
                      cell("train", "strong", train_result())]}


class Report(CommandTest):
    _of_matrix = None  # drawing takes seconds: once for all tests

    def matrix_page(self):
        if Report._of_matrix is None:
            Report._of_matrix = self.report(matrix())
        return Report._of_matrix

    def report(self, results, output=None):
        self.write("results.json", json.dumps(results).encode())
        words = ["--output", output] if output else []
        output = output or self.path("results.html")
        self.assertEqual(self.succeed("report", self.path("results.json"), *words).strip(), output)
        with open(output, encoding="utf-8") as file:
            return file.read()

    def sections(self, page):
        return dict(re.findall(r'<section id="([^"]+)">(.*?)</section>', page, re.DOTALL))

    def test_all_figures_are_drawn_from_a_matrix(self):
        page = self.matrix_page()
        sections = self.sections(page)
        self.assertEqual(tuple(sections), FIGURES)
        for name, text in sections.items():
            self.assertEqual(text.count("<svg"), 1, name)
            self.assertEqual(text.count("<dd>"), 2, name)
            self.assertRegex(text, r"(TOPC|D) \d", name)
        self.assertIn("a &lt;processor&gt;", page)

    def test_sentences_are_computed(self):
        sections = self.sections(self.matrix_page())
        self.assertIn("auto is fastest with 160 MB/s, 4.00 times lmdb", sections["read-performance"])
        self.assertIn("rank 3 seeks 4.0 ms, 4.00 times", sections["seek-by-rank"])
        self.assertIn("7 missed, 70 in vain", sections["speculation"])
        self.assertIn("lmdb 0.25", sections["strong-scaling"])
        self.assertIn("4.00 times lmdb", sections["train-throughput"])

    def test_the_page_loads_nothing_and_identifiers_are_its_own(self):
        page = self.matrix_page()
        self.assertIsNone(re.search(r'(src|href)="(?!#)', page))
        identifiers = re.findall(r'\bid="([^"]+)"', page)
        self.assertEqual(len(identifiers), len(set(identifiers)))

    def test_one_result_of_the_command_is_enough(self):
        sections = self.sections(self.report(read_result(2)))
        self.assertTrue(os.path.exists(self.path("results.html")))
        self.assertEqual(tuple(sections), FIGURES)
        self.assertIn("<svg", sections["ladder"])
        self.assertIn("Not measured", sections["train-breakdown"])
        sections = self.sections(self.report({**train_result(), "data_set": {"path": "set"}},
                                             self.path("page.html")))
        self.assertIn("<svg", sections["train-breakdown"])

    def test_what_are_no_results_is_refused(self):
        for name, content in (("text", b"nothing"), ("list", b"[]"), ("other", b'{"bench":"other"}'),
                              ("part", b'{"bench":"matrix"}'), ("bytes", b"\xff\xfe")):
            with self.subTest(name):
                path = self.write(name, content)
                self.fail("report", path, naming=path)
                self.assertFalse(os.path.exists(path + ".html"))
        self.fail("report", self.path("none"), naming="none")
        self.fail("report", code=2, naming="results")
        path = self.write("results.json", json.dumps(read_result(1)).encode())
        self.fail("report", path, "--output", self.path("no/such/page.html"), naming="page.html")

    def test_without_matplotlib_the_error_says_what_to_install(self):
        self.write("modules/matplotlib.py", b"raise ImportError('there is no matplotlib')\n")
        path = self.write("results.json", json.dumps(read_result(1)).encode())
        self.fail("report", path, naming=["python3-matplotlib"],
                  env={**os.environ, "PYTHONPATH": self.path("modules")})


if __name__ == "__main__":
    unittest.main()
