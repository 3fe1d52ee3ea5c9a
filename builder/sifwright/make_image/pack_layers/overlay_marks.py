"""Marks that overlay drivers write into an upper directory for themselves.

The kernel (Documentation/filesystems/overlayfs.rst) marks a removed path by a character device 0:0.
It marks an opaque folder by an extended attribute. fuse-overlayfs does the same if it may. If not,
it writes files as AUFS did: `.wh.NAME`, and `.wh..wh..opq` in an opaque folder.
"""

# Paths are bytes here, since names may be no text; pathlib takes none.
# ruff: noqa: PTH118, PTH119
import errno
import os
import stat
from dataclasses import dataclass

from sifwright.errors import BuildError, quoted
from sifwright.images.contents import listing

_MARK = b".wh."
# fuse-overlayfs writes the second one where it may make a device.
_OPAQUE = {b".wh..wh..opq", b".wh..opq"}
# overlayfs.h of Linux; fuse-overlayfs.h of fuse-overlayfs.
_SPACES = (
    "trusted.overlay.",
    "user.overlay.",
    "user.fuseoverlayfs.",
    "security.fuseoverlayfs.",
    "user.containers.override_stat",
)
# A label of the machine's own policy, which nobody may remove (selinux(8)): no part of the image.
_OF_THE_MACHINE = {"security.selinux"}
# Others, such as redirect and metacopy, say that the path is not all there is to the file.
_NOTES = {"opaque", "origin", "impure", "nlink", "uuid", "protattr"}


# Names and values of extended attributes.
Xattrs = tuple[tuple[bytes, bytes], ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class UpperFolder:
    """The content of a folder: real entries, removed names, and the files that mark them."""

    names: tuple[bytes, ...]
    gone: frozenset[bytes]
    marks: tuple[bytes, ...]
    is_opaque: bool


def take_attributes(path: bytes) -> tuple[Xattrs, bool]:
    """Remove the driver's extended attributes; return the image's, and whether it is opaque.

    Raises `BuildError` for one that says there is more to the file than this path.
    """
    kept, is_opaque = [], False
    for name in attributes(path):
        value = os.getxattr(path, name, follow_symlinks=False)
        if not name.startswith(_SPACES):
            kept.append((os.fsencode(name), value))
            continue
        note = name.rpartition(".")[2]
        if note not in _NOTES or (note == "opaque" and value != b"y"):
            raise BuildError.of(
                f"the overlay keeps a part of it elsewhere ({name})",
                where=quoted(path),
                fix="Switch redirect_dir and metacopy of overlayfs off.",
            )
        is_opaque |= note == "opaque"
        os.removexattr(path, name, follow_symlinks=False)
    return tuple(kept), is_opaque


def content(folder: bytes) -> UpperFolder:
    """Tell a folder's entries from the driver's marks.

    Raises `BuildError` for a mark that is more than an empty file.
    """
    with os.scandir(folder) as entries:
        hidden = {entry.name: _hidden(entry, folder) for entry in entries}
    marks = {name: gone for name, gone in hidden.items() if gone is not None}
    return UpperFolder(
        names=tuple(sorted(hidden.keys() - marks)),
        gone=frozenset(marks.values()),
        marks=tuple(sorted(marks)),
        is_opaque=not _OPAQUE.isdisjoint(marks),
    )


def _hidden(entry: os.DirEntry[bytes], folder: bytes) -> bytes | None:
    """Return the name that this entry removes, if it is a whiteout."""
    name = entry.name
    if entry.is_file(follow_symlinks=False) and not name.startswith(_MARK):
        return None  # Its state need not be asked for.
    status = entry.stat(follow_symlinks=False)
    is_device = listing.kind(status) == "whiteout"
    if not name.startswith(_MARK):
        return name if is_device else None
    if not is_device and (not stat.S_ISREG(status.st_mode) or status.st_size):
        refuse_reserved(os.path.join(folder, name))
    return name.removeprefix(_MARK)


def mark_gone(path: bytes) -> None:
    """Say that a path is gone, as a driver does that may make no devices."""
    folder, name = os.path.split(path)
    os.close(os.open(os.path.join(folder, _MARK + name), os.O_CREAT | os.O_EXCL, 0o600))


def refuse_reserved(path: bytes) -> None:
    """Raise `BuildError` for a name that drivers take for a mark of their own."""
    if os.path.basename(path).startswith(_MARK):
        raise BuildError.of(
            "a name that starts with '.wh.' means a removed file to overlay drivers",
            where=quoted(path),
            fix="Let the layer give it another name.",
        )


def attributes(path: int | bytes) -> list[str]:
    """Return the names of a path's extended attributes, without the machine's own."""
    try:
        # An open file is no link to follow, and Python refuses the argument.
        names = os.listxattr(path, follow_symlinks=isinstance(path, int))
    except OSError as error:
        if error.errno == errno.ENOTSUP:
            return []
        raise
    return sorted(set(names) - _OF_THE_MACHINE)
