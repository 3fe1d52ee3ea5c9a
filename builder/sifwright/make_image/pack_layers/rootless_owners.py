"""Give files the owners that Apptainer only recorded, in a namespace that has these owners.

    python -m sifwright.make_image.pack_layers.rootless_owners TREE

For an ordinary user, Apptainer unpacks an image of layers with root as the owner of all files. An
extended attribute has the real owner of a file that is not root's (tried: 1.4.5). Links have no
such attributes, and stay root's. TREE is the unpacked image.
"""

import os
import stat
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

ATTRIBUTE = "user.rootlesscontainers"
# The attribute that a change of the owner removes.
_CAPABILITIES = "security.capability"
# The keys of the fields uid and gid in Resource of github.com/rootless-containers/proto.
_UID, _GID = 0x08, 0x10
# The last shift of a 32-bit number, with seven bits in a byte.
_LAST_SHIFT = 28


def owners(data: bytes) -> tuple[int, int] | None:
    """Read uid and gid from the attribute; None if it is something else."""
    ids = {_UID: 0, _GID: 0}
    rest = iter(data)
    for key in rest:
        value, shift, more = 0, 0, True
        while more:
            part = next(rest, None)
            if part is None or key not in ids or shift > _LAST_SHIFT:
                return None
            value |= (part & 0x7F) << shift
            shift, more = shift + 7, bool(part & 0x80)
        ids[key] = value
    return ids[_UID], ids[_GID]


def main(tree: str) -> int:
    """Set the owners; print how many files have an owner without an id in the namespace."""
    failed = 0
    for folder, names in _folders(tree):
        inherits = os.lstat(folder).st_mode & stat.S_ISGID
        for name in names:
            path = f"{folder}/{name}"
            noted = _attribute(path, ATTRIBUTE)
            # Said of root's, too: what is made in such a folder would get its group.
            owner = owners(noted) if noted is not None else (0, 0) if inherits else None
            if noted is not None:
                os.removexattr(path, ATTRIBUTE, follow_symlinks=False)
            if owner is not None:
                failed += not _give(path, owner)
    if failed:
        message = f"sifwright: {failed} files stay root's: there is no such id in this build\n"
        sys.stdout.write(message)
    return 0


def _folders(tree: str) -> Iterator[tuple[str, list[str]]]:
    """Yield each folder and the names in it; links are not followed."""
    parent, name = os.path.split(tree)
    yield parent, [name]
    for folder, folders, files in os.walk(tree):
        yield folder, [*folders, *files]


def _attribute(path: str, name: str) -> bytes | None:
    # Most files have none, and links and devices cannot.
    with suppress(OSError):
        return os.getxattr(path, name, follow_symlinks=False)
    return None


def _give(path: str, owner: tuple[int, int]) -> bool:
    """Give a file of root to its owner; whether there is such an id."""
    status = os.lstat(path)
    if (status.st_uid, status.st_gid) != (0, 0):
        return True  # A step gave it to another user.
    capabilities = _attribute(path, _CAPABILITIES)
    try:
        os.lchown(path, *owner)
    except OSError:
        return False
    if not stat.S_ISLNK(status.st_mode):
        Path(path).chmod(stat.S_IMODE(status.st_mode))
    if capabilities is not None:
        os.setxattr(path, _CAPABILITIES, capabilities, follow_symlinks=False)
    return True


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
