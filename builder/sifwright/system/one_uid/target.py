"""The file that a system call of another process is about."""

import ctypes
import os
from pathlib import Path
from typing import Self

from sifwright.system.one_uid import kernel

_PATH_MAX = 4096


class Target:
    """A file as the process sees it, held open inside `with`; which raises `OSError`."""

    status: os.stat_result

    def __init__(self, pid: int, folder: int, address: int, flags: int) -> None:
        """Name a file by the arguments of openat(2)."""
        self._pid, self._address, self._flags = pid, address, flags
        # The `int` in a register.
        self._folder = ctypes.c_int(folder).value
        self._descriptor = -1

    def __enter__(self) -> Self:
        self._descriptor = self._open()
        self.status = os.fstat(self._descriptor)
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._descriptor)

    def _open(self) -> int:
        own = f"/proc/{self._pid}"
        start = f"{own}/fd/{self._folder}" if self._folder >= 0 else f"{own}/cwd"
        path = b""
        if self._address:
            path = kernel.memory(self._pid, self._address, _PATH_MAX).partition(b"\0")[0]
        if not path:
            # Without AT_EMPTY_PATH that is an error, and the kernel's to say.
            if not self._flags & kernel.AT_EMPTY_PATH:
                raise FileNotFoundError
            return os.open(start, os.O_PATH)
        nofollow = os.O_NOFOLLOW if self._flags & kernel.AT_SYMLINK_NOFOLLOW else 0
        if not path.startswith(b"/"):
            path = self._below_root(start) + b"/" + path
        root = os.open(f"{own}/root", os.O_PATH)
        try:
            return kernel.open_in(root, path, os.O_PATH | nofollow)
        finally:
            os.close(root)

    def _below_root(self, link: str) -> bytes:
        """Return a folder's path in the root of the process; /proc shows another path."""
        here = os.fsencode(Path(link).readlink())
        root = os.fsencode(Path(f"/proc/{self._pid}/root").readlink())
        return here.removeprefix(root.rstrip(b"/")) if root != b"/" else here

    def handle(self) -> bytes:
        """Return a handle that a later file with the same inode number does not have."""
        return kernel.file_handle(self._descriptor)

    def own(self) -> None:
        """Give it to who has it, which changes all that a new owner changes. Raises `OSError`."""
        words = ctypes.c_char_p(b""), 0, 0, kernel.AT_EMPTY_PATH
        kernel.call(kernel.CALLS["fchownat"], self._descriptor, *words)

    def stat(self, size: int) -> bytes:
        """Read its `struct stat`."""
        data = ctypes.create_string_buffer(size)
        words = ctypes.c_char_p(b""), data, kernel.AT_EMPTY_PATH
        kernel.call(kernel.CALLS["newfstatat"], self._descriptor, *words)
        return data.raw

    def statx(self, flags: int, mask: int, size: int) -> bytes:
        """Read its `struct statx`."""
        data = ctypes.create_string_buffer(size)
        words = ctypes.c_char_p(b""), flags | kernel.AT_EMPTY_PATH, mask, data
        kernel.call(kernel.CALLS["statx"], self._descriptor, *words)
        return data.raw

    def answer(self, address: int, data: bytes) -> None:
        """Write into the memory of the process."""
        kernel.set_memory(self._pid, address, data)
