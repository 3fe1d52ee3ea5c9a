"""Follow the engine's output: which layer is at work, and what was said when it failed."""

from __future__ import annotations

import re
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sifwright.errors import Problem

if TYPE_CHECKING:
    from pathlib import Path

    from sifwright.progress import Progress, Timer

__all__ = ["Watcher"]

# Printed by templates/step.sh and by %test of the definition file.
_MARK = re.compile(r"sifwright: (begin|test|failed|line) (.*)")
# Printed by Apptainer before it runs mksquashfs.
_PACKING = "Creating SIF file"
_KEPT_LINES = 12


@dataclass(kw_only=True)
class Watcher:
    """Called with every line."""

    timer: Timer
    progress: Progress
    tail: deque[str] = field(default_factory=lambda: deque(maxlen=_KEPT_LINES))
    place: str = ""

    def __call__(self, line: str) -> None:
        self.progress.output(line)
        mark = _MARK.match(line)
        if mark:
            self._marked(*mark.groups())
            return
        # The marks and the trace of %post itself say nothing about the layer that failed.
        if line.strip() and not line.startswith(("+ ", "sifwright: ")):
            self.tail.append(line)
        if _PACKING in line:
            self.timer.start("pack the SIF")

    def _marked(self, word: str, rest: str) -> None:
        if word == "begin":
            self.timer.start(rest)
            self.tail.clear()
        elif word == "test":
            self.timer.start(f"test {rest}")
            self.tail.clear()
        elif word == "line" and not self.place:
            # The command that failed reports first, its callers follow.
            status, layer, command = rest.split(" ", 2)
            self.place = f"layer '{layer}', {command} (exit status {status})"
        elif word == "failed" and not self.place:
            layer, status = rest.rsplit(" ", 1)
            self.place = f"layer '{layer}' (exit status {status})"

    def problem(self, what: str, log: Path) -> Problem:
        """What failed, where, and the last lines the engine printed."""
        lines = "\n".join(f"    | {line}" for line in self.tail)
        where = self.place or f"step '{self.timer.step}'"
        return Problem(
            where=where, what=f"{what}\n{lines}" if lines else what, fix=f"Whole log: {log}"
        )
