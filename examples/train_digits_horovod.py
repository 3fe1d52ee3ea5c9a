#!/usr/bin/env python3
"""Train a small CNN on handwritten digits with Horovod.

    conda-python-simple train_digits_horovod.py                       one process
    horovodrun -np 2 python train_digits_horovod.py                   two ranks on this machine
    mpirun -np 8 … conda-python-simple train_digits_horovod.py        one rank per task of MPI
    srun -n 8 --mpi=pmix … conda-python-simple train_digits_horovod.py

Horovod learns the ranks from its launcher, by MPI or by variables of horovodrun. It does not use
torch.distributed and its variables. The program horovodrun writes to the home directory. If it
cannot, give it --disable-cache. Checkpoints and signals are those of train_digits.py.

The batch is that of each rank, as is usual with Horovod. More ranks make larger batches, and the
learning rate grows with them.
"""

from __future__ import annotations

import sys

try:
    import horovod.torch as hvd
except ImportError as reason:
    sys.exit(
        f"train_digits_horovod.py needs Horovod, which does not load here: {reason}\n"
        "Take an image with a Horovod layer, or train_digits.py, which needs PyTorch only."
    )

import digits
import torch
import training


class Ranks:
    """The common operations of the ranks, by Horovod."""

    def __init__(self) -> None:
        self.rank = int(hvd.rank())
        self.size = int(hvd.size())

    def total(self, values: list[float]) -> list[float]:
        tensor = torch.tensor(values, dtype=torch.float64)
        return [float(value) for value in hvd.allreduce(tensor, op=hvd.Sum).tolist()]

    def share(self, job: training.Training) -> None:
        # The optimizer first: to make room for its state, ranks that have none take an empty step.
        hvd.broadcast_optimizer_state(job.optimizer, root_rank=0)
        hvd.broadcast_parameters(job.network.state_dict(), root_rank=0)
        job.epoch, job.samples = hvd.broadcast_object((job.epoch, job.samples), root_rank=0)


def choose_device() -> torch.device:
    """Count within the GPUs this process can see: some launchers show each rank only its own."""
    return training.choose_device(hvd.local_rank() % max(torch.cuda.device_count(), 1))


def main() -> None:
    arguments = training.parse_arguments(__doc__, batch_of="each rank")
    signals = training.catch_signals()
    hvd.init()
    device = choose_device()
    network = digits.build_network(arguments.seed).to(device)
    optimizer = hvd.DistributedOptimizer(
        torch.optim.Adam(network.parameters(), lr=arguments.lr * hvd.size()),
        named_parameters=network.named_parameters(),
    )
    job = training.Training(Ranks(), network, network, optimizer, device, arguments.batch_size)
    sys.exit(training.run(job, arguments, signals))


if __name__ == "__main__":
    main()
