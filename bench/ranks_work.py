#!/usr/bin/python3
"""What ranks do for run_launchers.py, whoever has started them: reads a data set, or sums.

  torchrun --nproc-per-node 4 bench/ranks_work.py read DATA --order shuffled --batch 640
  mpirun -n 4 python3 bench/ranks_work.py sum --bytes 4194304 --steps 30

Each rank prints one line of figures, behind the word FIGURES.
"""

import argparse
import json
import time

import forebay


def read(arguments, ranks):
    begun = time.perf_counter()
    options = dict(word.split("=", 1) for word in arguments.option)
    loader = forebay.Loader(arguments.dataset, global_batch_size=arguments.batch, decode=False,
                            order=arguments.order, ranks=ranks, epochs=arguments.epochs, **options)
    opened = time.perf_counter() - begun
    begun = time.perf_counter()
    samples = sum(len(batch["sample"]) for _ in range(arguments.epochs) for batch in loader)
    seconds = time.perf_counter() - begun
    figures = loader.stats()
    kind, rank = loader.ranks.kind, loader.ranks.rank
    text = loader.explain()
    loader.close()
    return {"rank": rank, "kind": kind, "samples": samples, "seconds": seconds, "opened": opened,
            "requests": figures["requests"], "asked_bytes": figures["bytes_requested"],
            "explain": text}


def add_up(arguments, ranks):
    import numpy as np

    synchronizer = forebay.Synchronizer(ranks=ranks)
    count = max(1, arguments.bytes // 4 // arguments.tensors)
    arrays = [np.ones(count, np.float32) for _ in range(arguments.tensors)]

    def step():
        handles = [synchronizer.allreduce(f"t{i}", array, reduction="mean")
                   for i, array in enumerate(arrays)]
        for handle in handles:
            handle.wait()

    for _ in range(3):
        step()
    synchronizer.barrier()
    begun = time.perf_counter()
    for _ in range(arguments.steps):
        step()
    seconds = time.perf_counter() - begun
    right = all(bool((array == 1).all()) for array in arrays)
    rank, kind = synchronizer.ranks.rank, synchronizer.ranks.kind
    text = synchronizer.explain()
    synchronizer.close()
    return {"rank": rank, "kind": kind, "seconds": seconds, "steps": arguments.steps,
            "right": right, "explain": text}


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", help="as forebay.Loader takes it: env has each read for itself")
    parts = parser.add_subparsers(dest="part", required=True)
    reading = parts.add_parser("read")
    reading.add_argument("dataset")
    reading.add_argument("--order", default="shuffled")
    reading.add_argument("--batch", type=int, default=640)
    reading.add_argument("--epochs", type=int, default=1)
    reading.add_argument("--option", action="append", default=[], help="NAME=VALUE of the loader")
    adding = parts.add_parser("sum")
    adding.add_argument("--bytes", type=int, default=4 << 20)
    adding.add_argument("--tensors", type=int, default=8)
    adding.add_argument("--steps", type=int, default=30)
    arguments = parser.parse_args()
    work = read if arguments.part == "read" else add_up
    print("FIGURES " + json.dumps(work(arguments, arguments.ranks)), flush=True)


if __name__ == "__main__":
    main()
