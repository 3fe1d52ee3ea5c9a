"""The memory that the ranks of a node may take, by kernel, Slurm and GPU."""

from __future__ import annotations

import contextlib
import pathlib
import re
import sys
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from collections.abc import Iterator

# The files of a memory cgroup that hold its limit and its use, in bytes: version 2, version 1.
CGROUPS = (
    (re.compile(r"^0::(.*)$", re.MULTILINE), "", "memory.max", "memory.current"),
    (
        re.compile(r"^\d+:[^:]*\bmemory\b[^:]*:(.*)$", re.MULTILINE),
        "memory",
        "memory.limit_in_bytes",
        "memory.usage_in_bytes",
    ),
)
AVAILABLE = re.compile(r"^MemAvailable: +(\d+) kB", re.MULTILINE)
# Version 1 has two lines: the cgroup's own, and with those below it.
CACHED = re.compile(r"^(?:total_)?inactive_file (\d+)", re.MULTILINE)
MARGIN = 64 << 20  # for the pieces in which results are compared


def needed(size: int, ranks: int) -> int:
    """Return the bytes of a rank for operations of `size` bytes, with the backend's copy."""
    return 2 * size + size // ranks + MARGIN


def free(device: torch.device, local_ranks: int, root: pathlib.Path = pathlib.Path("/")) -> int:
    """Return the free bytes of a rank: on its GPU, or its share of the node and the job."""
    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[0])
    return min([_of_node(root), *_of_cgroups(root)]) // local_ranks


def _of_node(root: pathlib.Path) -> int:
    match = AVAILABLE.search((root / "proc/meminfo").read_text(encoding="utf-8"))
    return int(match[1]) * 1024 if match else sys.maxsize  # kernels before 3.14


def _of_cgroups(root: pathlib.Path) -> Iterator[int]:
    """Yield the rest of this process's cgroup and those above; Slurm limits the job's."""
    own = (root / "proc/self/cgroup").read_text(encoding="utf-8")
    for pattern, hierarchy, limit, used in CGROUPS:
        top = root / "sys/fs/cgroup" / hierarchy
        for match in pattern.finditer(own):
            leaf = top / match[1].lstrip("/")
            for folder in (leaf, *leaf.parents[: len(leaf.parts) - len(top.parts)]):
                # No such file, no right to read it, or "max": no limit that we know of.
                with contextlib.suppress(OSError, ValueError):
                    yield int((folder / limit).read_text(encoding="utf-8")) - _used(folder, used)


def _used(folder: pathlib.Path, used: str) -> int:
    """Return the used bytes without cached files, which the kernel drops first."""
    cached = CACHED.findall((folder / "memory.stat").read_text(encoding="utf-8"))
    return int((folder / used).read_text(encoding="utf-8")) - int(cached[-1] if cached else 0)
