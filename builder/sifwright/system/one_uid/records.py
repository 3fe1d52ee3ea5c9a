"""The owners of files in an image, if all files belong to one user outside."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from sifwright.system.one_uid import kernel

Owner = tuple[int, int]
# Device and inode numbers of a file.
_Place = tuple[int, int]
_ROOT = (0, 0)


class Records:
    """The owners of files, by inode; a file without a record is root's.

    After a file is removed, another file may get the number of its inode, but never its handle
    (name_to_handle_at(2)).
    """

    def __init__(self) -> None:
        self._owners: dict[_Place, tuple[bytes, Owner]] = {}
        self._inheriting: set[_Place] = set()

    @classmethod
    def read(cls, path: Path) -> Records:
        """Read what `write` wrote, if anything did."""
        records = cls()
        if path.exists():
            for line in path.read_text(encoding="utf-8").splitlines():
                device, inode, handle, uid, gid = json.loads(line)
                records._owners[device, inode] = bytes.fromhex(handle), (uid, gid)
        return records

    def write(self, path: Path) -> None:
        """Write the owners of files that are not root's, or are in folders that pass on a group."""
        with path.open("w", encoding="utf-8") as file:
            for key, (handle, owner) in self._owners.items():
                if owner != _ROOT or key in self._inheriting:
                    file.write(json.dumps([*key, handle.hex(), *owner]) + "\n")

    def get(self, status: os.stat_result, handle: Callable[[], bytes]) -> Owner | None:
        """Return the owner that was recorded for a file; its handle is asked for if it decides."""
        record = self._owners.get((status.st_dev, status.st_ino))
        return record[1] if record and record[0] == handle() else None

    def set(self, status: os.stat_result, handle: bytes, owner: Owner) -> None:
        """Record the owner of a file."""
        self._owners[status.st_dev, status.st_ino] = handle, owner

    def inherit(self, tree: Path) -> None:
        """Give what is new in folders with the set-group-id bit the groups of these folders.

        So does the kernel where a file is made (inode(7)). A file that was given an owner
        there, root included, keeps the owner.
        """
        for folder, group in self._setgid(str(tree)):
            with os.scandir(folder) as entries:
                for entry in entries:
                    self._inherit(entry.path, group)

    def _setgid(self, tree: str) -> Iterator[tuple[str, int]]:
        """Yield the folders that hand on their group to new files in them, from the top."""
        if not any(owner[1] for _, owner in self._owners.values()):
            return
        for folder, _, _ in os.walk(tree):
            if os.lstat(folder).st_mode & stat.S_ISGID:
                with opened(folder) as (status, handle):
                    owner = self.get(status, lambda: handle)
                if owner and owner[1]:
                    yield folder, owner[1]

    def _inherit(self, path: str, group: int) -> None:
        with opened(path) as (status, handle):
            self._inheriting.add((status.st_dev, status.st_ino))
            if self.get(status, lambda: handle) is None:
                self.set(status, handle, (0, group))


@contextmanager
def opened(path: str) -> Iterator[tuple[os.stat_result, bytes]]:
    """Yield what a path itself is, and its handle."""
    descriptor = os.open(path, os.O_PATH | os.O_NOFOLLOW)
    try:
        yield os.fstat(descriptor), kernel.file_handle(descriptor)
    finally:
        os.close(descriptor)
