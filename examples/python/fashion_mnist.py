"""Fashion-MNIST with plain PyTorch; `--loader` changes the line that makes batches.

    forebay pack --from idx --split train /usr/share/datasets/fashion-mnist train.lmdb
    forebay pack --from idx --split test /usr/share/datasets/fashion-mnist test.lmdb
    python fashion_mnist.py train.lmdb test.lmdb --loader dataloader
    python fashion_mnist.py train.lmdb test.lmdb --loader forebay

The same on several ranks. Under MPI gradients are summed by Forebay in the background; under
torchrun by torch's DistributedDataParallel over Gloo. --batch-size is of each rank:

    mpirun -n 4 python fashion_mnist.py train.lmdb test.lmdb --batch-size 16
    torchrun --nproc-per-node 4 fashion_mnist.py train.lmdb test.lmdb --batch-size 16

(The images are those of Debian's package dataset-fashion-mnist.)
"""

import argparse
import itertools

import forebay
import forebay.torch
import torch
from torch import nn


def parse_arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("train")
    parser.add_argument("test")
    parser.add_argument("--loader", choices=("forebay", "dataloader"), default="forebay")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--samples", type=int, help="of an epoch (default: all)")
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--learning-rate", type=float, default=0.05)
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


def make_model():
    return nn.Sequential(
        nn.Conv2d(1, 16, 5, stride=2), nn.ReLU(),
        nn.Conv2d(16, 32, 3, stride=2), nn.ReLU(),
        nn.Flatten(), nn.Linear(32 * 5 * 5, 64), nn.ReLU(), nn.Linear(64, 10),
    )  # fmt: skip


def make_batches(options, ranks):
    """Batches of images and labels; a new order in every epoch."""
    if options.loader == "forebay":
        return forebay.torch.Loader(
            options.train, options.batch_size, seed=options.seed, ranks=ranks
        )
    dataset = forebay.Dataset(options.train)
    order = torch.utils.data.DistributedSampler(dataset, ranks.size, ranks.rank, seed=options.seed)
    return torch.utils.data.DataLoader(dataset, options.batch_size, sampler=order)


def parallel(model, optimizer, ranks):
    """The model and the optimizer of all ranks together."""
    if ranks.size == 1:
        return model, optimizer
    if ranks.kind == "mpi":
        forebay.torch.broadcast_parameters(model.state_dict())
        return model, forebay.torch.DistributedOptimizer(optimizer, model.named_parameters())
    torch.distributed.init_process_group("gloo")
    return nn.parallel.DistributedDataParallel(model), optimizer


def to_input(image):
    return image.float() / 127.5 - 1


def train(model, optimizer, batches):
    model.train()
    for batch in batches:
        loss = nn.functional.cross_entropy(model(to_input(batch["image"])), batch["label"].long())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@torch.no_grad()
def accuracy(model, path):
    """Of all test images, by one rank."""
    model.eval()
    right = total = 0
    for batch in forebay.torch.Loader(
        path, batch_size=500, order="sequential", end="exact", ranks="single"
    ):
        guess = model(to_input(batch["image"])).argmax(dim=1)
        right += int((guess == batch["label"]).sum())
        total += len(guess)
    return right / total


def main():
    options = parse_arguments()
    torch.set_num_threads(1)
    torch.manual_seed(options.seed)
    ranks = forebay.find_ranks()
    batches = make_batches(options, ranks)
    model = make_model()
    optimizer = torch.optim.SGD(model.parameters(), options.learning_rate, momentum=0.9)
    whole, optimizer = parallel(model, optimizer, ranks)
    steps = options.samples and options.samples // (options.batch_size * ranks.size)
    for epoch in range(options.epochs):
        if options.loader == "dataloader":
            batches.sampler.set_epoch(epoch)
        train(whole, optimizer, itertools.islice(batches, steps))
    if ranks.rank == 0:
        print(f"test accuracy {accuracy(model, options.test):.4f} on {ranks.size} ranks")
    if torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
