"""ELF files: their entries for the loader, and the names in them."""

from __future__ import annotations

import mmap
import os
import re
import struct
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Elf", "holds", "read", "words"]

_MAGIC = b"\x7fELF\x02\x01"  # 64 bits, little endian: all that there is below a GPU
_LOAD, _DYNAMIC = 1, 2
_NEEDED, _STRTAB, _SONAME, _RPATH, _RUNPATH = 1, 5, 14, 15, 29


@dataclass(frozen=True)
class Elf:
    """The part of a library's dynamic section that decides where its own libraries come from."""

    path: str
    needed: tuple[str, ...] = ()
    soname: str = ""
    rpath: tuple[str, ...] = ()
    runpath: tuple[str, ...] = ()

    def folders(self) -> list[str]:
        """Return the folders in which the loader looks before its cache, in its order."""
        environment = os.environ.get("LD_LIBRARY_PATH", "").split(":")
        own = self.runpath or self.rpath
        # Only a library without a RUNPATH has its RPATH read, and then before everything else.
        order = [*environment, *own] if self.runpath else [*own, *environment]
        return [folder for folder in order if folder]


def read(path: str) -> Elf:
    """Read a library; raises `ValueError` if the file is none."""
    with Path(path).open("rb") as file:
        data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        if data[:6] != _MAGIC:
            raise ValueError(f"{path} is not a 64-bit ELF file")
        segments = list(_segments(data))
        entries = [entry for segment in segments for entry in _dynamic(data, segment)]
        strings = next((value for tag, value in entries if tag == _STRTAB), 0)
        base = _offset(segments, strings)

        def texts(wanted: int) -> list[str]:
            return [_text(data, base + value) for tag, value in entries if tag == wanted]

        return Elf(
            path=path,
            needed=tuple(texts(_NEEDED)),
            soname="".join(texts(_SONAME)),
            rpath=_expanded(texts(_RPATH), path),
            runpath=_expanded(texts(_RUNPATH), path),
        )


def words(path: str, pattern: bytes) -> list[str]:
    """Return the strings of C in a file that match as a whole."""
    with Path(path).open("rb") as file:
        data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        matches = {match[1].decode() for match in re.finditer(rb"(" + pattern + rb")\0", data)}
    return sorted(matches)


def holds(path: str, text: bytes) -> bool:
    """Tell whether a file holds a text."""
    with Path(path).open("rb") as file:
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ).find(text) >= 0


def _segments(data: mmap.mmap) -> list[tuple[int, int, int, int]]:
    """Return type, offset, address and size of each part for the loader."""
    start, size, count = (*struct.unpack_from("<Q", data, 32), *struct.unpack_from("<HH", data, 54))
    segments = []
    for index in range(count):
        kind, _, offset, address, _, length = struct.unpack_from(
            "<IIQQQQ", data, start + index * size
        )
        segments.append((kind, offset, address, length))
    return segments


def _dynamic(data: mmap.mmap, segment: tuple[int, int, int, int]) -> list[tuple[int, int]]:
    kind, offset, _, length = segment
    if kind != _DYNAMIC:
        return []
    pairs = struct.iter_unpack("<QQ", data[offset : offset + length // 16 * 16])
    return [(tag, value) for tag, value in pairs if tag]


def _offset(segments: list[tuple[int, int, int, int]], address: int) -> int:
    """Return the offset in the file of the part that the loader puts at an address."""
    for kind, offset, start, length in segments:
        if kind == _LOAD and start <= address < start + length:
            return offset + address - start
    return 0


def _text(data: mmap.mmap, offset: int) -> str:
    return data[offset : data.find(b"\0", offset)].decode()


def _expanded(texts: list[str], path: str) -> tuple[str, ...]:
    origin = str(Path(path).resolve().parent)
    folders = [folder for text in texts for folder in text.split(":") if folder]
    return tuple(re.sub(r"\$ORIGIN|\$\{ORIGIN\}", origin, folder) for folder in folders)
