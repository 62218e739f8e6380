#!/usr/bin/python3
"""What users have today: a shuffled torch DataLoader over py-lmdb. Prints one JSON line.

  lmdb_dataloader.py DATASET WORKERS BATCH SAMPLES

Keys are listed beforehand; every worker opens the environment for itself, without read-ahead of its
own, as py-lmdb's documentation advises for random access. `seconds` runs from the first batch asked
for to the last: workers have to start within it, as in every epoch of a training.
"""

import itertools
import json
import os
import sys
import time

import lmdb
import torch.utils.data


class Records(torch.utils.data.Dataset):

    def __init__(self, path):
        self._path = path
        self._transaction = None
        with lmdb.open(path, readonly=True, lock=False) as environment:
            with environment.begin() as transaction:
                self._keys = list(transaction.cursor().iternext(values=False))

    def __len__(self):
        return len(self._keys)

    def __getitem__(self, index):
        if self._transaction is None:
            environment = lmdb.open(self._path, readonly=True, lock=False, readahead=False)
            self._transaction = environment.begin(buffers=False)
        return self._transaction.get(self._keys[index])


def main():
    path, workers, batch, samples = sys.argv[1], *map(int, sys.argv[2:5])
    records = Records(path)
    with open(f"{path}/data.mdb", "rb") as file:  # listing the keys has read pages
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    loader = torch.utils.data.DataLoader(records, batch_size=batch, shuffle=True,
                                         num_workers=workers, collate_fn=list)
    begin = time.monotonic()
    delivered = 0
    for values in itertools.islice(loader, samples // batch):
        delivered += sum(map(len, values))
    seconds = time.monotonic() - begin
    print(json.dumps({"how": "DataLoader", "workers": workers, "seconds": seconds,
                      "samples": samples // batch * batch, "delivered": delivered,
                      "samples_per_second": samples // batch * batch / seconds}))


if __name__ == "__main__":
    main()
