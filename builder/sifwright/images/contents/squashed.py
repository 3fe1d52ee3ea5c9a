"""Read a squashfs file, or one inside a SIF: nothing is unpacked, mounted or started."""

import struct
from collections.abc import Collection, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from sifwright.errors import UsageError
from sifwright.images.contents.image_tree import LONGEST_PATH
from sifwright.images.contents.listing import ListedPath
from sifwright.images.sif.copy_data import Range
from sifwright.images.squashfs.inodes import DIRECTORY, Inode
from sifwright.images.squashfs.reader import Squashfs
from sifwright.images.squashfs.stack import Layer
from sifwright.images.squashfs.structures import BadSquashfs
from sifwright.system.files import sha256_of_blocks

# Limits of a text and of all texts: dpkg's database has less than 10 MB.
_MAXIMUM_TEXT, _MAXIMUM_TEXTS = 64 << 20, 512 << 20
# Kinds by their numbers in squashfs, from 1 on.
_KINDS = ("folder", "file", "symlink", "block device", "character device", "fifo", "socket")
_FIX = "Give an image that 'apptainer exec' can start, packed by gzip, xz or zstd."


@dataclass(frozen=True, kw_only=True, slots=True)
class Squashed:
    """A squashfs file that begins at a byte of a file.

    Every method raises `UsageError` if it cannot be read.
    """

    path: Path
    offset: int = 0

    def nodes(self) -> list[ListedPath]:
        """Return all paths, without their extended attributes."""
        with self._opened() as layer:
            return [_listed(path, inode, layer) for path, inode in _inodes(layer)]

    def texts(self, paths: Collection[bytes]) -> dict[bytes, bytes]:
        """Return the contents of some files, without missing files and files that are no text."""
        contents, left = dict[bytes, bytes](), _MAXIMUM_TEXTS
        with self._opened() as layer:
            for path, inode in _inodes(layer, set(paths)):
                if inode.span and inode.span.size <= _MAXIMUM_TEXT:
                    contents[path] = b"".join(layer.squashfs.contents(inode.span))
                    left -= len(contents[path])
                if left < 0:
                    raise BadSquashfs(f"has texts of more than {_MAXIMUM_TEXTS >> 20} MiB")
        return contents

    def digests(self, paths: Collection[bytes]) -> dict[bytes, str]:
        """Return the sha256 of some files."""
        with self._opened() as layer:
            inodes = _inodes(layer, set(paths))
            return {path: sha256_of_blocks(_blocks(layer, inode)) for path, inode in inodes}

    def heads(self, paths: Collection[bytes], size: int) -> dict[bytes, bytes]:
        """Return the first bytes of some files."""
        with self._opened() as layer:
            inodes = _inodes(layer, set(paths))
            return {path: next(_blocks(layer, inode), b"")[:size] for path, inode in inodes}

    @contextmanager
    def _opened(self) -> Iterator[Layer]:
        source = Range(
            path=self.path, offset=self.offset, size=self.path.stat().st_size - self.offset
        )
        try:
            with closing(Squashfs(source)) as squashfs:
                yield Layer(0, squashfs)
        except (BadSquashfs, struct.error, OverflowError) as error:
            message = f"its files cannot be read: it {error}"
            raise UsageError.of(
                message, where=str(self.path), fix=getattr(error, "fix", "") or _FIX
            ) from error


def _inodes(layer: Layer, wanted: set[bytes] | None = None) -> Iterator[tuple[bytes, Inode]]:
    """Yield all paths with their inodes, a folder before what is in it; or the wanted files."""
    parents = {parent for path in wanted or () for parent in _parents(path)}
    folders = [(b"", layer.squashfs.superblock.root)]
    while folders:
        path, reference = folders.pop()
        folder, prefix = layer.inode(reference, DIRECTORY), path + b"/" if path else b""
        if wanted is None:
            yield path, folder
        for name, reference, kind in layer.names(folder):
            below = prefix + name
            if len(below) > LONGEST_PATH:
                raise BadSquashfs("has a path that no program can name")
            if kind == DIRECTORY:
                folders += [(below, reference)] if wanted is None or below in parents else []
            elif wanted is None or below in wanted:
                yield below, layer.inode(reference, kind)


def _blocks(layer: Layer, inode: Inode) -> Iterator[bytes]:
    return layer.squashfs.contents(inode.span) if inode.span else iter(())


def _parents(path: bytes) -> Iterator[bytes]:
    while path := path.rpartition(b"/")[0]:
        yield path


def _listed(path: bytes, inode: Inode, layer: Layer) -> ListedPath:
    if inode.is_whiteout:
        return ListedPath.whiteout(path)
    return ListedPath(
        path=path,
        kind=_KINDS[inode.kind - 1],
        mode=inode.mode,
        uid=layer.owner(inode.owner),
        gid=layer.owner(inode.group),
        size=inode.span.size if inode.span else 0,
        mtime=inode.mtime,
        target=inode.target,
        # Linux's encoding (new_encode_dev).
        device=(inode.device >> 8 & 0xFFF, inode.device & 0xFF | inode.device >> 12 & 0xFFF00),
        links=inode.number if inode.links > 1 else 0,
    )
