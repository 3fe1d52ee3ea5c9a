"""The memory of everything a benchmark starts, sampled from /proc."""  # noqa: INP001  # run.py's folder is on sys.path

from __future__ import annotations

import os
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Self

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Sampler"]

PERIOD = 0.05
PAGE_MB = os.sysconf("SC_PAGE_SIZE") / 1e6


class _Process(NamedTuple):
    parent: int
    name: str
    megabytes: float


@dataclass
class Sampler:
    """Peaks of resident memory below this process: shared pages count once per process."""

    tree: float = 0
    single: float = 0
    single_name: str = ""
    child: float = 0
    _stop: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        assert self._thread is not None
        self._thread.join()

    def _run(self) -> None:
        while not self._stop.wait(PERIOD):
            self._add(list(_below(os.getpid(), _processes())))

    def _add(self, found: list[_Process]) -> None:
        self.tree = max(self.tree, sum(process.megabytes for process in found))
        for process in found:
            if process.parent == os.getpid():
                self.child = max(self.child, process.megabytes)
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
    return _Process(parent=int(fields[1]), name=name, megabytes=int(fields[21]) * PAGE_MB)
