#!/usr/bin/python3
"""Horovod (over MPI) on the emulated training. Prints one JSON line on rank 0.

  forebay-bench sync --net googlenet --operations > googlenet.json
  HOROVOD_CYCLE_TIME=5 mpirun -n 4 bench/peers/horovod_torch.py googlenet.json --steps 30

HOROVOD_CYCLE_TIME is in milliseconds, and 1 where it is not set; 5 was the default of the paper's
version. bench/peers/README.md says how Horovod is installed.
"""

import json
import os

import horovod
import horovod.torch as hvd
import torch

import emulation


class NoUpdate(torch.optim.Optimizer):
    """The device updates: there is nothing to compute here."""

    def __init__(self, parameters):
        super().__init__(parameters, {})

    def step(self, closure=None):
        del closure


def main():
    options = emulation.parse_arguments(__doc__)
    hvd.init()
    torch.set_num_threads(1)
    network = emulation.read_network(options.operations, options.net)
    schedule = emulation.Schedule(network, options)
    model = emulation.Model(network, schedule)
    names = [tensor["name"] for tensor in network["tensors"]]
    optimizer = hvd.DistributedOptimizer(NoUpdate(list(model.weights)),
                                         named_parameters=list(zip(names, model.weights)))
    images = emulation.Images(options, network["batch"], network["side"])
    x = torch.zeros(1, requires_grad=True)

    def step():
        optimizer.zero_grad()
        model(x).backward()
        optimizer.synchronize()
        with optimizer.skip_synchronize():
            optimizer.step()

    figures = emulation.measure(network, options, images, schedule, step, hvd.barrier, hvd.size())
    if hvd.rank() == 0:
        print(json.dumps({"how": "Horovod", "net": network["net"], "version": horovod.__version__,
                          "cycle_ms": float(os.environ.get("HOROVOD_CYCLE_TIME", "1")),
                          "ranks": hvd.size(), "input": options.input,
                          "input_threads": options.input_threads, **figures}))
    hvd.shutdown()


if __name__ == "__main__":
    main()
