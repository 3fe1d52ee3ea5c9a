"""Liveness of the processes that hold a claim or a lease.

There are no locks: flock means nothing, or fails, on many shared file systems. A holder is a small
file that names a process, and that the process touches while it runs.
"""

import errno
import json
import os
import re
import secrets
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Self

from sifwright.system import small_file
from sifwright.system.files import open_descriptor

BEAT_SECONDS = 5.0
# File of a folder with claims; touched, it has the time there.
CLOCK = "clock"


@dataclass(frozen=True, kw_only=True, slots=True)
class ProcessIdentity:
    """A process and its leases. `started` is in clock ticks since `boot`, see proc(5).

    A process id says nothing elsewhere: not on another machine, after a reboot, in another
    container. `keys` are those of a lease, `prunes` says that a claim is to remove its entry.
    """

    host: str
    boot: str
    namespace: int
    pid: int
    started: int
    token: str
    keys: tuple[str, ...] = ()
    prunes: bool = False

    @classmethod
    def here(cls, *, keys: tuple[str, ...] = (), prunes: bool = False) -> Self:
        """Identify this process, with a token of its own."""
        pid = os.getpid()
        return cls(
            host=socket.gethostname(),
            boot=_boot(),
            namespace=Path("/proc/self/ns/pid").stat().st_ino,
            pid=pid,
            started=_started(pid) or 0,
            token=secrets.token_hex(8),
            keys=keys,
            prunes=prunes,
        )

    def is_neighbour(self) -> bool:
        """Tell whether our process table would show the process."""
        ours = ProcessIdentity.here()
        return (self.host, self.boot, self.namespace) == (ours.host, ours.boot, ours.namespace)

    def runs(self) -> bool:
        """Tell whether a neighbour still runs; a later process with its id does not count."""
        return _started(self.pid) == self.started

    @property
    def label(self) -> str:
        """Return the words that tell it from others, for names of what it holds."""
        return f"{self.boot_id}-{self.namespace}-{self.pid}-{self.started}-"

    @property
    def boot_id(self) -> str:
        return self.boot[:8]

    def encoded(self) -> bytes:
        return json.dumps(asdict(self)).encode()

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host}"


def has_ended(label: str) -> bool | None:
    """Tell whether the process of a label has ended; None if our process table does not show it."""
    own = ProcessIdentity.here()
    match = re.match(rf"{own.boot_id}-{own.namespace}-([0-9]+)-([0-9]+)-", label)
    return match and not replace(own, pid=int(match[1]), started=int(match[2])).runs()


@dataclass(frozen=True, kw_only=True, slots=True)
class HolderFile:
    """A holder's file as it was at one moment; no `holder` if nobody can be read from it."""

    content: bytes
    touched: float
    holder: ProcessIdentity | None

    def is_stale(self, root: Path, lifetime: float) -> bool:
        """Tell whether the holder is gone. The process table knows at once and for certain.

        On another machine, a holder counts as gone after `lifetime` seconds without a heartbeat, by
        the file system's own clock.
        """
        if self.holder and self.holder.is_neighbour():
            return not self.holder.runs()
        return clock(root) - self.touched > lifetime


def read_holder(path: Path) -> HolderFile | None:
    """Read a holder's file; None if it is not there.

    The file is opened, because NFS answers stat(2) from a cache that may be a minute old.
    """
    try:
        content, status = small_file.read_with_status(path)
    except small_file.NotSmallError:
        # Nobody's, so it is stale after a while.
        content, status = b"", path.lstat()
    except OSError as error:
        if error.errno in {errno.ENOENT, errno.ESTALE}:
            return None
        raise
    return HolderFile(content=content, touched=status.st_mtime, holder=_parsed(content))


@contextmanager
def hold(path: Path, holder: ProcessIdentity) -> Iterator[None]:
    """Write the holder's file at `path` and touch it every few seconds inside.

    The file may be renamed or linked meanwhile and is still touched. At the end, `path` is removed.
    """
    try:
        with path.open("xb") as file:
            file.write(holder.encoded())
        with heartbeat(path):
            yield
    finally:
        path.unlink(missing_ok=True)


@contextmanager
def heartbeat(path: Path) -> Iterator[None]:
    """Touch the file or folder every few seconds inside, also under a new name."""
    stop = threading.Event()
    with open_descriptor(path, os.O_RDONLY) as number:
        thread = threading.Thread(target=_beat, args=(number, stop), daemon=True)
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join()


def clock(root: Path) -> float:
    """Return the time in seconds, by the clock that gives the cache's files their times."""
    with (root / CLOCK).open("ab") as file:
        os.utime(file.fileno())
        return os.fstat(file.fileno()).st_mtime


def _beat(descriptor: int, stop: threading.Event) -> None:
    while not stop.wait(BEAT_SECONDS):
        # Another process took us for dead and removed it, or a server is away for a while.
        with suppress(OSError):
            os.utime(descriptor)


def _boot() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="utf-8").strip()


def _started(pid: int) -> int | None:
    """Return the start time of the process; None if it has ended, even if it is a zombie."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(errors="replace", encoding="utf-8")
    except (FileNotFoundError, ProcessLookupError):
        return None
    # After the name, which may hold blanks and parentheses: the state, then fields 4 and on.
    state, *numbers = text.rpartition(")")[2].split()
    return None if state in "ZX" else int(numbers[18])


def _parsed(content: bytes) -> ProcessIdentity | None:
    try:
        fields = small_file.parse_json(content)
        numbers = (fields["namespace"], fields["pid"], fields["started"])
        holder = ProcessIdentity(**{**fields, "keys": tuple(fields["keys"])})
    except (ValueError, TypeError, KeyError):
        return None
    return holder if all(isinstance(number, int) for number in numbers) else None
