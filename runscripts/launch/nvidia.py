"""NVIDIA's GPUs of this node: which of them a list names, and whether a program can use them."""

import os

from .errors import LaunchError
from .variables import shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import List

    from .variables import Env

VARIABLE = "CUDA_VISIBLE_DEVICES"
DRIVER = "libcuda.so.1"


def files(folder: str = "/dev") -> int:
    """Return the number of GPUs with device files."""
    return sum(name[:6] == "nvidia" and name[6:].isdigit() for name in os.listdir(folder))


def uuids(folder: str = "/proc/driver/nvidia/gpus") -> "List[str]":
    """Return the UUIDs of the node's GPUs; none if the driver does not tell them all."""
    gpus: "List[str]" = []
    try:
        for name in os.listdir(folder):
            with open("{}/{}/information".format(folder, name), encoding="ascii") as lines:
                gpus += [line.split()[-1] for line in lines if line.startswith("GPU UUID:")]
    except OSError:
        return []
    # A GPU that is unused since the driver was loaded has the name GPU-????????-….
    return [] if "?" in "".join(gpus) else gpus


def named(env: "Env", names: "List[str]", count: int) -> "List[str]":
    """Return the names up to the first that is no GPU, as the driver reads the list.

    Raises `LaunchError` for a list that gives no GPU: torch would train on the CPUs without a
    word. One GPU named twice is such a list (cuInit returns 101; tried with driver 580.159).
    """
    if not count:  # a login node: nothing is known
        return names
    known = uuids() if any(name.startswith("GPU-") for name in names) else []
    kept: "List[str]" = []
    for name in names:
        gpu = meant(name, count, known)
        if gpu in kept:
            message = "{} names a GPU twice, and CUDA then gives none: name each GPU once"
            raise LaunchError(message.format(shown(env, VARIABLE)))
        if not gpu:
            break
        kept.append(gpu)
    if names and not kept:
        message = (
            "{} names no GPU of this node, which has {} (nvidia-smi -L): torch would use the CPUs."
            " Name one of them, or set it to '' to use none"
        )
        raise LaunchError(message.format(shown(env, VARIABLE), count))
    return names[: len(kept)]


def meant(name: str, count: int, known: "List[str]") -> str:
    """Return the GPU that a name means, or '' for none; what cannot be known is the name itself.

    The first letters of a UUID are enough. The driver takes capital letters, too; torch does not.
    """
    if name.isdigit():
        return str(int(name)) if int(name) < count else ""
    if name.startswith("GPU-") and known:
        return next((uuid for uuid in known if uuid.startswith(name)), "")
    return name if name.startswith(("GPU-", "MIG-")) else ""


def has_driver(env: "Env", library: str = DRIVER) -> bool:
    """Tell whether the loader finds the driver's library, which `--nv` puts into a container."""
    folders = env.get("LD_LIBRARY_PATH", "").split(":")
    if any(folder and os.path.exists(os.path.join(folder, library)) for folder in folders):
        return True
    import ctypes  # noqa: PLC0415  # costs 10 ms

    try:
        ctypes.CDLL(library)
    except OSError:
        return False
    return True
