"""Answer the system calls of a program that are about the owners of files.

seccomp_unotify(2) describes the interface. A call that changes an owner is recorded. A call that
asks for an owner is answered from the records. The kernel answers all others, and failing calls.
"""

import errno
import fcntl
import os
import select
import struct
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from sifwright.system.one_uid import kernel
from sifwright.system.one_uid.records import Owner, Records
from sifwright.system.one_uid.target import Target

_REQUEST = struct.Struct("=QIIiIQ6Q")
_ANSWER = struct.Struct("=QqiI")
_RECEIVE, _SEND = 0xC0502100, 0xC0182101
_CONTINUE = 1
_UNCHANGED = 0xFFFFFFFF
# The bytes of `struct stat` and `struct statx`, and where they have the owner.
_STAT = {"x86_64": (144, 28), "aarch64": (128, 24)}
_STATX_OWNER, _STATX_BYTES = 20, 256
_OWNER = struct.Struct("=II")
_NOFOLLOW, _EMPTY = kernel.AT_SYMLINK_NOFOLLOW, kernel.AT_EMPTY_PATH


class Supervisor:
    """The supervisor of all processes that were started under one listener.

    `wanted` are the other ids that programs asked to become: who asked, and for which id.
    """

    def __init__(self, records: Records) -> None:
        self.wanted: dict[tuple[str, int], None] = {}
        self._records = records
        named: dict[str, Callable[[int, tuple[int, ...]], int | None]] = {
            "stat": lambda pid, a: self._stat(Target(pid, -1, a[0], 0), a[1]),
            "lstat": lambda pid, a: self._stat(Target(pid, -1, a[0], _NOFOLLOW), a[1]),
            "fstat": lambda pid, a: self._stat(Target(pid, a[0], 0, _EMPTY), a[1]),
            "newfstatat": lambda pid, a: self._stat(Target(pid, a[0], a[1], a[3]), a[2]),
            "statx": self._statx,
            "chown": lambda pid, a: self._chown(Target(pid, -1, a[0], 0), a[1], a[2]),
            "lchown": lambda pid, a: self._chown(Target(pid, -1, a[0], _NOFOLLOW), a[1], a[2]),
            "fchown": lambda pid, a: self._chown(Target(pid, a[0], 0, _EMPTY), a[1], a[2]),
            "fchownat": lambda pid, a: self._chown(Target(pid, a[0], a[1], a[4]), a[2], a[3]),
            "setgroups": lambda _pid, _a: 0,
            **{f"set{kind}id": self._become for kind in ("u", "g", "reu", "reg", "resu", "resg")},
        }
        self._answers = {kernel.CALLS[name]: named[name] for name in named if name in kernel.CALLS}

    @property
    def numbers(self) -> list[int]:
        """Return the system calls to supervise, the most frequent ones first."""
        return list(self._answers)

    def serve(self, listener: int, child: int) -> None:
        """Answer until a process has ended; `child` is a descriptor of it."""
        waiting = select.poll()
        waiting.register(listener, select.POLLIN)
        waiting.register(child, select.POLLIN)
        while True:
            ready = dict(waiting.poll())
            if ready.get(listener, 0) & select.POLLIN:
                self._answer(listener)
            elif child in ready:
                return

    def _answer(self, listener: int) -> None:
        request = bytearray(_REQUEST.size)
        # The program may have been killed meanwhile.
        with suppress(FileNotFoundError):
            fcntl.ioctl(listener, _RECEIVE, request)
            identity, pid, _, number, _, _, *arguments = _REQUEST.unpack(request)
            try:
                result = self._answers[number](pid, tuple(arguments))
            except OSError:
                # The kernel says what is wrong, in its own way.
                result = None
            flags = _CONTINUE if result is None else 0
            fcntl.ioctl(listener, _SEND, _ANSWER.pack(identity, 0, result or 0, flags))

    def _stat(self, target: Target, address: int) -> int | None:
        size, offset = _STAT[os.uname().machine]
        return self._tell(target, lambda file: file.stat(size), offset, address)

    def _statx(self, pid: int, arguments: tuple[int, ...]) -> int | None:
        folder, path, flags, mask, address, _ = arguments
        target = Target(pid, folder, path, flags)
        return self._tell(
            target, lambda file: file.statx(flags, mask, _STATX_BYTES), _STATX_OWNER, address
        )

    def _tell(
        self, target: Target, read: Callable[[Target], bytes], offset: int, address: int
    ) -> int | None:
        """Answer with what the kernel says of a file, but for the owner that was recorded."""
        with target as file:
            if (owner := self._owner(file)) is None:
                return None
            data = bytearray(read(file))
            _OWNER.pack_into(data, offset, *owner)
            file.answer(address, bytes(data))
        return 0

    def _owner(self, file: Target) -> Owner | None:
        return self._records.get(file.status, file.handle)

    def _chown(self, target: Target, uid: int, gid: int) -> int | None:
        with target as file:
            if file.status.st_uid != 0:
                return None  # Another user's, outside of the image.
            old = self._owner(file) or (0, 0)
            # A real chown also changes the time, set-user-id bits and capabilities.
            try:
                file.own()
            except OSError as error:
                return -(error.errno or errno.EPERM)
            wanted = (uid & _UNCHANGED, gid & _UNCHANGED)
            new = (a if b == _UNCHANGED else b for a, b in zip(old, wanted, strict=True))
            self._records.set(file.status, file.handle(), (next(new), next(new)))
        return 0

    def _become(self, pid: int, arguments: tuple[int, ...]) -> None:
        """Remember which other id a program wants to have; the kernel refuses it."""
        for argument in arguments[:3]:
            if 0 < argument & _UNCHANGED < _UNCHANGED:
                name = Path(f"/proc/{pid}/comm").read_text(encoding="utf-8", errors="replace")
                self.wanted[name.strip(), argument & _UNCHANGED] = None
                return
