"""Read a squashfs file, or one inside a SIF, by `unsquashfs`: nothing is unpacked or mounted.

It needs no user namespace, since no file is made, and shows owners as they are in the image.
"""

from __future__ import annotations

import hashlib
import re
import subprocess
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from typing import IO, TYPE_CHECKING

from sifwright.errors import MachineError, SifwrightError, UsageError
from sifwright.images.contents import unsquashfs_output
from sifwright.system import user_namespace

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator
    from pathlib import Path

    from sifwright.images.contents.listing import ListedPath
    from sifwright.images.contents.unsquashfs_output import File

_BLOCK = 1 << 20
# What is asked for as text: dpkg's database has less than 10 MB.
_MAXIMUM_TEXT, _MAXIMUM_TEXTS = 64 << 20, 512 << 20
# unsquashfs compares each path with each name of a folder that was asked for.
_MOST_NAMES = 2000
_SIMPLE = re.compile(rb"[^\s\\#]+( [^\s\\#]+)*")
# unsquashfs removes its output if it fails. As root it removed /dev/stdout, the name that others
# use for this; here nothing can be removed.
_OUTPUT = "/proc/self/fd/1"
_FIX = "Give an image that 'apptainer exec' can start."


@dataclass(frozen=True, kw_only=True, slots=True)
class Squashed:
    """A squashfs file that begins at a byte of a file.

    Every method raises `UsageError` if it cannot be read, and `MachineError` if unsquashfs of
    squashfs-tools 4.5 (2021) or later is missing.
    """

    path: Path
    offset: int = 0

    def nodes(self) -> list[ListedPath]:
        """Return all paths, without their extended attributes."""
        with self._opened(None) as (_, nodes, _):
            # All names of a file share one.
            if len({node.links or node.path for node in nodes}) != self._inodes():
                # Only a line break in the target of a symbolic link can do that.
                raise self._unreadable("its list of files contradicts itself")
            return nodes

    def texts(self, paths: Collection[bytes]) -> dict[bytes, bytes]:
        """Return the contents of some files, without missing files and files that are no text."""
        contents, left = dict[bytes, bytes](), _MAXIMUM_TEXTS
        for path, data in self.contents(paths):
            contents[path] = data
            left -= len(data)
            if left < 0:
                raise self._unreadable(f"its texts have more than {_MAXIMUM_TEXTS >> 20} MiB")
        return contents

    def digests(self, paths: Collection[bytes]) -> dict[bytes, str]:
        """Return the sha256 of some files."""
        digests: dict[bytes, str] = {}
        with self._opened(paths) as (stream, _, files):
            for file in files:
                digest = hashlib.sha256()
                for block in self._blocks(stream, file):
                    digest.update(block)
                asked = [path for path in file.paths if path in paths]
                digests.update(dict.fromkeys(asked, digest.hexdigest()))
                if len(digests) == len(paths):
                    break
        return digests

    def _inodes(self) -> int:
        """Return the number of inodes: the second number of 32 bits in the superblock."""
        with self.path.open("rb") as file:
            file.seek(self.offset)
            return int.from_bytes(file.read(8)[4:], "little")

    def contents(self, paths: Collection[bytes]) -> Iterator[tuple[bytes, bytes]]:
        """Yield what `texts` gives, one file after the other."""
        wanted = set(paths)
        if not wanted:
            return
        with self._opened(wanted) as (stream, _, files):
            for file in files:
                asked = wanted.intersection(file.paths)
                keep = asked and file.size <= _MAXIMUM_TEXT
                data = b"".join(bytes(block) for block in self._blocks(stream, file) if keep)
                yield from ((path, data) for path in asked if keep)

    def _blocks(self, stream: IO[bytes], file: File) -> Iterator[memoryview]:
        buffer, left = memoryview(bytearray(min(_BLOCK, file.size))), file.size
        while left:
            count = stream.readinto(buffer[: min(_BLOCK, left)])  # type: ignore[attr-defined]
            if not count:
                raise self._unreadable("it is cut off")
            yield buffer[:count]
            left -= count

    @contextmanager
    def _opened(
        self, paths: Collection[bytes] | None
    ) -> Iterator[tuple[IO[bytes], list[ListedPath], list[File]]]:
        """Yield the bytes of the files, all paths and all files; asked for a few, only those."""
        with tempfile.TemporaryFile() as errors, tempfile.NamedTemporaryFile() as names:
            names.write(b"".join(path + b"\n" for path in paths or ()))
            names.flush()
            process = self._start(errors, names.name if paths and _simple(paths) else "")
            with process:
                assert process.stdout is not None  # noqa: S101  # for the type checker
                try:
                    lines = _head(process.stdout)
                    first = next(lines, b"")
                    if not first:
                        process.wait()
                        errors.seek(0)
                        raise self._refused(errors.read(2000).decode(errors="replace"))
                    nodes, files = self._parsed(chain([first], lines))
                    yield process.stdout, nodes, files
                finally:
                    # Whoever asked may have seen enough.
                    process.kill()

    def _start(self, errors: IO[bytes], names: str) -> subprocess.Popen[bytes]:
        command = ["unsquashfs", "-no-progress", "-quiet", "-offset", str(self.offset)]
        command += ["-no-wildcards", "-ef", names] if names else []
        try:
            return subprocess.Popen(
                [*command, "-pf", _OUTPUT, str(self.path.absolute())],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors,
                bufsize=_BLOCK,
                pipesize=_BLOCK,
                env=user_namespace.environment(),
            )
        except FileNotFoundError:
            raise _missing("unsquashfs is not there") from None

    def _parsed(self, lines: Iterable[bytes]) -> tuple[list[ListedPath], list[File]]:
        try:
            return unsquashfs_output.parse(lines)
        except (ValueError, LookupError) as error:
            raise self._unreadable(f"it {error}") from error

    def _refused(self, message: str) -> SifwrightError:
        if "invalid option" in message or "SYNTAX" in message:
            return _missing("unsquashfs is older than 4.5")
        return self._unreadable(" ".join(message.split())[:200] or "unsquashfs finds nothing in it")

    def _unreadable(self, why: str) -> SifwrightError:
        return UsageError.of(f"its files cannot be read: {why}", where=str(self.path), fix=_FIX)


def _head(stream: IO[bytes]) -> Iterator[bytes]:
    """Yield the lines up to the marker, which stands between two lines that are no paths either."""
    before = b""
    for line in stream:
        if line == unsquashfs_output.DATA and before == b"#\n":
            stream.readline()
            return
        if before:
            yield before
        before = line
    if before:
        yield before


def _simple(paths: Collection[bytes]) -> bool:
    """Tell whether unsquashfs can read these paths from a list, one on a line."""
    return len(paths) <= _MOST_NAMES and all(map(_SIMPLE.fullmatch, paths))


def _missing(message: str) -> MachineError:
    return MachineError.of(message, fix="Install squashfs-tools 4.5 or later.")
