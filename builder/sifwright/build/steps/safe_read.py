"""Files of a tree that a step had in its hands, read by the builder itself: no link is followed.

A link, the file's own or one on the way to it, leads from here to a file of this machine, whose
text would get into the cache, to later steps and into the image. Paths are those in the image.
"""

from __future__ import annotations

import os
import stat
from contextlib import contextmanager
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from sifwright.errors import BuildError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["mode", "text", "texts"]

# To go through a folder, which need not be one that we may list.
_FOLDER = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW
_FIX = "The step, or the image it starts from, has to leave a plain one there."


def text(root: Path, path: str) -> str | None:
    """The text of a file; None if it is not there. Raises `BuildError` if it is no plain file."""
    parent, name = os.path.split(path)
    with _told(path):
        try:
            with _folder(root, parent) as near:
                return _read(near, name).decode()
        except FileNotFoundError:
            return None


def texts(root: Path, path: str) -> dict[str, str]:
    """Those of the plain files in a folder, by name; nothing of what else is there.

    Any bytes become text that JSON can hold, and the same bytes again (PEP 383).
    """
    with _told(path):
        try:
            with _folder(root, path) as folder:
                names = [name for name in _names(folder) if _is_plain(folder, name)]
                return {
                    name: _read(folder, name).decode(errors="surrogateescape") for name in names
                }
        except FileNotFoundError:
            return {}


def mode(root: Path, path: str) -> int | None:
    """The mode of a folder; None if there is none at this path."""
    with _told(path):
        try:
            with _folder(root, path) as folder:
                return stat.S_IMODE(os.fstat(folder).st_mode)
        except (FileNotFoundError, NotADirectoryError):
            return None


@contextmanager
def _folder(root: Path, path: str) -> Iterator[int]:
    """Yield the descriptor of a folder; raises `NotADirectoryError` for a link on the way."""
    folder = os.open(root, _FOLDER)
    try:
        for name in PurePosixPath(path.lstrip("/")).parts:
            above, folder = folder, os.open(name, _FOLDER, dir_fd=folder)
            os.close(above)
        yield folder
    finally:
        os.close(folder)


def _names(folder: int) -> list[str]:
    near = os.open(".", os.O_RDONLY | os.O_DIRECTORY, dir_fd=folder)
    try:
        return sorted(os.listdir(near))  # noqa: PTH208  # a descriptor
    finally:
        os.close(near)


def _is_plain(folder: int, name: str) -> bool:
    return stat.S_ISREG(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)


def _read(folder: int, name: str) -> bytes:
    # Asked first: a pipe lets whoever opens it wait, and a device may do more.
    if not _is_plain(folder, name):
        raise OSError("is no plain file")
    with open(os.open(name, os.O_RDONLY | os.O_NOFOLLOW, dir_fd=folder), "rb") as file:  # noqa: PTH123  # a descriptor
        return file.read()


@contextmanager
def _told(path: str) -> Iterator[None]:
    try:
        yield
    except NotADirectoryError:
        raise _problem(path, "lies behind a link, or what is no folder") from None
    except UnicodeDecodeError:
        raise _problem(path, "is no text in UTF-8") from None
    except OSError as error:
        raise _problem(path, f"cannot be read: {error.strerror or error}") from None


def _problem(path: str, what: str) -> BuildError:
    return BuildError.of(what, where=f"/{path.lstrip('/')} in the image", fix=_FIX)
