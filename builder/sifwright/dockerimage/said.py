"""Read what a step says: its lines for the log and the watcher, and what it leaves for later."""

from __future__ import annotations

import base64
import codecs
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TextIO

__all__ = ["Said"]

# Printed by templates/enter.sh; it is this machine's, and no line of the log.
_KEPT = re.compile(r"sifwright: kept (\S+) ([A-Za-z0-9+/=]*)")
# Any bytes become text that JSON can hold, and the same bytes again (PEP 383).
_ANY = "surrogateescape"


@dataclass(kw_only=True)
class Said:
    """Called with what comes, in whatever pieces; `kept` is name -> text."""

    log: TextIO
    on_line: Callable[[str], None]
    kept: dict[str, str] = field(default_factory=dict)
    _rest: str = ""
    _decoder: codecs.IncrementalDecoder = field(
        default_factory=lambda: codecs.getincrementaldecoder("utf-8")("replace")
    )

    def __call__(self, chunk: bytes) -> None:
        *lines, self._rest = (self._rest + self._decoder.decode(chunk)).split("\n")
        for line in lines:
            self._line(line)

    def end(self) -> None:
        """What came last had no line break."""
        if self._rest:
            self._line(self._rest)
            self._rest = ""

    def _line(self, line: str) -> None:
        if match := _KEPT.fullmatch(line):
            self.kept[match[1]] = base64.b64decode(match[2]).decode(errors=_ANY)
            return
        self.log.write(f"{line}\n")
        self.log.flush()
        self.on_line(line)
