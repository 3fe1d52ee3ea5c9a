"""Python's bytecode files: their headers name the time of the source, or a digest of it.

By PEP 552 a header is a magic number, flags, and 8 bytes more. These are time and size of the
source, or a digest.
"""

# Paths are bytes here, since names may be no text; pathlib takes none.
# ruff: noqa: PTH118, PTH119, PTH120, PTH123
import _imp
import os
import re
import struct
from collections.abc import Collection
from dataclasses import dataclass
from typing import NamedTuple

_LAYOUT = struct.Struct("<H2sIII")
# b"\r\n" as the upper half of the magic number.
_END = 0x0A0D0000
_WORD = 0xFFFFFFFF
# Magic numbers, from Include/internal/pycore_magic_number.h: the first with flags, the number of
# Python 2.7, and the first with digests by SipHash-1-3. The Python that runs this uses SipHash-1-3.
_FLAGS, _PYTHON_2, _SIPHASH_13 = 3390, 20000, 3495
_CHECKED = 3
_CACHED = re.compile(rb"(.+?)\.[^.]+(?:\.opt-[^.]+)?\.pyc", re.DOTALL)


class _Header(NamedTuple):
    magic: int
    end: bytes
    flags: int
    time: int
    size: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Source:
    """A source as it is now, and the time that it gets; `is_new` if this layer brought it."""

    path: bytes
    status: os.stat_result
    time: int
    is_new: bool


def source_of(path: bytes) -> bytes:
    """Return the path of the source that a bytecode file is of."""
    folder, name = os.path.split(path)
    match = _CACHED.fullmatch(name)
    if os.path.basename(folder) == b"__pycache__" and match:
        return os.path.join(os.path.dirname(folder), match[1] + b".py")
    return path.removesuffix(b"c")


def restamp(path: bytes, source: Source | None, known: Collection[int]) -> None:
    """Let the header name the time that the source gets, if it is of the source as it is now.

    A header that is not gets the time 0, and stays out of date. A checked digest of a new source
    becomes time and size: imports need not read the source. `known` are times of earlier layers;
    their sources may be elsewhere.
    """
    with open(os.open(path, os.O_RDWR | os.O_NOFOLLOW), "r+b") as file:
        data = file.read(_LAYOUT.size)
        if len(data) < _LAYOUT.size:
            return
        header = _Header(*_LAYOUT.unpack(data))
        if header.end != b"\r\n" or not _FLAGS <= header.magic < _PYTHON_2:
            return
        if header.flags == 0:
            header = header._replace(time=_time(header, source, known))
        elif header.flags == _CHECKED and source and _is_current(data, header, source):
            header = header._replace(flags=0, time=source.time, size=source.status.st_size & _WORD)
        file.seek(0)
        file.write(_LAYOUT.pack(*header))


def _time(header: _Header, source: Source | None, known: Collection[int]) -> int:
    if source is None:
        return header.time if header.time in known else 0
    now = (int(source.status.st_mtime) & _WORD, source.status.st_size & _WORD)
    return source.time if (header.time, header.size) == now else 0


def _is_current(data: bytes, header: _Header, source: Source) -> bool:
    """Return whether the digest is that of the source; False for one of an older Python."""
    if not source.is_new or header.magic < _SIPHASH_13:
        return False
    with open(os.open(source.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
        return _imp.source_hash(header.magic | _END, file.read()) == data[8:]
