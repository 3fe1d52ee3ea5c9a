"""Adds up the ranks over MPI, and prints the sum: mpi_sum.py mpi4py|horovod|torch."""

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


def by_torch() -> tuple[int, int, int]:
    torch: Any = importlib.import_module("torch")
    world = torch.distributed
    world.init_process_group("mpi")
    total = torch.full((1000,), world.get_rank() + 1.0)
    world.all_reduce(total)
    (only,) = total.unique().tolist()
    return world.get_rank(), world.get_world_size(), int(only)


libraries = {"mpi4py": by_mpi4py, "horovod": by_horovod, "torch": by_torch}
rank, size, total = libraries[sys.argv[1]]()
sys.stdout.write(f"rank {rank} of {size} on {os.uname().nodename}: {total}\n")
