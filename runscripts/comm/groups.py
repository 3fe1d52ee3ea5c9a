"""Process groups of the benchmark: torch's own backends, and MPI through mpi4py."""

from __future__ import annotations

import ctypes
import datetime as dt
import importlib
import os
import re
from typing import TYPE_CHECKING, Any

import torch
from torch import distributed

if TYPE_CHECKING:
    from collections.abc import Callable


class RefusedError(Exception):
    """A request that cannot run here; the same on every rank."""


class RankError(RefusedError):
    """This rank cannot run; the others may."""


class TorchGroup:
    """torch.distributed; its backend nccl is RCCL where torch was built for AMD GPUs."""

    def __init__(self, backend: str, timeout: float) -> None:
        self.device = gpu() if backend == "nccl" else torch.device("cpu")
        distributed.init_process_group(
            backend,
            timeout=dt.timedelta(seconds=timeout),
            device_id=self.device if backend == "nccl" else None,
        )
        self.rank, self.ranks = distributed.get_rank(), distributed.get_world_size()
        self.backend = self.library = backend
        if backend == "nccl":
            self.library = f"{'RCCL' if torch.version.hip else 'NCCL'} {nccl_version()}"

    def run(self, operation: str, sent: torch.Tensor, result: torch.Tensor) -> None:
        """Do one operation and wait for its end."""
        if operation == "all_reduce":
            distributed.all_reduce(result)
        elif operation == "broadcast":
            distributed.broadcast(result, src=0)
        else:
            self._two_buffers(operation)(result, sent)
        if self.device.type == "cuda":
            torch.cuda.synchronize()

    @staticmethod
    def _two_buffers(operation: str) -> Callable[[torch.Tensor, torch.Tensor], object]:
        """Return the function of an operation: torch 2.13 deprecates its name of 2.12."""
        old = {"all_gather": "all_gather_into_tensor", "reduce_scatter": "reduce_scatter_tensor"}
        newer = getattr(distributed, operation + "_single", None)
        function: Callable[[torch.Tensor, torch.Tensor], object]
        function = newer or getattr(distributed, old[operation])
        return function

    def lacks(self, operation: str) -> str:
        """Return the reason why the backend lacks an operation, or ''; the same on every rank."""
        whole, part = (
            torch.zeros(self.ranks, device=self.device),
            torch.zeros(1, device=self.device),
        )
        buffers = (whole, part) if operation == "reduce_scatter" else (part, whole)
        try:
            self.run(operation, *buffers)
        except (NotImplementedError, RuntimeError) as error:
            if re.search("not support|unsupported|not implemented", str(error), re.IGNORECASE):
                return str(error).splitlines()[0]
            raise
        return ""

    def largest(self, values: list[float]) -> list[float]:
        """Return the largest of each value among all ranks."""
        tensor = torch.tensor(values, dtype=torch.float64, device=self.device)
        distributed.all_reduce(tensor, op=distributed.ReduceOp.MAX)
        return [float(value) for value in tensor.tolist()]

    def texts(self, text: str) -> list[str]:
        """Return a short text of every rank; torch's own all_gather_object needs numpy."""
        data = torch.tensor(list(text.encode().ljust(256)[:256]), dtype=torch.uint8)
        parts = [torch.empty_like(data, device=self.device) for _ in range(self.ranks)]
        distributed.all_gather(parts, data.to(self.device))
        return [bytes(part.tolist()).decode(errors="replace").strip() for part in parts]

    def close(self) -> None:
        """Leave the group."""
        distributed.destroy_process_group()


class MpiGroup:
    """The image's MPI through mpi4py, on tensors in main memory."""

    def __init__(self) -> None:
        self.mpi, self.backend = import_mpi(), "mpi"
        self.world, self.device = self.mpi.COMM_WORLD, torch.device("cpu")
        self.rank, self.ranks = self.world.rank, self.world.size
        name, version = self.mpi.get_vendor()
        self.library = f"{name} {'.'.join(map(str, version))}"

    def run(self, operation: str, sent: torch.Tensor, result: torch.Tensor) -> None:
        """Do one operation and wait for its end."""
        if operation == "all_reduce":
            self.world.Allreduce(self.mpi.IN_PLACE, result)
        elif operation == "broadcast":
            self.world.Bcast(result, root=0)
        elif operation == "all_gather":
            self.world.Allgather(sent, result)
        else:
            self.world.Reduce_scatter_block(sent, result)

    def lacks(self, _operation: str) -> str:
        """Return '': MPI has all operations."""
        return ""

    def largest(self, values: list[float]) -> list[float]:
        """Return the largest of each value among all ranks."""
        return [max(column) for column in zip(*self.world.allgather(values), strict=True)]

    def texts(self, text: str) -> list[str]:
        """Return a short text of every rank."""
        return list(self.world.allgather(text))

    def close(self) -> None:
        """Do nothing: mpi4py leaves MPI at exit."""


def import_mpi() -> Any:  # noqa: ANN401  # a module
    """Import mpi4py's MPI, because torch's wheels have no backend mpi."""
    try:
        return importlib.import_module("mpi4py.MPI")
    except (ImportError, RuntimeError) as error:
        raise RefusedError(
            "backend mpi: this torch was built without MPI, and mpi4py does not work in this image"
            " ({}). Use --backend gloo or nccl, or add mpi4py".format(error)
        ) from error


def nccl_version() -> str:
    """Return the version of the NCCL or RCCL in use: torch tells the one it was built with.

    Where the library is a part of torch, they are the same.
    """
    number = ctypes.c_int()
    try:
        name = "librccl.so.1" if torch.version.hip else "libnccl.so.2"
        ctypes.CDLL(name, os.RTLD_NOLOAD | os.RTLD_NOW).ncclGetVersion(ctypes.byref(number))
    except OSError:
        return ".".join(map(str, torch.cuda.nccl.version()))
    code = number.value
    return f"{code // 10000}.{code // 100 % 100}.{code % 100}"


def gpu() -> torch.device:
    """Return the device that LOCAL_RANK names among those this process sees."""
    local, visible = int(os.environ.get("LOCAL_RANK", "0")), torch.cuda.device_count()
    if not distributed.is_nccl_available() or not visible:
        raise RefusedError(
            f"backend nccl: torch {torch.__version__} sees no GPU here: start the container with"
            " --nv or --rocm on a node with GPUs. Else use --backend gloo"
        )
    if local >= visible:
        raise RankError(f"LOCAL_RANK='{local}', but only {visible} GPUs are visible")
    torch.cuda.set_device(local)
    return torch.device("cuda", local)


def open_group(backend: str, timeout: float) -> TorchGroup | MpiGroup:
    """Join the others; `timeout` in seconds."""
    backend = backend or ("nccl" if torch.cuda.is_available() else "gloo")
    needs_mpi = backend == "mpi" and not distributed.is_mpi_available()
    group = MpiGroup() if needs_mpi else TorchGroup(backend, timeout)
    started = int(os.environ.get("WORLD_SIZE", group.ranks))
    if group.ranks == started > 1:
        return group
    group.close()  # or torch warns of it
    if group.ranks != started:
        raise RefusedError(f"MPI has {group.ranks} ranks, but WORLD_SIZE='{started}': use mpiexec")
    raise RefusedError(
        "one rank has nobody to talk to: start several with srun, mpiexec or"
        " conda-python-distributed --nproc-per-node 2"
    )
