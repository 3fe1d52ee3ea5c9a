"""Put one layer on top of a tree of files, as mounting it would, without a mount.

Runs as a root who sees the owners that the image's files have.
"""

# Paths are bytes here, since names may be no text; pathlib takes none.

# ruff: noqa: PTH101, PTH102, PTH105, PTH108, PTH112, PTH114, PTH118, PTH208
import os
import stat
from contextlib import suppress

from sifwright.make_image.pack_layers import overlay_marks
from sifwright.make_image.pack_layers.overlay_marks import Xattrs
from sifwright.system.processes import run_or_fail


def apply(layer: bytes, tree: bytes) -> None:
    """Move everything from the folder `layer` into the folder `tree`, and remove what it says.

    Only folders are merged. Names of one file stay names of one file. Raises `BuildError` and
    `OSError`.
    """
    status = os.lstat(layer)
    xattrs, is_opaque = overlay_marks.take_attributes(layer)
    content = overlay_marks.content(layer)
    hides = is_opaque or content.is_opaque
    for name in os.listdir(tree) if hides else content.gone:
        with suppress(FileNotFoundError):
            remove(os.path.join(tree, name))
    for name in content.names:
        _move(os.path.join(layer, name), os.path.join(tree, name))
    _copy_rights(status, xattrs, tree)


def join(folder: bytes, name: bytes) -> bytes:
    return folder + b"/" + name if folder else name


def remove(path: bytes) -> None:
    if not stat.S_ISDIR(os.lstat(path).st_mode):
        os.unlink(path)
        return
    # Not shutil's, which keeps every folder of a path open: there may be more than files to open.
    run_or_fail(["rm", "-rf", "--", os.fsdecode(path)])


def _move(path: bytes, target: bytes) -> None:
    """Merge a folder with a folder; anything else takes the place of what was there."""
    if not _is_folder(path):
        if _is_folder(target):
            remove(target)
        os.replace(path, target)
        return
    if not _is_folder(target):
        with suppress(FileNotFoundError):
            os.unlink(target)
        os.mkdir(target)
    apply(path, target)


def _is_folder(path: bytes) -> bool:
    return os.path.isdir(path) and not os.path.islink(path)


def _copy_rights(status: os.stat_result, xattrs: Xattrs, folder: bytes) -> None:
    for name, _ in overlay_marks.take_attributes(folder)[0]:
        os.removexattr(folder, name)
    for name, value in xattrs:
        os.setxattr(folder, name, value)
    os.chown(folder, status.st_uid, status.st_gid)
    os.chmod(folder, stat.S_IMODE(status.st_mode))
    os.utime(folder, ns=(status.st_atime_ns, status.st_mtime_ns))
