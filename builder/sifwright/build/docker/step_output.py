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

__all__ = ["StepOutput"]

# Printed by render/templates/enter.sh; it is no line of the log. Any program of the
# container can say the same, so what is named is a file of one folder and nothing else.
_KEPT = re.compile(r"sifwright: kept ([A-Za-z0-9_-][A-Za-z0-9._-]{0,99}) ([A-Za-z0-9+/=]*)")
# Any bytes become text that JSON can hold, and the same bytes again (PEP 383).
_ANY = "surrogateescape"


@dataclass(kw_only=True)
class StepOutput:
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
        match = _KEPT.fullmatch(line)
        if match and (data := _decoded(match[2])) is not None:
            self.kept[match[1]] = data
            return
        self.log.write(f"{line}\n")
        self.log.flush()
        self.on_line(line)


def _decoded(text: str) -> str | None:
    try:
        return base64.b64decode(text, validate=True).decode(errors=_ANY)
    except ValueError:
        return None
