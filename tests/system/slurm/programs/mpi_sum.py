"""Adds up the ranks by mpi4py or by Horovod, and prints the sum: mpi_sum.py mpi4py|horovod."""

import importlib
import os
import sys
from typing import Any


def by_mpi4py() -> tuple[int, int, int]:
    mpi: Any = importlib.import_module("mpi4py.MPI")  # only the image has it
    world = mpi.COMM_WORLD
    return world.rank, world.size, world.allreduce(world.rank + 1)


def by_horovod() -> tuple[int, int, int]:
    torch: Any = importlib.import_module("torch")
    hvd: Any = importlib.import_module("horovod.torch")
    hvd.init()
    assert hvd.mpi_enabled()
    ranks = hvd.allreduce(torch.tensor([hvd.rank() + 1]), op=hvd.Sum)
    return hvd.rank(), hvd.size(), int(ranks.item())


rank, size, total = {"mpi4py": by_mpi4py, "horovod": by_horovod}[sys.argv[1]]()
sys.stdout.write(f"rank {rank} of {size} on {os.uname().nodename}: {total}\n")
