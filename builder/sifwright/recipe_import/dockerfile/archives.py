"""Archives that ADD unpacks, read with care: their makers are not trusted."""

import lzma
import tarfile
import zlib
from io import BytesIO

from sifwright.recipe_import.context import MAX_FILE_BYTES, ContextError

_ZSTD = b"\x28\xb5\x2f\xfd"


def unpacked(data: bytes) -> bytes | None:
    """Return the archive without compression, for images without xz; None for other files.

    As for Docker, a file with a readable first entry is an archive, with any bytes after it.
    """
    if data.startswith(_ZSTD):
        message = "of zstd's archives some builders unpack (BuildKit), others do not (Docker 20.10)"
        fix = "Use gzip or xz to have it unpacked, or COPY, which never does it."
        raise ContextError(message, fix)
    try:
        archive = tarfile.open(fileobj=BytesIO(data))  # noqa: SIM115  # of memory
    except (tarfile.ReadError, EOFError):
        return None
    except (ValueError, OverflowError, OSError) as error:
        raise _broken() from error
    file = archive.fileobj
    assert file is not None  # noqa: S101  # for the type checker: it was opened for reading
    try:
        file.seek(0)
        plain = file.read(MAX_FILE_BYTES + 1)
        members = archive.getmembers() if len(plain) <= MAX_FILE_BYTES else []
    except (tarfile.TarError, OSError, EOFError, ValueError, zlib.error, lzma.LZMAError) as error:
        raise _broken() from error
    if len(plain) > MAX_FILE_BYTES:
        raise ContextError("unpacked, the archive is larger than 4 MiB", "Have it downloaded.")
    for member in members:
        if ".." in member.name.split("/") or member.isdev():
            raise ContextError(f"the archive holds {member.name!a}", "Make it again without it.")
    return plain if members else None


def _broken() -> ContextError:
    fix = "Make it again, and try 'tar -tf' on it."
    return ContextError("the archive ends early, or is broken", fix)
