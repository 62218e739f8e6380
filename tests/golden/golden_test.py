#!/usr/bin/python3
"""What Forebay gives for known data, held against what it gave when the corpus was recorded.

    golden_test.py                compares with corpus.json
    golden_test.py --record       writes corpus.json anew: only for a change that is meant, and told
    golden_test.py --keep FOLDER  also writes each whole text there, to compare two versions by diff

A change of what an order means raises the version of state(); states in the corpus are what runs of
older versions have kept, and are gone on from as recorded.
"""

import argparse
import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "acceptance"))
sys.path.insert(0, HERE)

import golden_data  # noqa: E402

COMMAND = os.path.abspath(os.environ.get("FOREBAY_COMMAND", "build/release/src/forebay"))
RUNS = os.path.abspath(os.environ.get("FOREBAY_GOLDEN_RUNS", "build/release/tests/golden/golden_runs"))
CORPUS = os.path.join(HERE, "corpus.json")

STRATEGIES = ("lmdb", "lmm", "lmm-dm", "lmm-dio", "lmm-dio-prov", "lmm-dio-prov-coal",
              "lmm-dio-prov-coal-stag")
ENGINES = ("mmap", "pread", "uring")
ORDERS = {
    "plain": "coalesce=1",
    "coalesced": "coalesce=3",
    "epochs": "coalesce=2,epochs=2",
    "drop": "coalesce=2,epochs=1,end=drop",
    "wrap": "coalesce=4,epochs=1,end=wrap",
    "grouped": "order=grouped,group=5,epochs=2",
    "shuffled": "order=shuffled,epochs=2,end=pad",
    "kept": "order=shuffled,keep=4,epochs=1,window=2",
    "unshuffled": "order=shuffled,keep=0,epochs=1",
    "in memory": "order=in_memory,group=4,memory-ratio=0.5,epochs=2",
    "held": "order=shuffled,hold=memory,epochs=2",
    "listed": "order=listed,list=ids,epochs=1,end=wrap",
    "reused": "order=shuffled,reuse=2,window=3,epochs=1",
    "reused by all": "order=shuffled,reuse=2,reuse-scope=global,window=2,epochs=1",
}
BASE = "batch=7,seed=5,stage-bytes=64MiB,timeout=60s"
FEW = ("coalesced", "shuffled", "in memory", "listed")


def options_of(*texts):
    return ",".join(text for text in (BASE, *texts) if text)


