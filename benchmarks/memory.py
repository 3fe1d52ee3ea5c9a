"""The memory of everything a benchmark starts, sampled from /proc."""  # noqa: INP001  # run.py's folder is on sys.path

from __future__ import annotations

import os
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from sampling import Sampling

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Sampler"]

PAGE_MB = os.sysconf("SC_PAGE_SIZE") / 1e6


class _Process(NamedTuple):
    number: int
    parent: int
    name: str
    megabytes: float


@dataclass
class Sampler(Sampling):
    """Peaks of resident memory below this process: shared pages count once per process.

    `own` is that of all of sifwright's Pythons together: it starts one more to pack a layer.
    """

    tree: float = 0
    single: float = 0
    single_name: str = ""
    own: float = 0

    def sample(self) -> None:
        found = list(_below(os.getpid(), _processes()))
        self.tree = max(self.tree, sum(process.megabytes for process in found))
        own = (process.megabytes for process in found if _is_own(process))
        self.own = max(self.own, sum(own))
        for process in found:
            if process.megabytes > self.single:
                self.single, self.single_name = process.megabytes, process.name


def _below(top: int, processes: dict[int, _Process]) -> Iterator[_Process]:
    for number, process in processes.items():
        if process.parent == top:
            yield process
            yield from _below(number, processes)


def _processes() -> dict[int, _Process]:
    numbers = (int(path.name) for path in Path("/proc").iterdir() if path.name.isdecimal())
    return {number: process for number in numbers if (process := _process(number))}


def _process(number: int) -> _Process | None:
    """Parse /proc/PID/stat (proc(5)): the name is in parentheses and may hold anything."""
    try:
        text = Path(f"/proc/{number}/stat").read_text(errors="replace")
    except OSError:
        return None  # it has ended
    name, _, rest = text.partition("(")[2].rpartition(")")
    fields = rest.split()
    megabytes = int(fields[21]) * PAGE_MB
    return _Process(number=number, parent=int(fields[1]), name=name, megabytes=megabytes)


def _is_own(process: _Process) -> bool:
    """Whether it is a `python -m sifwright…`; what one starts has its memory until it execs."""
    words = _words(process.number)
    is_ours = any(b.startswith(b"sifwright") and a == b"-m" for a, b in pairwise(words))
    return is_ours and words != _words(process.parent)


def _words(number: int) -> list[bytes]:
    try:
        return Path(f"/proc/{number}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return []
