"""The state of a tree when it was last packed, in a file that is never held as a whole."""

import json
import os
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from tempfile import TemporaryFile

from sifwright.images.contents import listing
from sifwright.system.one_uid import IS_SUPERVISED
from sifwright.system.one_uid.kernel import AT_FDCWD, Identity, identity

# Seconds; file systems have ticks of 1 s (ext3) down to less than 4 ms.
_TICK = 0.005
# No file has the number 0.
_OPEN = b",0,0]\n"


class PreviousState:
    """The lines of a state, compared with others in the order of `listing.key`."""

    def __init__(self, lines: Iterable[bytes]) -> None:
        self._lines = iter(lines)
        self._next = next(self._lines, b"")

    def had(self, path: bytes, line: bytes) -> bool:
        while self._next != line:
            if not self._next or listing.key(_path(self._next)) >= listing.key(path):
                return False
            self._next = next(self._lines, b"")
        self._next = next(self._lines, b"")
        return True


class NewState:
    """A state that is being noted, in the same order.

    Each path has the number of its inode and the time of its last change in nanoseconds. Nobody can
    choose this time. Every change of a file sets it (inode(7)): contents, owner, mode, attributes,
    names. A file that came from elsewhere has another number.
    """

    def __init__(self, state: Path) -> None:
        self._state = state
        self._noted = TemporaryFile(dir=state.parent)  # noqa: SIM115  # see `close`
        self._newest = 0

    def close(self) -> None:
        self._noted.close()

    def add(self, line: bytes) -> None:
        self._noted.write(line)

    def add_open(self, path: bytes) -> None:
        """Note a path that is looked at again at the end."""
        self._noted.write(_line(path, 0, 0))

    def write(self, root: int) -> None:
        """Write the file of this tree, and wait until the clock of its file system has gone on.

        A change right now would have the old time.
        """
        self._noted.seek(0)
        with self._state.open("wb") as file:
            file.writelines(self._closed(root))
        # After the clock was set back, files have times that it will not reach for long.
        newest = min(self._newest, self._state.stat().st_ctime_ns)
        while self._state.stat().st_ctime_ns <= newest:
            time.sleep(_TICK)
            os.utime(self._state)

    def _closed(self, root: int) -> Iterator[bytes]:
        for noted in self._noted:
            line = noted
            if line.endswith(_OPEN):
                path = _path(line)
                line = line_of(path, lstat(path, root))
            self._newest = max(self._newest, int(line[line.rindex(b",") + 1 : -2]))
            yield line


def lstat(path: bytes, root: int) -> os.stat_result | Identity:
    """Return what a path is; where owners are recorded, asking for them takes ten times longer."""
    if IS_SUPERVISED in os.environ:
        return identity(path, root)
    return os.lstat(path, dir_fd=None if root == AT_FDCWD else root)


def line_of(path: bytes, status: os.stat_result | Identity) -> bytes:
    return _line(path, status.st_ino, status.st_ctime_ns)


def _line(path: bytes, inode: int, changed: int) -> bytes:
    return f"[{json.dumps(listing.text(path))},{inode},{changed}]\n".encode("ascii")


def _path(line: bytes) -> bytes:
    return listing.path_of(json.loads(line))
