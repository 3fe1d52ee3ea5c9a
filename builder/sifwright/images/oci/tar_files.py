"""Tar files of others, read in one pass: no member takes more time or memory than it has bytes.

Python's tarfile is not safe here. It reads without end if a file is shorter than its header says.
It keeps all headers of pax, and calls itself for each further header of a member.
"""

import io
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO

from sifwright.images.contents.files_to_read import Readable
from sifwright.images.oci.streams import RawStream

BLOCK = tarfile.BLOCKSIZE
_PIECE = 1 << 16
_LONG_NAMES = {tarfile.GNUTYPE_LONGNAME: "path", tarfile.GNUTYPE_LONGLINK: "linkpath"}
_PAX = (tarfile.XHDTYPE, tarfile.SOLARIS_XHDTYPE)
# Limits of a header as in Go's archive/tar, with which engines read layers; of headers of one
# member; of records.
_MOST_HEADER_BYTES, _MOST_HEADERS, _MOST_RECORDS = 1 << 20, 8, 256
# Limit for the length of a record, and for a size: 2^63 has 19 digits.
_MOST_DIGITS = 19
_CUT_OFF = "it is cut off"


class TarError(Exception):
    """This is no tar file, or not all of one; the text says why."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Member:
    """A header of the archive: a path, and the target of a link.

    `kind` is `file`, `folder`, `symlink`, `link` (a further name), or empty for anything else.
    """

    path: str
    target: str
    kind: str
    size: int


class Body:
    """The bytes of a member, and no others."""

    def __init__(self, source: IO[bytes], size: int) -> None:
        self._source, self._left, self._ahead = source, size, b""
        self._padding = -size % BLOCK

    def read(self, size: int, /) -> bytes:
        """Give at most so many bytes; raises `TarError` if the archive ends before."""
        if self._ahead:
            data, self._ahead = self._ahead[:size], self._ahead[size:]
            return data
        data = self._source.read(min(size, self._left))
        self._left -= len(data)
        if not data and size and self._left:
            raise TarError(_CUT_OFF)
        return data

    def peek(self, size: int) -> bytes:
        """Give the first bytes, before any is read; they are still there to be read."""
        self._ahead = _exactly(self._source, min(size, self._left))
        self._left -= len(self._ahead)
        return self._ahead

    def skip(self) -> None:
        """Go to the next member."""
        while self.read(_PIECE):
            pass
        _exactly(self._source, self._padding)


def members(stream: Readable) -> Iterator[tuple[Member, Body]]:
    """Yield each member with its bytes, which are there until the next one is asked for.

    Raises `TarError`, and all errors that the stream raises.
    """
    source = io.BufferedReader(RawStream(stream), _PIECE)
    if not source.peek(1):
        raise TarError("it is empty")
    while (member := _next(source)) is not None:
        body = Body(source, member.size)
        yield member, body
        body.skip()


def _next(source: IO[bytes]) -> Member | None:
    """Return the next member, with its extension headers applied; None at the end."""
    extra: dict[str, str] = {}
    for _ in range(_MOST_HEADERS):
        header = _header(source)
        if header is None:
            return None
        if header.type in _LONG_NAMES:
            name = _extra(source, header).partition(b"\0")[0]
            extra[_LONG_NAMES[header.type]] = name.decode("utf-8", "surrogateescape")
        elif header.type in _PAX:
            extra |= _records(_extra(source, header))
        elif header.type == tarfile.XGLTYPE:
            # It speaks of the archive, as engines have it.
            _extra(source, header)
        else:
            return _member(header, extra)
    raise TarError(f"it has more than {_MOST_HEADERS} headers of one file")


def _header(source: IO[bytes]) -> tarfile.TarInfo | None:
    block = source.read(BLOCK)
    if not block.strip(b"\0") and len(block) in {0, BLOCK}:
        return None
    try:
        return tarfile.TarInfo.frombuf(block, "utf-8", "surrogateescape")
    except tarfile.HeaderError as error:
        raise TarError(str(error)) from None


def _extra(source: IO[bytes], header: tarfile.TarInfo) -> bytes:
    """Return the bytes of a header that holds names."""
    if not 0 <= header.size <= _MOST_HEADER_BYTES:
        raise TarError(f"it has a header of {header.size} bytes")
    data = _exactly(source, header.size)
    _exactly(source, -header.size % BLOCK)
    return data


def _records(data: bytes) -> dict[str, str]:
    """Return the records of a pax header that matter: each has a length, a name and a value."""
    records: dict[str, str] = {}
    at = count = 0
    while at < len(data) and data[at]:
        digits = data[at : at + _MOST_DIGITS].partition(b" ")[0]
        end = at + _number(digits)
        name, equals, value = data[at + len(digits) + 1 : end].partition(b"=")
        count += 1
        is_whole = at < end <= len(data) and value.endswith(b"\n")
        if not equals or not is_whole or count > _MOST_RECORDS:
            raise TarError("it has a header that cannot be read")
        if name.startswith(b"GNU.sparse."):
            raise TarError(_SPARSE)
        if name in {b"path", b"linkpath", b"size"}:
            records[name.decode()] = value[:-1].decode("utf-8", "surrogateescape")
        at = end
    return records


_SPARSE = "it has sparse files of GNU tar, which engines do not write"


def _member(header: tarfile.TarInfo, extra: dict[str, str]) -> Member:
    if header.type == tarfile.GNUTYPE_SPARSE:
        raise TarError(_SPARSE)
    kinds = {tarfile.DIRTYPE: "folder", tarfile.SYMTYPE: "symlink", tarfile.LNKTYPE: "link"}
    kind = "file" if header.isreg() else kinds.get(header.type, "")
    has_bytes = kind == "file" or header.type not in tarfile.SUPPORTED_TYPES
    size = _number(extra["size"].encode()) if "size" in extra else header.size
    if size < 0:
        raise TarError(f"it has a file of {size} bytes")
    return Member(
        path=extra.get("path", header.name),
        target=extra.get("linkpath", header.linkname),
        kind=kind,
        size=size if has_bytes else 0,
    )


def _number(digits: bytes) -> int:
    if not digits.isdigit() or len(digits) > _MOST_DIGITS:
        raise TarError("it has a header that cannot be read")
    return int(digits)


def _exactly(source: IO[bytes], size: int) -> bytes:
    data = source.read(size)
    if len(data) != size:
        raise TarError(_CUT_OFF)
    return data
