"""Something looked at again and again while a benchmark runs: memory, disk."""  # noqa: INP001  # run.py's folder is on sys.path

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Self

__all__ = ["Sampling"]


@dataclass
class Sampling(ABC):
    """Calls `sample` every `period` seconds, in a thread, until the `with` statement ends."""

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
