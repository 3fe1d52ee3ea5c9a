"""Follow the engine's output: which layer is at work, and what was said when it failed."""

from __future__ import annotations

import re
import time
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sifwright.errors import Problem
from sifwright.firstuse import Used

if TYPE_CHECKING:
    from sifwright.progress import Progress, Timer

__all__ = ["Watcher"]

# Printed by templates/step.sh, templates/trap.sh and by %test of the definition file.
_BEGIN = re.compile(r"sifwright: (begin|test) ([a-z0-9.-]+)")
_END = re.compile(r"sifwright: end ([a-z0-9.-]+)")
_LINE = re.compile(r"sifwright: line ([0-9]+) ([a-z0-9.-]+) (\S+:[0-9]+: .*)")
_FAILED = re.compile(r"sifwright: failed ([a-z0-9.-]+) ([0-9]+)")
# Printed by templates/bin/fetch-source.
_PIN = re.compile(r"sifwright: pin (\S+) (\S+) (\S+) ([0-9a-f]{40}|[0-9a-f]{64})")
# Printed by Apptainer before it runs mksquashfs.
_PACKING = "Creating SIF file"
_KEPT_LINES = 12


@dataclass(kw_only=True)
class Watcher:
    """Called with every line. `fix` is what to do when something fails.

    `own_seconds` is how long each layer's install.sh ran, without what running it takes.
    """

    timer: Timer
    fix: str
    tail: deque[str] = field(default_factory=lambda: deque(maxlen=_KEPT_LINES))
    place: str = ""
    used: list[Used] = field(default_factory=list)
    own_seconds: dict[str, float] = field(default_factory=dict)
    _since: float = 0.0
    _status: str = ""
    _command: str = ""

    @property
    def progress(self) -> Progress:
        return self.timer.progress

    def __call__(self, line: str) -> None:
        self.progress.output(line)
        if match := _BEGIN.fullmatch(line):
            self._begin(*match.groups())
        elif match := _END.fullmatch(line):
            self.own_seconds[match[1]] = round(time.monotonic() - self._since, 3)
        elif match := _PIN.fullmatch(line):
            layer, source, ref, digest = match.groups()
            self.used.append(Used(layer=layer, source=source, ref=ref, digest=digest))
        elif match := _LINE.fullmatch(line):
            # A command may fail and be meant to: the last one before the end is the one.
            self._status, self._command = match[1], f", {match[3]}"
        elif match := _FAILED.fullmatch(line):
            command = self._command if self._status == match[2] else ""
            self.place = f"layer '{match[1]}'{command} (exit status {match[2]})"
        elif line.strip() and not line.startswith(("+ ", "sifwright: ")):
            # The trace of %post itself says nothing about the layer that failed.
            self.tail.append(line)
        if _PACKING in line:
            self._begin("pack", "the SIF")

    def _begin(self, word: str, rest: str) -> None:
        self.timer.start(rest if word == "begin" else f"{word} {rest}")
        self._since = time.monotonic()
        self.tail.clear()
        self._status = self._command = ""

    def problem(self, what: str) -> Problem:
        """What failed, where, and the last lines the engine printed."""
        lines = "\n".join(f"    | {line}" for line in self.tail)
        where = self.place or f"step '{self.timer.step}'"
        return Problem(where=where, what=f"{what}\n{lines}" if lines else what, fix=self.fix)
