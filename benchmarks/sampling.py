"""Samples of a running benchmark: memory and disk."""  # noqa: INP001  # run.py's folder is on sys.path

from __future__ import annotations

import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence  # the dataclass's own field type
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple, Self

__all__ = ["DiskSampler", "MemorySampler"]

PAGE_MB = os.sysconf("SC_PAGE_SIZE") / 1e6


@dataclass
class Sampling(ABC):
    """A thread that calls `sample` every `period` seconds, until the `with` statement ends."""

    period: float = 0.05
    _stop: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    @abstractmethod
    def sample(self) -> None: ...

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        assert self._thread is not None
        self._thread.join()

    def _run(self) -> None:
        while not self._stop.wait(self.period):
            self.sample()


@dataclass
class DiskSampler(Sampling):
    """`megabytes`: how much more the file systems of `folders` held than when it began.

    The file system is asked (statvfs(3)), at the same cost for any number of files. It also counts
    removed files that are still open, and files that others write there meanwhile.
    """

    folders: Sequence[Path] = ()
    megabytes: float = 0
    _before: float = 0
    _places: list[Path] = field(default_factory=list)

    def __enter__(self) -> Self:
        # Folders of one file system are counted once.
        self._places = list({folder.stat().st_dev: folder for folder in self.folders}.values())
        self._before = self._used()
        return super().__enter__()

    def sample(self) -> None:
        self.megabytes = max(self.megabytes, self._used() - self._before)

    def _used(self) -> float:
        facts = [os.statvfs(folder) for folder in self._places]
        return sum((status.f_blocks - status.f_bfree) * status.f_frsize for status in facts) / 1e6


class _Process(NamedTuple):
    number: int
    parent: int
    megabytes: float


@dataclass
class MemorySampler(Sampling):
    """Peaks of resident memory below this process: shared pages count once per process.

    `own` is that of all of sifwright's Pythons together: it starts one more to pack a layer.
    """

    tree: float = 0
    own: float = 0

    def sample(self) -> None:
        processes = list(_below(os.getpid(), _processes()))
        self.tree = max(self.tree, sum(process.megabytes for process in processes))
        own = (process.megabytes for process in processes if _is_own(process))
        self.own = max(self.own, sum(own))


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
        text = Path(f"/proc/{number}/stat").read_text(errors="replace", encoding="utf-8")
    except OSError:
        return None  # it has ended
    fields = text.rpartition(")")[2].split()
    megabytes = int(fields[21]) * PAGE_MB
    return _Process(number=number, parent=int(fields[1]), megabytes=megabytes)


def _is_own(process: _Process) -> bool:
    """Tell whether it is `python -m sifwright…`; a child has its parent's memory until it execs."""
    words = _words(process.number)
    is_ours = any(b.startswith(b"sifwright") and a == b"-m" for a, b in pairwise(words))
    return is_ours and words != _words(process.parent)


def _words(number: int) -> list[bytes]:
    try:
        return Path(f"/proc/{number}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return []
