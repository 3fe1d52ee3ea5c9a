"""Read a layer (OCI image specification, layer.md): a tar file, of which little is kept."""

from __future__ import annotations

import posixpath
import tarfile
from typing import IO, TYPE_CHECKING, ClassVar, cast

from sifwright.imagesource.model import BadImage
from sifwright.imagesource.streams import Checked, Unpacked, drain
from sifwright.inspection.kept import Layer
from sifwright.inspection.wanted import keep, keeps_link, want

if TYPE_CHECKING:
    from typing import Self

    from sifwright.inspection.wanted import Readable

__all__ = ["Member", "checked", "read"]

_WHITEOUT, _OPAQUE = ".wh.", ".wh..wh..opq"
# What AUFS keeps for itself.
_META = ".wh..wh."
_BLOCK = 1 << 16
_MOST_PATHS, _MOST_KEPT_BYTES, _MOST_LINKS = 5_000_000, 64 << 20, 500_000
_LONGEST_TARGET = 4096


class Member(tarfile.TarInfo):
    """A header; of those that hold names, tarfile would read any size into memory."""

    _HOLD_NAMES: ClassVar = (
        tarfile.GNUTYPE_LONGNAME,
        tarfile.GNUTYPE_LONGLINK,
        tarfile.XHDTYPE,
        tarfile.XGLTYPE,
        tarfile.SOLARIS_XHDTYPE,
    )

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> Self:
        found = super().frombuf(buf, encoding, errors)
        if found.type in cls._HOLD_NAMES and not 0 <= found.size <= 1 << 20:
            raise BadImage(f"a layer has a header of {found.size} bytes")
        if found.type == tarfile.GNUTYPE_SPARSE:
            raise BadImage("a layer has sparse files of GNU tar, which engines do not write")
        return found


def read(stream: Readable) -> Layer:
    """What a layer brings, packed or not; reads the stream to its end. Raises `BadImage`."""
    unpacked = Unpacked(stream)
    reading = _Reading()
    try:
        with tarfile.open(
            fileobj=cast("IO[bytes]", unpacked),  # only its read() is used
            mode="r|",
            bufsize=_BLOCK,
            tarinfo=Member,
            errorlevel=2,
        ) as tar:
            while (member := tar.next()) is not None:
                # It remembers each, for what is not done here.
                tar.members.clear()  # type: ignore[attr-defined]  # typeshed lacks it
                reading.add(tar, member)
    except (tarfile.TarError, ValueError, OverflowError) as error:
        raise BadImage(f"a layer is no tar file, or not all of one: {error}") from error
    drain(unpacked)
    return reading.layer


def checked(stream: Readable, digest: str, size: int = -1) -> Layer:
    """The same of a layer that has this digest, packed."""
    whole = Checked(stream, digest, size)
    try:
        layer = read(whole)
    except BadImage:
        # What is not what was asked for is told as that, whatever it looks like.
        whole.finish()
        raise
    whole.finish()
    return layer


class _Reading:
    def __init__(self) -> None:
        self.layer = Layer()
        self._bytes = 0

    def add(self, tar: tarfile.TarFile, member: tarfile.TarInfo) -> None:
        path = _inside(member.name)
        folder, name = posixpath.split(path)
        if name == _OPAQUE:
            self.layer.opaque.add(folder)
        elif name.startswith(_META):
            return
        elif name.startswith(_WHITEOUT):
            self.layer.gone.add(posixpath.join(folder, name.removeprefix(_WHITEOUT)))
        elif path:
            self._count(member, path)
            self._keep(tar, member, path)

    def _count(self, member: tarfile.TarInfo, path: str) -> None:
        (self.layer.folders if member.isdir() else self.layer.others).append(hash(path))
        if len(self.layer.folders) + len(self.layer.others) > _MOST_PATHS:
            raise BadImage(f"a layer has more than {_MOST_PATHS} paths")

    def _keep(self, tar: tarfile.TarFile, member: tarfile.TarInfo, path: str) -> None:
        if member.issym():
            if keeps_link(path) and len(member.linkname) <= _LONGEST_TARGET:
                self._link(path, member.linkname)
            return
        wanted = want(path)
        if wanted is None:
            return
        if member.islnk():
            self.layer.hard[path] = _inside(member.linkname)
        elif member.isdir():
            self._file(path, b"")
        elif member.isreg():
            # errorlevel=2: what cannot be read raises.
            source = tar.extractfile(member)
            self._file(path, keep(wanted, member.size, source) if source else b"")

    def _link(self, path: str, target: str) -> None:
        self.layer.links[path] = target
        if len(self.layer.links) > _MOST_LINKS:
            raise BadImage(f"a layer has more than {_MOST_LINKS} symbolic links")

    def _file(self, path: str, data: bytes) -> None:
        self.layer.files[path] = data
        self._bytes += len(data) + len(path)
        if self._bytes > _MOST_KEPT_BYTES:
            raise BadImage("a layer has more files that say what it is than an image can have")


def _inside(name: str) -> str:
    """A path without a slash in front; raises `BadImage` if it leads out of the image."""
    path = posixpath.normpath(name.lstrip("/") or ".")
    if path == ".." or path.startswith("../"):
        raise BadImage(f"a layer has a path that leads outside: {name[:80]!r}")
    return "" if path == "." else path
