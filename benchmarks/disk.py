"""How much disk something takes at its worst moment."""  # noqa: INP001  # run.py's folder is on sys.path

from __future__ import annotations

import os
from collections.abc import Sequence  # noqa: TC003  # the dataclass's own field type
from dataclasses import dataclass, field
from pathlib import Path  # noqa: TC003  # the same
from typing import Self

from sampling import Sampling

__all__ = ["DiskSampler"]


@dataclass
class DiskSampler(Sampling):
    """`megabytes`: how much more the file systems of `folders` held than when it began.

    What is asked is the file system (statvfs(3)), which costs the same however many files there
    are and counts open files that were removed; so what others write there meanwhile counts, too.
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
        facts = [os.statvfs(place) for place in self._places]
        return sum((one.f_blocks - one.f_bfree) * one.f_frsize for one in facts) / 1e6