class Golden:
    """All texts by name, made by running the programs in the folder of the data."""

    def __init__(self, corpus):
        self.corpus = corpus
        self.texts = {}

    def run_program(self, cases):
        """[(name, data set, ranks, batches, options, state)] -> their texts."""
        lines = ["\t".join(str(word) for word in case[1:]) + "\n" for case in cases]
        done = subprocess.run([RUNS], input="".join(lines), capture_output=True, text=True,
                              env={**os.environ, "XDG_CACHE_HOME": "/dev/null"}, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"golden_runs ended with {done.returncode}: {done.stderr}")
        answers = done.stdout.split("end\n")[:-1]
        if len(answers) != len(cases):
            raise RuntimeError("golden_runs answered not every case")
        self.texts.update((case[0], answer) for case, answer in zip(cases, answers))

    def run_command(self, name, *arguments):
        done = subprocess.run([COMMAND, *arguments], capture_output=True, text=True,
                              env={**os.environ, "XDG_CACHE_HOME": "/dev/null"}, check=False)
        text = done.stdout if done.returncode == 0 else f"code {done.returncode}: {done.stderr}"
        # How long it took, and which file of which device it is, differ from run to run.
        self.texts[name] = re.sub(r'"(seconds|[a-z_]*_seconds|device|inode)": *[-0-9.e+]+',
                                  r'"\1":0', text)

    def orders(self):
        cases = []
        for position, (name, dataset, options, _, decodes) in enumerate(golden_data.SETS):
            whole = name in ("datum", "hdf5")
            for order, words in ORDERS.items():
                if not whole and order not in FEW:
                    continue
                for ranks in (1, 3) if whole else (1 + position % 3,):
                    text = options_of(options, words, "decode=on" if decodes else "",
                                      "" if "epochs" in words else "iterations=12")
                    cases.append((f"{name}, {order}, {ranks} ranks", dataset, ranks, 0, text, ""))
        self.run_program(cases)

    def strategies(self):
        cases = []
        for name in ("datum", "mixed", "hdf5", "grouped", "pairs"):
            _, dataset, options, _, _ = next(row for row in golden_data.SETS if row[0] == name)
            lmdb = name in ("datum", "mixed")
            ways = [f"strategy={way}" for way in STRATEGIES if lmdb] + [f"engine={e}" for e in ENGINES]
            for way in ways:
                coalesce = "" if "coal" in way else "coalesce=3,"
                words = (coalesce if "engine" in way else "") + way
                cases.append((f"{name}, {way}", dataset, 3, 0, options_of(options, words, "iterations=11"), ""))
        self.run_program(cases)

    def resumed(self):
        """Runs that stop after four batches, then go on from what the corpus has kept of them."""
        stops, goes = [], []
        for name in ("datum", "hdf5 fields", "pairs"):
            _, dataset, options, _, _ = next(row for row in golden_data.SETS if row[0] == name)
            for order, words in ORDERS.items():
                text = options_of(options, words)
                stops.append((f"{name}, {order}, stopped", dataset, 3, 4, text, ""))
                state = self.kept_state(f"{name}, {order}, stopped")
                for ranks in (3, 2):
                    goes.append((f"{name}, {order}, on {ranks} ranks again", dataset, ranks, 9, text, state))
        self.run_program(stops)
        if not self.corpus:
            self.corpus = {name: {"state": state_of(text)} for name, text in self.texts.items()}
            goes = [(*case[:5], self.kept_state(stop[0])) for stop in stops
                    for case in goes if case[0].startswith(stop[0][:-len("stopped")] + "on ")]
        self.run_program(goes)

    def kept_state(self, name):
        return self.corpus.get(name, {}).get("state", "")

    def outputs(self):
        for name, dataset, _, flags, _ in golden_data.SETS:
            self.run_command(f"{name}, inspect", "inspect", dataset, *flags, "--json")
            self.run_command(f"{name}, verify", "verify", dataset, *flags, "--json")
            self.run_command(f"{name}, explain", "samples", dataset, *flags, "--batch", "7",
                             "--stage-bytes", "16MiB", "--explain", "--json", "--coalesce", "2",
                             "--roots", "1", "--engine", "pread", "--depth", "4")
        for kind, flags in (("grouped", ("--group", "5")), ("shuffled", ("--keep", "2")),
                            ("in_memory", ("--group", "4", "--ratio", "0.5"))):
            self.run_command(f"order {kind}", "order", "--samples", "60", "--order", kind, *flags,
                             "--batch", "7", "--ranks", "3", "--json")

    def sidecars(self):
        for name, file, form in (("datum", "data.mdb.forebay", "recipe"),
                                 ("mixed", "data.mdb.forebay", "table"),
                                 ("named#train", "data.mdb.train.forebay", "table")):
            self.run_command(f"{name}, provenance", "provenance", name, "--form", form, "--json")
            with open(os.path.join(name.split("#")[0], file), "rb") as sidecar:
                self.texts[f"{name}, sidecar"] = sidecar.read().hex() + "\n"

    def all(self):
        self.orders()
        self.resumed()
        self.outputs()
        self.sidecars()
        self.strategies()  # which now have sidecars to read by
        return self.texts


def state_of(text):
    return next((line[len("state "):] for line in text.splitlines() if line.startswith("state ")), "")


def entry(text):
    """What the corpus keeps of a text: short ones whole, of samples the digest, and the state."""
    found = {"lines": text.count("\n"), "sha256": hashlib.sha256(text.encode()).hexdigest()[:32]}
    if state_of(text):
        found["state"] = state_of(text)
    elif text.startswith("{"):
        found["text"] = text
    return found


def difference(name, expected, text):
    lines = [f"{name}: not as recorded"]
    for key in ("lines", "state", "text"):
        if expected.get(key) != entry(text).get(key):
            lines += [f"  recorded {key}: {expected.get(key)}", f"  now      {key}: {entry(text).get(key)}"]
    return "\n".join(lines)


def keep(folder, texts):
    os.makedirs(folder, exist_ok=True)
    for name, text in texts.items():
        with open(os.path.join(folder, re.sub(r"[^\w.-]+", "_", name)), "w", encoding="utf-8") as file:
            file.write(text)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--keep", metavar="FOLDER", type=os.path.abspath)
    flags = parser.parse_args()
    corpus = {}
    if not flags.record:
        with open(CORPUS, encoding="utf-8") as file:
            corpus = json.load(file)
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        golden_data.make()
        texts = Golden(corpus).all()
        os.chdir(HERE)
    if flags.keep:
        keep(flags.keep, texts)
    if flags.record:
        with open(CORPUS, "w", encoding="utf-8") as file:
            json.dump({name: entry(text) for name, text in texts.items()}, file, indent=1)
            file.write("\n")
        print(f"recorded {len(texts)} texts")
        return 0
    wrong = [difference(name, expected, texts.get(name, "")) for name, expected in corpus.items()
             if name not in texts or entry(texts[name]) != expected]
    new = texts.keys() - corpus.keys()
    for line in wrong + [f"{name}: not in the corpus" for name in sorted(new)]:
        print(line)
    print(f"{len(corpus) - len(wrong)} of {len(corpus)} texts are as recorded")
    return 1 if wrong or new else 0


if __name__ == "__main__":
    sys.exit(main())
