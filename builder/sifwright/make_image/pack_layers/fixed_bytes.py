"""Give the changes of a step the same bytes on every day and machine.

Runs in the image's tree or in an overlay's upper directory, as a root who sees the image's owners.
All times become the layer's own. A later layer has a later time. So programs that compare times,
such as Python with its sources, still see the newer file.
"""

# Paths are bytes here, since names may be no text; pathlib takes none.
# ruff: noqa: PTH208
import os
import re
import stat
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from sifwright.images.contents.image_tree import resolve_links
from sifwright.make_image.pack_layers import bytecode
from sifwright.make_image.pack_layers.apply_layer import join
from sifwright.make_image.pack_layers.bytecode import Source

_NANO = 10**9
_DAY = 86400


def fix(times: Sequence[int]) -> None:
    """Fix what is new in the current directory.

    `times` are those of the layers, the last one of what is new; what has another one is left
    alone. Raises `OSError`.
    """
    fixing = _Fixing(times)
    # First, because it names the times that its sources still have.
    for path, status in _paths(b""):
        if path.endswith(b".pyc") and stat.S_ISREG(status.st_mode) and fixing.is_new(status):
            bytecode.restamp(path, fixing.source(path), times)
    for path, status in _paths(b""):
        if fixing.is_new(status):
            fixing.fix(path, status)


class _Fixing:
    def __init__(self, times: Sequence[int]) -> None:
        self._known = {time * _NANO for time in times}
        self._time = times[-1]

    def is_new(self, status: os.stat_result) -> bool:
        return status.st_mtime_ns not in self._known

    def fix(self, path: bytes, status: os.stat_result) -> None:
        if (changed := _FIXES.get(path)) and stat.S_ISREG(status.st_mode):
            _rewrite(path, changed, self._time)
        os.utime(path or b".", ns=(self._time * _NANO,) * 2, follow_symlinks=False)

    def source(self, path: bytes) -> Source | None:
        """Return the source of bytecode; None if it is not here."""
        source = bytecode.source_of(path)
        status = _status(source)
        if status and stat.S_ISLNK(status.st_mode):
            source = os.fsencode(resolve_links(os.fsdecode(source), _link))
            status = _status(source)
        if status is None or not stat.S_ISREG(status.st_mode):
            return None
        is_new = self.is_new(status)
        time = self._time if is_new else status.st_mtime_ns // _NANO
        return Source(path=source, status=status, time=time, is_new=is_new)


def _status(path: bytes) -> os.stat_result | None:
    try:
        return os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None


def _link(path: str) -> str | None:
    try:
        return str(Path(path).readlink())
    except OSError:
        return None


def _paths(folder: bytes) -> Iterator[tuple[bytes, os.stat_result]]:
    """Yield what is in a folder, then the folder, by names relative to the current directory."""
    for path in (join(folder, name) for name in os.listdir(folder or b".")):
        status = os.lstat(path)
        if stat.S_ISDIR(status.st_mode):
            yield from _paths(path)
        else:
            yield path, status
    yield folder, os.lstat(folder or b".")


def _rewrite(path: bytes, changed: Callable[[bytes, int], bytes], time: int) -> None:
    """Change the text of a file; its owner, mode and names stay."""
    with open(os.open(path, os.O_RDWR | os.O_NOFOLLOW), "r+b") as file:  # noqa: PTH123  # a descriptor
        before = file.read()
        after = changed(before, time)
        if after != before:
            file.seek(0)
            file.write(after)
            file.truncate()


def _shadow(text: bytes, time: int) -> bytes:
    """Return passwords that were changed on this day at the latest (shadow(5), third field)."""
    lines = [line.split(b":") for line in text.splitlines(keepends=True)]
    for fields in lines:
        if len(fields) > 2 and fields[2].isdigit():  # noqa: PLR2004  # name, password, day
            fields[2] = b"%d" % min(int(fields[2]), time // _DAY)
    return b"".join(b":".join(fields) for fields in lines)


def _machine_id(text: bytes, _time: int) -> bytes:
    """Return no id: each machine makes its own (machine-id(5))."""
    return b"" if re.fullmatch(rb"[0-9a-f]{32}\n?", text) else text


_FIXES: dict[bytes, Callable[[bytes, int], bytes]] = {
    b"etc/shadow": _shadow,
    b"etc/shadow-": _shadow,
    b"etc/machine-id": _machine_id,
    b"var/lib/dbus/machine-id": _machine_id,
}
