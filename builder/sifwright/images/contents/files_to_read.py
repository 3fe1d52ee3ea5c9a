"""The files of an image that are read for its facts, and the part of each that is kept."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

_PIECE = 1 << 18
# More than any match of `_Scanned` has, so that none is lost between two pieces.
_OVERLAP = 512
_TEXT_BYTES = 1 << 20
# Open MPI and MPICH print their version by a format, so format and version stand apart.
MPI_LIBRARY = (rb"Open MPI v|MPICH Version:", rb"\0v?\d{1,9}\.\d{1,9}\.\d{1,9}[a-z0-9]{0,99}\0")
_LIBC = (rb"GNU C Library [^\n\0]{0,200}? version \d{1,9}\.\d{1,9}",)
_LIB = r"(?:usr/)?lib(?:32|64)?/(?:[a-z0-9_]+-linux-gnu\w*/)?"


class Readable(Protocol):
    """Gives at most so many bytes, and none at the end."""

    def read(self, size: int, /) -> bytes: ...


@dataclass(frozen=True, kw_only=True, slots=True)
class ReadRule:
    """`text`: at most so many bytes are kept, of longer files none; `scanned`: only matches."""

    text: int = 0
    scanned: Sequence[bytes] = ()

    def reads(self, size: int) -> bool:
        """Tell whether a file of this size has to be read."""
        return bool(self.scanned) or 0 < size <= self.text


# Only that there is such a file or folder is of interest, and its name.
_NAMED = ReadRule()
# No two repetitions in a row may take the same characters: whoever made the image chose the path.
_RULES = {
    rf"{_LIB}libc(?:\.so\.6|-2\.\d+\.so)": ReadRule(scanned=_LIBC),
    r"(?:.*/)?libmpi(?:ch)?\.so[.\d]*": ReadRule(scanned=MPI_LIBRARY),
    r"(?:.*/)?bin/python(?:3(?:\.\d+)?)?": ReadRule(text=4096),
    r"(?:etc|usr/lib)/os-release": ReadRule(text=_TEXT_BYTES),
    r"(?:.*/)?pyvenv\.cfg": ReadRule(text=4096),
    r".*/(?:site|dist)-packages/torch/version\.py": ReadRule(text=65536),
    r"usr/local/cuda[^/]*/version\.(?:json|txt)": ReadRule(text=65536),
    r"opt/rocm[^/]*/\.info/version(?:-dev)?": ReadRule(text=4096),
    r"(?:.*/)?pkgconfig/(?:ompi|mpich)\.pc": ReadRule(text=65536),
    r"(?:usr/)?lib/apk/db/installed": ReadRule(text=_TEXT_BYTES),
    r"\.singularity\.d/(?:labels\.json|env/[^/]+\.sh)": ReadRule(text=_TEXT_BYTES),
    r"(?:usr/)?lib/ld-musl-[^/]+\.so\.1": _NAMED,
    r"usr/local/cuda-\d+\.\d+|opt/rocm-\d+\.\d[.\d]*": _NAMED,
    r"(?:.*/)?libcudart\.so\.\d+\.\d[.\d]*": _NAMED,
    r"(?:.*/)?conda-meta/(?:history|(?:python|cuda-cudart|cudatoolkit)-\d[^/]*\.json)": _NAMED,
    r"(?:.*/)?lib(?:64)?/python3\.\d+/os\.py": _NAMED,
    r"(?:.*/)?lib(?:nccl|rccl)-net[^/]*\.so[.\d]*": _NAMED,
}
# One pass over a path, however many rules there are: an image has 200,000 paths.
_ANY = re.compile("|".join(f"({pattern})" for pattern in _RULES), re.DOTALL)
_WANTS = tuple(_RULES.values())
# Thousands of links that lead to nothing of the above.
_NO_LINKS = ("usr/share/", "etc/ssl/", "proc/", "sys/")


def want(path: str) -> ReadRule | None:
    """Return the rule for a path of the image (without a slash in front), or None."""
    match = _ANY.fullmatch(path)
    return _WANTS[(match.lastindex or 1) - 1] if match else None


def keeps_link(path: str) -> bool:
    """Tell whether a symbolic link may lead to such a file."""
    return not path.startswith(_NO_LINKS)


def keep(wanted: ReadRule, size: int, file: Readable) -> bytes:
    """Return the part of a file that is kept; a scan reads the file in pieces."""
    if wanted.scanned:
        return _scan(wanted.scanned, file)
    return file.read(size) if wanted.reads(size) else b""


def _scan(patterns: Sequence[bytes], file: Readable) -> bytes:
    """Return the first match of each pattern, a line for each."""
    matches = [b""] * len(patterns)
    tail = b""
    while piece := file.read(_PIECE):
        data = tail + piece
        for index, pattern in enumerate(patterns):
            if not matches[index] and (match := re.search(pattern, data)):
                matches[index] = match[0].strip(b"\0")
        if all(matches):
            break
        tail = data[-_OVERLAP:]
    return b"\n".join(matches)
