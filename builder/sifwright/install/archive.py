"""The archive of run scripts: the same bytes from the same files, on every machine."""

import io
import struct
import tarfile
import zlib
from collections.abc import Iterable, Mapping
from pathlib import PurePosixPath

from sifwright.catalog.model import LayerFile

# RFC 1952: deflate, no name, no time, unknown system.
_GZIP = b"\x1f\x8b\x08\0\0\0\0\0\0\xff"
# RFC 1951, 3.2.4: a stored block is at most that long.
_BLOCK = (1 << 16) - 1


def archive(files: Iterable[LayerFile], links: Mapping[str, str]) -> bytes:
    """Return a .tar.gz of files and symbolic links by path: sorted, owned by root, without times.

    The archive is not compressed: the bytes of deflate depend on the release of zlib.
    """
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w", format=tarfile.GNU_FORMAT) as tar:
        entries: dict[str, LayerFile | str] = {file.path: file for file in files} | {**links}
        folders = {str(parent) for path in entries for parent in PurePosixPath(path).parents}
        for folder in sorted(folders - {"."}):
            tar.addfile(_entry(folder, tarfile.DIRTYPE, 0o755))
        for path in sorted(entries):
            _add(tar, path, entries[path])
    return _stored(data.getvalue())


def _add(tar: tarfile.TarFile, path: str, entry: LayerFile | str) -> None:
    if isinstance(entry, str):
        info = _entry(path, tarfile.SYMTYPE, 0o777)
        info.linkname = entry
        tar.addfile(info)
        return
    info = _entry(path, tarfile.REGTYPE, 0o755 if entry.executable else 0o644)
    info.size = len(entry.data)
    tar.addfile(info, io.BytesIO(entry.data))


def _entry(path: str, kind: bytes, mode: int) -> tarfile.TarInfo:
    info = tarfile.TarInfo(path)
    info.type, info.mode, info.uname, info.gname = kind, mode, "root", "root"
    return info


def _stored(data: bytes) -> bytes:
    blocks = [data[at : at + _BLOCK] for at in range(0, len(data), _BLOCK)]
    parts = [_GZIP]
    for number, block in enumerate(blocks, start=1):
        is_last = number == len(blocks)
        parts += [struct.pack("<BHH", is_last, len(block), len(block) ^ 0xFFFF), block]
    return b"".join([*parts, struct.pack("<II", zlib.crc32(data), len(data) & 0xFFFFFFFF)])
