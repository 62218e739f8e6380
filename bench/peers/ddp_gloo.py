#!/usr/bin/python3
"""DistributedDataParallel over Gloo on the emulated training. Prints one JSON line on rank 0.

  forebay-bench sync --net googlenet --operations > googlenet.json
  mpirun -n 4 bench/peers/ddp_gloo.py googlenet.json --steps 30
"""

import json
import os

import torch
import torch.distributed

import emulation


def main():
    options = emulation.parse_arguments(__doc__)
    rank, size = emulation.launched_rank_and_size()
    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    os.environ.setdefault("MASTER_PORT", "29471")
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo", rank=rank, world_size=size)
    network = emulation.read_network(options.operations, options.net)
    schedule = emulation.Schedule(network, options)
    model = emulation.Model(network, schedule)
    parallel = torch.nn.parallel.DistributedDataParallel(model, gradient_as_bucket_view=True)
    images = emulation.Images(options, network["batch"], network["side"])
    x = torch.zeros(1, requires_grad=True)

    def step():
        parallel.zero_grad(set_to_none=True)
        parallel(x).backward()

    figures = emulation.measure(network, options, images, schedule, step,
                                torch.distributed.barrier, size)
    if rank == 0:
        print(json.dumps({"how": "DistributedDataParallel", "net": network["net"],
                          "version": torch.__version__, "ranks": size,
                          "input": options.input, "input_threads": options.input_threads,
                          **figures}))
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
