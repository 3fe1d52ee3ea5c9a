"""ADD of an address: a source with a pin."""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING

from sifwright.recipes.context import ContextError
from sifwright.recipes.draft import DraftDownload

if TYPE_CHECKING:
    from sifwright.recipes.dockerfile.instructions import Instruction

__all__ = ["download", "is_address"]

_URL = re.compile(r"https?://[^\s@'\"{}]+/([A-Za-z0-9][A-Za-z0-9._+-]*)")
_UNPACKED = re.compile(r"\.(tar(\.[a-z0-9]+)?|tgz|tbz2?|txz)$")
_FIX = "Use RUN with curl, and compare the sum of what it got."


def is_address(source: str) -> bool:
    return re.match(r"[a-z]+://|git@", source) is not None


def download(
    item: Instruction, number: int, url: str, target: str
) -> tuple[DraftDownload, tuple[str, ...]]:
    """Return the source, and the lines of install.sh that put the file in place."""
    match = _URL.fullmatch(url)
    if match is None or match[1].endswith(".git"):
        raise ContextError(f"'{url}' is not the address of a file", _FIX)
    if _UNPACKED.search(match[1]):
        # ADD leaves it packed, fetch-source does not.
        raise ContextError(f"'{url}' is an archive, which ADD leaves packed", _FIX)
    sums = [value for name, value in item.flags if name == "checksum"]
    if sums and not re.fullmatch(r"sha256:[0-9a-f]{64}", sums[0]):
        raise ContextError(f"--checksum={sums[0]}", "Give a sha256 of 64 digits.")
    name = f"add-{item.line}-{number}"
    sha256 = sums[0].removeprefix("sha256:") if sums else ""
    code = [f"download {name} {shlex.quote(match[1])} {shlex.quote(target)}"]
    if mode := dict(item.flags).get("chmod"):
        code.append(f'chmod {mode} -- "$copied"')
    return DraftDownload(name=name, url=url, sha256=sha256, line=item.line), tuple(code)
