"""Archives that ADD unpacks, read with care: their makers are not trusted."""

import bz2
import gzip
import io
import lzma
import tarfile
import zlib
from collections.abc import Callable

from sifwright.recipe_import.context import MAX_FILE_BYTES, ContextError

_ZSTD = b"\x28\xb5\x2f\xfd"
# What Docker knows a compression by.
_KINDS: dict[bytes, Callable[[io.BytesIO], io.BufferedIOBase]] = {
    b"\x1f\x8b\x08": lambda file: gzip.GzipFile(fileobj=file),
    b"BZh": bz2.BZ2File,
    b"\xfd7zXZ\x00": lzma.LZMAFile,
}
_CHUNK = 1 << 16


def unpacked(data: bytes) -> bytes | None:
    """Return the archive without compression, for images without xz; None for other files.

    As for Docker, a file whose first entry can be read is an archive, whatever follows.
    """
    if data.startswith(_ZSTD):
        message = "of zstd's archives some builders unpack (BuildKit), others do not (Docker 20.10)"
        raise ContextError(
            message, "Use gzip or xz to have it unpacked, or COPY, which never does it."
        )
    plain, is_broken = _plain(data)
    try:
        archive = tarfile.open(fileobj=io.BytesIO(plain), mode="r:")  # noqa: SIM115  # of memory
    except tarfile.TarError:
        return None
    except (ValueError, OverflowError, OSError):
        raise _broken() from None
    if len(plain) > MAX_FILE_BYTES:
        raise ContextError("unpacked, the archive is larger than 4 MiB", "Have it downloaded.")
    if is_broken:
        raise _broken()
    return plain if _members(archive) else None


def _plain(data: bytes) -> tuple[bytes, bool]:
    """Return the first 4 MiB without compression, and whether the rest is broken."""
    kind = next((opened for start, opened in _KINDS.items() if data.startswith(start)), None)
    plain = bytearray()
    file = kind(io.BytesIO(data)) if kind else io.BytesIO(data)
    try:
        while len(plain) <= MAX_FILE_BYTES and (more := file.read1(_CHUNK)):
            plain += more
    except (OSError, EOFError, zlib.error, lzma.LZMAError):
        return bytes(plain), True
    return bytes(plain), False


def _members(archive: tarfile.TarFile) -> list[tarfile.TarInfo]:
    try:
        members = archive.getmembers()
    except (tarfile.TarError, OSError, ValueError, OverflowError):
        raise _broken() from None
    for member in members:
        if ".." in member.name.split("/") or member.isdev():
            raise ContextError(f"the archive holds {member.name!a}", "Make it again without it.")
    return members


def _broken() -> ContextError:
    return ContextError(
        "the archive ends early, or is broken", "Make it again, and try 'tar -tf' on it."
    )
