"""Learns a function from HDF5 files: rows of inputs and a target, as simulations write them.

    python hdf5_regression.py train.h5 test.h5 --make 20000     writes the files by h5py
    python hdf5_regression.py train.h5 test.h5
    mpirun -n 2 python hdf5_regression.py train.h5 test.h5      each rank reads its share

The data sets `x` [N, 8] and `y` [N] of a file are the fields of its samples: Forebay reads of each
sample its row of both.
"""

import argparse

import forebay
import forebay.torch
import numpy as np
import torch
from torch import nn


def parse_arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("train")
    parser.add_argument("test")
    parser.add_argument("--make", type=int, metavar="N", help="only write N samples, and N / 10")
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


def make(path, count, seed):
    import h5py

    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 1, (count, 8)).astype(np.float32)
    with h5py.File(path, "w") as file:
        file["x"] = x
        file["y"] = np.sin(3 * x[:, 0]) + x[:, 1] * x[:, 2] - x[:, 3] ** 2


@torch.no_grad()
def mean_squared_error(model, path):
    """Of the model, and of one that always tells the mean."""
    points = forebay.Dataset(fields_of(path))[:]
    error = model(torch.from_numpy(points["x"])).squeeze(1).numpy() - points["y"]
    return (error**2).mean(), points["y"].var()


def fields_of(path):
    return f"{path}#x,y"


def main():
    options = parse_arguments()
    if options.make is not None:
        make(options.train, options.make, options.seed)
        make(options.test, options.make // 10, options.seed + 1)
        return
    torch.manual_seed(options.seed)
    torch.set_num_threads(1)
    loader = forebay.torch.Loader(fields_of(options.train), options.batch_size, seed=options.seed)
    model = nn.Sequential(
        nn.Linear(8, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 1)
    )
    optimizer = torch.optim.Adam(model.parameters(), 3e-3)
    if loader.ranks.size > 1:
        forebay.torch.broadcast_parameters(model.state_dict())
        optimizer = forebay.torch.DistributedOptimizer(optimizer, model.named_parameters())
    for _ in range(options.epochs):
        for batch in loader:
            loss = nn.functional.mse_loss(model(batch["x"]).squeeze(1), batch["y"])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    if loader.ranks.rank == 0:
        error, of_mean = mean_squared_error(model, options.test)
        print(f"mean squared error {error:.4f}; of the mean {of_mean:.4f}")


if __name__ == "__main__":
    main()
