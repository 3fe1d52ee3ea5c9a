#!/usr/bin/env python3
"""Train a small CNN on handwritten digits with DistributedDataParallel.

    python train_digits.py                                            one process
    srun -n 8 … conda-python-distributed train_digits.py              one rank per task
    conda-python-distributed --nproc-per-node 2 train_digits.py       two ranks on this machine
    torchrun --nproc-per-node 2 train_digits.py                       the same

Reads the env:// variables of torch.distributed (RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR,
MASTER_PORT); without them it runs as one process. With --checkpoint it saves after every epoch and
resumes from there. SIGUSR1 saves after the current step; SIGTERM saves too and stops with exit
status 143. training.py shows how.

The batch is the one of all ranks together: more ranks do the same training, faster.
"""

from __future__ import annotations

import gc
import io
import os
import sys

import digits
import torch
import torch.distributed as dist
import torch.distributed.nn  # before there is a group, see destroy_process_group()
import training
from torch.nn.parallel import DistributedDataParallel


class Ranks:
    """The common operations of the ranks, by torch.distributed."""

    def __init__(self, device: torch.device) -> None:
        self.rank = dist.get_rank()
        self.size = dist.get_world_size()
        self.device = device

    def total(self, values: list[float]) -> list[float]:
        tensor = torch.tensor(values, dtype=torch.float64, device=self.device)
        dist.all_reduce(tensor)
        return [float(value) for value in tensor.tolist()]

    def share(self, job: training.Training) -> None:
        file = io.BytesIO()  # as bytes, or rank 0's GPU would be the one of all ranks' tensors
        torch.save(job.state(), file)
        files = [file.getvalue()]
        dist.broadcast_object_list(files, device=self.device)
        job.restore(torch.load(io.BytesIO(files[0]), map_location="cpu", weights_only=True))


def init_process_group() -> torch.device:
    device = training.choose_device(int(os.environ.get("LOCAL_RANK", "0")))
    backend = "nccl" if device.type == "cuda" else "gloo"
    if "RANK" in os.environ:
        dist.init_process_group(backend)
    else:
        dist.init_process_group(backend, store=dist.HashStore(), rank=0, world_size=1)
    return device


def destroy_process_group() -> None:
    """Join the group's threads: one that meets an interpreter shutting down aborts the process.

    See pytorch#179291. They are joined when nothing refers to the group any more. A
    DistributedDataParallel does, in reference cycles. It also imports torch.distributed.nn, where
    the group of that moment becomes a default argument for good.
    """
    gc.collect()
    dist.destroy_process_group()


def train() -> int:
    """Return the exit status. All references to the group end with this function."""
    arguments = training.parse_arguments(__doc__, batch_of="all ranks together")
    signals = training.catch_signals()
    size = int(os.environ.get("WORLD_SIZE", "1"))
    if arguments.batch_size % size:
        sys.exit(f"--batch-size {arguments.batch_size} does not divide among {size} ranks")
    device = init_process_group()
    network = digits.build_network(arguments.seed).to(device)
    model = DistributedDataParallel(network)
    optimizer = torch.optim.Adam(network.parameters(), lr=arguments.lr)
    batch_size = arguments.batch_size // size
    job = training.Training(Ranks(device), network, model, optimizer, device, batch_size)
    return training.run(job, arguments, signals)


def main() -> None:
    status = train()
    # Not after an exception: the other ranks may wait in a collective that this one has left.
    destroy_process_group()
    sys.exit(status)


if __name__ == "__main__":
    main()
